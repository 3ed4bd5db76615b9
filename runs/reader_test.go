package runs

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// seen returns what a reader says of a run, as text.
func seen(t *testing.T, r *Reader) string {
	t.Helper()
	var b strings.Builder
	timeline, err := r.Timeline()
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.Status()
	if err != nil {
		t.Fatal(err)
	}
	h, err := r.History()
	if err != nil {
		t.Fatal(err)
	}
	passed := ""
	for node := 0; s.Passed != nil && node < 8; node++ {
		passed += fmt.Sprint(s.Passed(0, node), " ")
	}
	gone := h.Gone()
	for _, v := range []any{s.State, s.Steps, s.Waiting, s.Timers, s.Queued, s.Positions, s.Marks, s.Result, s.Error, passed, timeline, h.Events, gone} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
		b.WriteByte('\n')
	}
	return b.String()
}

// counted reads documents of the space, and counts them and their bytes.
type counted struct {
	w           *world
	docs, bytes int
}

func (c *counted) read(doc string) (model.Value, error) {
	v := c.w.s.Value(doc)
	c.docs++
	c.bytes += len(v.String())
	return v, nil
}

// A reader that is used again says what a fresh one says, after every step: of calls, failures, timers and signals, of snapshots, of a
// retry, of a reset, and of the end.
func TestReader_UsedAgainSaysWhatAFreshOneSays(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 5))
			w, s := unstable(t, false, "    pad = []\n    for i in range(12):\n        xs = parallel(inc(i), helper(i))\n        pad.append(str(xs) * 60)\n        pad = pad[-3:]\n    b = retry(shaky(\"x\" * 9000), attempts = 2, backoff = \"1m\")\n    c = wait(\"go\")\n    ys = parallel([inc(x) for x in [c, c]])\n    sleep(\"1h\")\n    return ys\ndef helper(n):\n    x = retry(shaky(\"y\" * 5000), attempts = 4, backoff = \"1m\")\n    return x")
			s.failures = 2
			c := &counted{w: w}
			again := NewReader("r", c.read)
			checks := 0
			check := func() {
				t.Helper()
				if rng.IntN(4) == 0 {
					return // a reader does not see every step
				}
				checks++
				fresh := NewReader("r", c.read)
				if got, want := seen(t, again), seen(t, fresh); got != want {
					t.Fatalf("after %s a reader that is used again says\n%.3000s\na fresh one says\n%.3000s", w.s.Value(Doc("r")).Get("head"), got, want)
				}
			}
			steps := func() {
				for {
					action, task, is := w.task()
					if !is {
						return
					}
					w.end(action, task)
					check()
				}
			}
			w.start("r", "{}")
			check()
			for round := 0; w.s.Value(Doc("r")).Get("state").String() == `"running"` && round < 40; round++ {
				steps()
				if err := w.Advance(time.Minute); err != nil {
					t.Fatal(err)
				}
				check()
				if round == 2 {
					w.send(StreamReset, "", `{"run":"r","step":3}`)
					check()
				}
				if round == 3 {
					w.send(StreamSignal, "", `{"run":"r","signal":"go","value":7}`)
					check()
				}
				if round == 5 {
					w.send(StreamCancel, "", `{"run":"r","why":"enough"}`)
					check()
					w.send(StreamRetry, "", `{"run":"r"}`)
					check()
				}
				if round > 5 {
					if err := w.Advance(time.Hour); err != nil {
						t.Fatal(err)
					}
					check()
				}
			}
			check()
			if checks < 20 {
				t.Errorf("only %d checks", checks)
			}
		})
	}
}

// A further reading of a run reads the documents that have changed and applies the steps that it has made since: as much after 1,000 steps as after 100.
func TestReader_AFurtherReadingCostsWhatHasHappenedSince(t *testing.T) {
	t.Parallel()
	const n = 1001
	w := newFan(t, n)
	w.start("r", "{}")
	c := &counted{w: w}
	r := NewReader("r", c.read)
	costs := map[int]counted{}
	for i, task := range w.s.Tasks("inc") {
		w.end("inc", task)
		switch i {
		case 98, 998:
			seen(t, r)
		case 99, 999:
			*c = counted{w: w}
			seen(t, r)
			costs[i] = *c
		}
		if i == 999 {
			break
		}
	}
	fresh := &counted{w: w}
	if _, err := NewReader("r", fresh.read).Status(); err != nil {
		t.Fatal(err)
	}
	t.Logf("a further reading costs %+v, the first one then %d documents with %d bytes", costs, fresh.docs, fresh.bytes)
	const page = 2 * pageBytes   // as JSON in JSON
	for i, cost := range costs { // any order: each on its own
		if cost.docs > 12 || cost.bytes > 3*page {
			t.Errorf("after %d steps, a further reading has read %d documents with %d bytes", i, cost.docs, cost.bytes)
		}
	}
	if fresh.bytes < 2*page {
		t.Errorf("the run has only %d bytes", fresh.bytes)
	}
}

// newFan returns a world with a workflow that calls an action for each of n elements at the same time.
func newFan(t *testing.T, n int) *world {
	t.Helper()
	w, _ := unstable(t, false, fmt.Sprintf("    xs = parallel([inc(i) for i in range(%d)])\n    return len(xs)", n))
	return w
}

// The first reading of a run with many pending calls reads none of their tasks.
func TestReader_ReadsNoTasks(t *testing.T) {
	t.Parallel()
	w := newFan(t, 2000)
	w.start("r", "{}")
	tasks := 0
	reads := ReadsOf("r")
	s, err := NewReader("r", func(doc string) (model.Value, error) {
		if model.IsTaskDoc(doc) {
			tasks++
		}
		if !reads(doc) {
			t.Errorf("it reads %s", doc)
		}
		return w.s.Value(doc), nil
	}).Status()
	if err != nil || len(s.Waiting) != 2000 || tasks > 0 {
		t.Errorf("%v: it waits for %d, and %d tasks were read", err, len(s.Waiting), tasks)
	}
	if _, _, is := space.TaskIn(Doc("r"), w.s.Value(Doc("r"))); is {
		t.Error("the document of a run is a task")
	}
}
