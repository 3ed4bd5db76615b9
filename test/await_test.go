package test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
)

// ledger counts, and sends a follow-up with every second event.
func ledger() *settle.Program {
	return settle.NewProgram("ledger").
		Handle("add", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
			n, _ := tx.Get("n").AsInt()
			tx.Set("n", n+1)
			if n%2 == 0 {
				tx.Send(tx.Space(), "note", n)
			}
			return tx.Get("n"), nil
		}).
		Handle("note", func(_ *settle.Tx, ev *settle.Event) (settle.Value, error) { return ev.Payload, nil })
}

// On a real server, any process can find a receipt by the event's id, in a log of any length; and
// processes other than the sender can wait for it, even a plain NATS client.
func TestQ20_AReceiptIsFoundAndAwaitedByItsIDFromAnyProcess(t *testing.T) {
	t.Parallel()
	onBothServers(t, func(t *testing.T, base settle.Config) {
		base.Programs = settle.Always(ledger())
		d := deploy(t, base)
		ctx := testContext(t)
		b := connect(t, d)
		defer b.Close()
		other, err := settle.NewClient(b, settle.ClientConfig{ID: "other"})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()

		const n = 120
		results := make([]string, n)
		var waiting sync.WaitGroup
		for i := range n {
			waiting.Go(func() {
				rc, err := other.Space("alice").Await(ctx, "add", settle.ID(fmt.Sprint("e", i)))
				if err != nil {
					t.Error(err)
					return
				}
				results[i] = rc.Result.String()
			})
		}
		for i := range n { // one commit each, or nearly
			publish(ctx, t, b, "alice", "add", fmt.Sprint("e", i))
			if i%7 == 0 {
				if _, err := d.Client().Space("alice").Await(ctx, "add", settle.ID(fmt.Sprint("e", i))); err != nil {
					t.Fatal(err)
				}
			}
		}
		waiting.Wait()
		for i := range n {
			if results[i] != fmt.Sprint(i+1) {
				t.Errorf("event %d has the result %s", i, results[i])
			}
			h, err := history.FindReceipt(ctx, b, "alice", "add", fmt.Sprint("e", i))
			if err != nil || h == nil || h.Tx.Receipt.Result.String() != results[i] || h.Stored.IsZero() {
				t.Fatalf("event %d: found %+v, %v", i, h, err)
			}
			for _, s := range h.Tx.Sends {
				f, err := history.FindReceipt(ctx, b, "alice", "note", s.ID)
				if err != nil || f == nil || f.Tx.Receipt.Result.String() != fmt.Sprint(i) || f.Seq < h.Seq {
					t.Errorf("the follow-up of event %d: %+v, %v", i, f, err)
				}
			}
		}
		if h, err := history.FindReceipt(ctx, b, "alice", "add", "never"); h != nil || err != nil {
			t.Errorf("an event that was not sent: %+v, %v", h, err)
		}
	})
}

// With the server's own clock and purge: old handled events are purged, others stay, and an id that is
// older than the horizon is refused although the lane no longer has it.
func TestWhatIsPurgedFromTheLaneIsNotHandledAgain(t *testing.T) {
	t.Parallel()
	onBothServers(t, func(t *testing.T, base settle.Config) {
		base.Programs = settle.Always(ledger())
		base.Bus.Partitions = 1
		d := deploy(t, base)
		ctx := testContext(t)
		b := connect(t, d)
		defer b.Close()
		send := func(id string) *model.Receipt {
			t.Helper()
			publish(ctx, t, b, "alice", "add", id)
			rc, err := d.Client().Space("alice").Await(ctx, "add", settle.ID(id))
			if err != nil {
				t.Fatal(err)
			}
			return rc
		}
		timed := settle.TimedID(time.Now(), "order-17").String()
		if rc := send(timed); rc.Outcome != model.Handled {
			t.Fatalf("receipt %+v", rc)
		}
		send("last")
		if _, err := b.PurgeLane(ctx, 0, 1, time.Hour); err != nil { // by its clock, nothing is that old
			t.Fatal(err)
		}
		if _, there, err := b.FindEvent(ctx, "alice", "add", timed); !there || err != nil {
			t.Fatalf("a young event was purged: %v, %v", there, err)
		}
		if _, err := b.PurgeLane(ctx, 0, 1, 0); err != nil {
			t.Fatal(err)
		}
		if _, there, err := b.FindEvent(ctx, "alice", "add", timed); there || err != nil {
			t.Fatalf("an old event is there: %v, %v", there, err)
		}
		old := settle.TimedID(time.Now().Add(-model.DefaultHorizon-time.Minute), "order-16").String()
		if rc := send(old); rc.Outcome != model.Refused {
			t.Errorf("receipt %+v, want refused", rc)
		}
		if v, _, err := d.Client().Space("alice").Get(ctx, "n"); err != nil || v.String() != "2" {
			t.Errorf("n is %v, %v; want 2", v, err)
		}
	})
}
