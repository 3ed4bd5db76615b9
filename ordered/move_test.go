package ordered_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/ordered"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// fullProgram has the handlers of accounts, and a computation.
func fullProgram(t *testing.T) *space.Program {
	p := space.NewProgram("accounts")
	err := p.Handle("pay", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
		cents, _ := ev.Payload.Get("cents").AsInt()
		n, _ := tx.Get("balance").AsInt()
		tx.Set("balance", n+cents)
		if to, ok := ev.Payload.Get("to").AsString(); ok && to != "" {
			tx.Send(to, "pay", payment{Cents: cents})
		}
		return model.Int(n + cents), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A deployment moves from ordered to full workers and back, over the same data, each time with a transfer and
// a follow-up in flight.
func TestMove_FullWorkersContinueAfterTheLastCommitAndViceVersa(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		sent := 0
		work := func() {
			for range 10 {
				sent++
				w.Send("alice", "pay", fmt.Sprint("e", sent), `{"cents":1,"to":"bob"}`)
				w.Send("alice", "pay", fmt.Sprint("own", sent), `{"cents":1,"to":"alice"}`)
			}
			w.Pass(20 * time.Millisecond)
		}
		for range 3 {
			p := w.serve(ordered.Config{Name: "o"}, nil)
			work()
			w.Pass(time.Second)
			work()
			w.stop(p)

			b := w.Server.Connect("w1")
			full, err := worker.New(b, worker.Config{ID: "w1", Programs: func(string) (*space.Program, error) { return fullProgram(t), nil }})
			if err != nil {
				t.Fatal(err)
			}
			if err := full.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			work()
			w.Pass(time.Second)
			work()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			if err := full.Stop(ctx); err != nil {
				t.Error(err)
			}
			cancel()
			b.Close()
		}
		last := w.serve(ordered.Config{Name: "o"}, nil)
		w.EventuallyEnded("alice", 3*sent)
		w.EventuallyEnded("bob", sent)
		w.wantOnceAndInOrder("alice", 3*sent)
		w.wantOnceAndInOrder("bob", sent)
		w.wantDoc("alice", "balance", fmt.Sprint(3*sent))
		w.wantDoc("bob", "balance", fmt.Sprint(sent))
		w.stop(last)
	})
}
