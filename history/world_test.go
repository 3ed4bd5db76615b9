package history_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/leaks"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

func TestMain(m *testing.M) { leaks.VerifyTestMain(m) }

// world is a worldtest.World whose workers run the program actor.
type world struct{ *worldtest.World }

func newWorld(t *testing.T) *world {
	return &world{worldtest.New(t, membus.Config{Partitions: 2, MaxPayload: 256 << 10, Horizon: 2 * time.Hour})}
}

// deployed runs a test in virtual time, with a worker and a coordinator.
func deployed(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.work("w1")
		w.Coordinator()
		test(t, w)
	})
}

// act is the script for the handler of the stream "do": it is the event's payload.
type act struct {
	End  string `json:"end,omitempty"` // "", fail, panic, until-repaired
	Send []sent `json:"send,omitempty"`
}

type sent struct {
	To     string `json:"to"`
	Stream string `json:"stream,omitempty"`
	Act    *act   `json:"act,omitempty"`
}

// script makes an act that sends these events.
func script(sends ...sent) *act { return &act{Send: sends} }

// to returns a send of an event with this act to a space; nothing, if do is nil.
func to(space string, do *act) sent { return sent{To: space, Act: do} }

func ends(how string) *act { return &act{End: how} }

// perform handles an event by its script.
func perform(tx *space.Tx, ev *model.Event) (model.Value, error) {
	for s := range ev.Payload.Get("send").Elements() {
		target, _ := s.Get("to").AsString()
		stream, ok := s.Get("stream").AsString()
		if !ok {
			stream = "do"
		}
		tx.Send(target, stream, s.Get("act"))
	}
	switch end, _ := ev.Payload.Get("end").AsString(); end {
	case "fail":
		return model.Value{}, errors.New("it must fail")
	case "panic":
		panic("it must panic")
	case "transient":
		return model.Value{}, space.Transient(errors.New("it may pass"))
	case "until-repaired":
		if repaired, _ := tx.Get("repaired").AsBool(); !repaired {
			return model.Value{}, errors.New("not repaired")
		}
	}
	done, _ := tx.Get("done").AsInt()
	tx.Set("done", done+1)
	return model.MustOf(done + 1), nil
}

func actor(t *testing.T) *space.Program {
	t.Helper()
	p := space.NewProgram("actor")
	repair := func(tx *space.Tx, _ *model.Event) (model.Value, error) {
		tx.Set("repaired", true)
		return model.Value{}, nil
	}
	alarm := func(tx *space.Tx, _ *model.Event) (model.Value, error) {
		tx.SetTimer("t", "do", tx.Now().Add(time.Hour), nil)
		return model.Value{}, nil
	}
	calm := func(tx *space.Tx, _ *model.Event) (model.Value, error) {
		tx.CancelTimer("t")
		return model.Value{}, nil
	}
	if err := errors.Join(p.Handle("do", perform), p.Handle("repair", repair), p.Handle("alarm", alarm), p.Handle("calm", calm)); err != nil {
		t.Fatal(err)
	}
	return p
}

// work starts a worker; spaces whose names begin with "idle" have no program.
func (w *world) work(id string) (kill func()) {
	w.Helper()
	p := actor(w.T)
	return w.Worker(worker.Config{ID: id, Options: worker.Options{History: 60 * 24 * time.Hour}, Programs: func(name string) (*space.Program, error) {
		if strings.HasPrefix(name, "idle") {
			return nil, nil
		}
		return p, nil
	}}).Crash
}

// send sends an event from outside and waits until it is stored.
func (w *world) send(to, id string, do *act) {
	w.Helper()
	w.Send(to, "do", id, string(model.MustOf(do).AppendJSON(nil)))
}

// rest passes ten seconds, in which all pending work is done.
func (w *world) rest() { w.Pass(10 * time.Second) }

func (w *world) tree(q history.TreeQuery) *history.Tree {
	w.Helper()
	t, err := history.ReadTree(context.Background(), w.Client, q)
	if err != nil {
		w.Fatal(err)
	}
	return t
}

// shape formats a tree in one line: space:state, with the events that it caused in parentheses.
func shape(n *history.TreeNode) string {
	text := n.Space + ":" + string(n.State)
	if n.Kind != history.KindSent {
		text = string(n.Kind) + " " + text
	}
	var below []string
	for _, c := range n.Caused {
		below = append(below, shape(c))
	}
	if n.More > 0 {
		below = append(below, fmt.Sprint("+", n.More))
	}
	if len(below) > 0 {
		text += "(" + strings.Join(below, " ") + ")"
	}
	return text
}

func (w *world) wantShape(q history.TreeQuery, want string) *history.Tree {
	w.Helper()
	t := w.tree(q)
	if got := shape(t.Root); got != want {
		w.Errorf("the tree of %s is\n %s, want\n %s", q.Event, got, want)
	}
	return t
}

// dead returns the dead letters of a space, or of all spaces.
func (w *world) dead(space string) []history.Dead {
	w.Helper()
	found, err := history.DeadLetters(w.Context(), w.Client, space, 0, 1000)
	if err != nil {
		w.Fatal(err)
	}
	return found
}

// letters lists the dead letters: "space stream event outcome payload", sorted.
func (w *world) letters() (list []string) {
	w.Helper()
	for _, d := range w.dead("") {
		list = append(list, fmt.Sprintf("%s %s %s %s %s", d.Space, d.Stream, d.Event, d.Outcome, d.Bytes()))
	}
	slices.Sort(list)
	return list
}
