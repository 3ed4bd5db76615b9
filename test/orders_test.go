package test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/space"
)

// orders returns the program of the races. It records everything that it runs.
//
//	order  counts itself, starts a piece and sends a note to its own space and to
//	       "ledger". It fails if the document closed is set, and transiently if broken is.
//	note   is a follow-up: it reads nothing that an order writes.
//	tick   changes what every piece reads.
//
// A piece is a member of the document pieces, which names its launcher, and an effect that the effect launcher
// makes from it.
func orders(notes *notebook) *settle.Program {
	return settle.NewProgram("orders").
		Handle("order", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			notes.write("order %s", ev.ID)
			if closed, _ := tx.Get("closed").AsBool(); closed {
				return settle.Value{}, errors.New("closed")
			}
			if broken, _ := tx.Get("broken").AsBool(); broken {
				return settle.Value{}, settle.Transient(errors.New("broken"))
			}
			n := increment(tx, "count")
			tx.Set("pieces", notes.by, ev.ID)
			what := fmt.Sprintf("%s makes %d", ev.ID, n)
			tx.Send(tx.Space(), "note", what)
			tx.Send("ledger", "note", what)
			return settle.ValueOf(n)
		}).
		Handle("note", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			what, _ := ev.Payload.AsString()
			notes.write("note in %s: %s", tx.Space(), what)
			increment(tx, "noted")
			return ev.Payload, nil
		}).
		Handle("tick", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
			increment(tx, "ticks")
			return settle.Value{}, nil
		}).
		Effect("gate", func(v *settle.View) error {
			if ready, _ := v.Get("ready").AsBool(); ready {
				notes.write("ready")
			}
			return nil
		}).
		Effect("launcher", func(v *settle.View) error {
			ids := v.GetShallow("pieces").Keys()
			notes.write("%s has the pieces %s", v.Space(), strings.Join(ids, " "))
			for _, id := range ids {
				v.Node(piece(notes, id))
			}
			return nil
		})
}

func piece(notes *notebook, id string) space.NodeSpec {
	return space.NodeSpec{ID: "piece-" + id, Kind: space.Effect, Run: func(tx *settle.Tx) (settle.Value, error) {
		ticks, _ := tx.Get("ticks").AsInt()
		by, _ := tx.Get("pieces", id).AsString()
		notes.write("piece %s of %s at tick %d", id, by, ticks)
		return settle.Value{}, nil
	}}
}

func increment(tx *settle.Tx, doc string) int64 {
	n, _ := tx.Get(doc).AsInt()
	tx.Set(doc, n+1)
	return n + 1
}

// notebook has a line for each run of a runtime, speculative or not.
type notebook struct {
	by      string // the runtime
	mu      sync.Mutex
	lines   []string
	changed chan struct{} // closed with the next line
}

func newNotebook(by string) *notebook { return &notebook{by: by, changed: make(chan struct{})} }

func (n *notebook) write(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, fmt.Sprintf(format, args...))
	close(n.changed)
	n.changed = make(chan struct{})
}

func (n *notebook) count(line string) (times int, changed <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.lines {
		if l == line {
			times++
		}
	}
	return times, n.changed
}

// waitFor waits until a line has been written n times.
func (n *notebook) waitFor(t *testing.T, line string, want int) {
	t.Helper()
	ctx := testContext(t)
	for {
		times, changed := n.count(line)
		if times >= want {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%q was to be run %d times, and has been %d times; all there is:\n\t%s", line, want, times, strings.Join(n.lines, "\n\t"))
		}
	}
}

// want checks how often a line has been written.
func (n *notebook) want(t *testing.T, line string, want int) {
	t.Helper()
	if times, _ := n.count(line); times != want {
		t.Errorf("%q was run %d times, want %d", line, times, want)
	}
}
