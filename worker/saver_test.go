package worker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// counting is a program with one document, "n": how many events there were.
func counting(t *testing.T) *space.Program {
	t.Helper()
	p := space.NewProgram("counting")
	err := p.Handle("add", func(tx *space.Tx, _ *model.Event) (model.Value, error) {
		n, _ := tx.Get("n").AsInt()
		tx.Set("n", n+1)
		return model.Value{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func startWorker(t *testing.T, bus port.Bus, id string) *worker.Worker {
	t.Helper()
	p := counting(t)
	w, err := worker.New(bus, worker.Config{ID: id, Programs: func(string) (*space.Program, error) { return p, nil }})
	if err == nil {
		err = w.Start(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestWhatACrashedWorkerHadNotSavedIsSavedByTheNext is about an event that was
// handled and confirmed, but whose checkpoint was under way when its worker died.
// Nobody sends the space anything after that, and still its documents must reach
// the STATE bucket: the lane position must not have left the event behind.
func TestWhatACrashedWorkerHadNotSavedIsSavedByTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := membus.NewServer(membus.Config{Partitions: 1})
		client := server.Connect("client")
		defer client.Close()

		dying := server.Connect("w1")
		var saving atomic.Bool
		dying.Inject(func(op membus.Op) membus.Fate {
			if op.Label == "save" {
				saving.Store(true)
				return membus.Delay
			}
			return membus.Deliver
		})
		w1 := startWorker(t, dying, "w1")
		client.Send(model.Message{Space: "a", Stream: "add", ID: "e1"}, func(model.SendResult, error) {})
		time.Sleep(10 * time.Second) // ten checkpoints
		if head, _ := client.Head(t.Context(), "a"); head != 2 {
			t.Fatalf("the log ends at %d, want a takeover and a commit", head)
		}
		if !saving.Load() {
			t.Fatal("no checkpoint was tried")
		}
		w1.Kill()
		dying.Kill()

		living := server.Connect("w2")
		defer living.Close()
		w2 := startWorker(t, living, "w2")
		time.Sleep(10 * time.Second)
		st, err := client.LoadState(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if len(st.Docs) != 1 || string(st.Docs[0].Data) != "1" {
			t.Errorf("the bucket holds %+v, want n to be 1", st.Docs)
		}
		if err := w2.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
