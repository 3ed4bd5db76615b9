package ordered_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/ordered"
)

func TestServe_SendsToTheKeyItselfKeepTheirPlaceAcrossACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		h := accounts()
		var ready atomic.Bool
		h["hold"] = func(*ordered.Tx, *model.Event) (any, error) {
			if !ready.Load() {
				return nil, ordered.Transient(errors.New("not yet"))
			}
			return nil, nil
		}
		w.Send("alice", "pay", "e1", `{"cents":1,"to":"alice"}`)
		w.Send("alice", "hold", "e2")
		w.Send("alice", "pay", "e3", `{"cents":1}`)
		p1 := w.serve(ordered.Config{Name: "o1", Handlers: h, Attempts: 100}, nil)
		w.EventuallyEnded("alice", 1)
		w.Pass(3 * time.Second)
		p1.crash()
		ready.Store(true)
		p2 := w.serve(ordered.Config{Name: "o2", Handlers: h}, nil)
		w.EventuallyEnded("alice", 4)
		var got []string
		for _, rc := range w.Receipts("alice") {
			got = append(got, rc.Event)
		}
		if len(got) != 4 || got[1] != "e2" || got[2] != "e3" {
			t.Errorf("handled %v, want the send to itself last", got)
		}
		w.stop(p2)
	})
}

// More events than fit in the inbox and the lane buffer wait after one that blocks.
func TestServe_AFloodStaysInTheStreamAndIsHandledInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var ready atomic.Bool
		h := map[string]ordered.Handler{
			"hold": func(*ordered.Tx, *model.Event) (any, error) {
				if !ready.Load() {
					return nil, ordered.Transient(errors.New("not yet"))
				}
				return nil, nil
			},
			"add": func(tx *ordered.Tx, _ *model.Event) (any, error) {
				n, _ := tx.Get("n").AsInt()
				tx.Set("n", n+1)
				return n + 1, nil
			},
		}
		const flood = 10_000
		p := w.serve(ordered.Config{Name: "o1", Handlers: h, Attempts: 1000}, nil)
		w.Send("alice", "hold", "first")
		for i := range flood {
			w.Send("alice", "add", fmt.Sprint("e", i+1))
		}
		w.Pass(5 * time.Second)
		ready.Store(true)
		w.EventuallyEnded("alice", flood+1)
		for i, rc := range w.Receipts("alice")[1:] {
			if n, _ := rc.Result.AsInt(); int(n) != i+1 || rc.Event != fmt.Sprint("e", i+1) {
				t.Fatalf("event number %d is %s, with %d", i+1, rc.Event, n)
			}
		}
		w.stop(p)
	})
}

// illSave is a bus that saves nothing for a while.
type illSave struct {
	*membus.Bus
	ill atomic.Bool
}

func (b *illSave) SaveState(ctx context.Context, space string, docs []model.StateDoc, mark *model.StateDoc) error {
	if b.ill.Load() {
		return errors.New("the bucket is full")
	}
	return b.Bus.SaveState(ctx, space, docs, mark)
}

func TestServe_UnsavedStateIsNotPurgedAndSavedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		b := &illSave{Bus: w.Server.Connect("o1")}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- ordered.Serve(ctx, b, ordered.Config{Handlers: accounts(), History: 10 * time.Minute})
		}() // ends with ctx
		w.Send("alice", "pay", "e1", `{"cents":1}`)
		w.Pass(5 * time.Second)
		b.ill.Store(true)
		for i := range 5 {
			w.Send("alice", "pay", fmt.Sprint("e", i+2), `{"cents":1}`)
			w.Pass(10 * time.Minute)
		}
		w.Pass(40 * time.Minute)
		saved := w.Server.LoadState("alice").Mark.Seq
		for _, e := range w.Server.ReadLog("alice", saved, 100) {
			if err := e.Follows(saved); err != nil {
				t.Fatal(err)
			}
			saved = e.Seq
		}
		b.ill.Store(false)
		w.Pass(5 * time.Second)
		st := w.Server.LoadState("alice")
		if head := w.Server.Head("alice"); st.Mark.Seq != head {
			t.Errorf("saved up to %d, but the log ends at %d", st.Mark.Seq, head)
		}
		for _, d := range st.Docs {
			if d.Doc == "balance" && string(d.Data) != "6" {
				t.Errorf("the bucket has a balance of %s", d.Data)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		b.Close()
	})
}
