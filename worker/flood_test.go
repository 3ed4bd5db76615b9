package worker_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/internal/raced"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// flood sends n events to a space without waiting for each.
func (w *world) flood(space, stream string, from, n int) {
	w.Helper()
	done := make(chan error, n)
	for i := range n {
		w.Client.Send(model.Message{Space: space, Stream: stream, ID: fmt.Sprintf("e%d", from+i)}, func(_ model.SendResult, err error) { done <- err })
	}
	for range n {
		if err := <-done; err != nil {
			w.Fatal(err)
		}
	}
}

// inbox is the bound of a host's inbox.
const inbox = 4096

// A handler computes for long with thousands of events after it. The other spaces of the partition continue,
// memory stays bounded, and in the end all events are handled in order.
func TestFlood_ASlowSpaceDelaysNoOtherSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := book(t)
		computes := make(chan struct{})
		if err := p.Handle("slow", func(*space.Tx, *model.Event) (model.Value, error) {
			<-computes
			return model.Value{}, nil
		}); err != nil {
			t.Fatal(err)
		}
		cfg := worker.Config{ID: "w1", Programs: worldtest.Always(p)}
		cfg.LaneLimit = 100
		w1 := w.process(cfg, nil)
		const n = inbox + 3000
		w.flood("flooded", "slow", 1, n)
		w.Send("other", "add", "e1")
		began := time.Now()
		w.EventuallyEnded("other", 1)
		if took := time.Since(began); took > time.Second {
			t.Errorf("another space waited for %v", took)
		}
		for i := range 20 { // from here on the flood does not delay the others
			w.flood("flooded", "slow", n+1+i, 1)
			w.Send("other", "add", fmt.Sprintf("e%d", i+2))
			synctest.Wait()
		}
		w.wantHandled("other", worldtest.Numbered(21)...)
		if held := w1.Held().Inbox; held > inbox {
			t.Errorf("%d events in the inbox", held)
		}
		time.Sleep(5 * time.Second)
		w.WantPosition(0, 0)
		close(computes)
		w.EventuallyEnded("flooded", n+20)
		w.wantHandled("flooded", worldtest.Numbered(n+20)...)
		time.Sleep(3 * time.Second)
		w.WantPosition(0, w.Server.LaneEnd(0))
	})
}

// The same holds for an event that waits for a document of another space that does not arrive.
func TestFlood_ABlockedHeadDelaysNoOtherSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.worker("w1")
		w1.Bus.Inject(func(op membus.Op) membus.Fate {
			if op.Label == "load-part" && op.Space == "far" {
				return membus.Delay
			}
			return membus.Deliver
		})
		w.Send("flooded", "read", "e0", `"far"`)
		const n = 2*inbox + 3000 // the lane's limit, the inbox, and more
		w.flood("flooded", "add", 1, n)
		w.Send("other", "add", "e1")
		began := time.Now()
		w.EventuallyEnded("other", 1)
		if took := time.Since(began); took > time.Second {
			t.Errorf("another space waited for %v", took)
		}
		time.Sleep(5 * time.Second)
		if held := w1.Held().Inbox; held > inbox {
			t.Errorf("%d events in the inbox", held)
		}
		w.WantPosition(0, 0)
		w1.Bus.Inject(nil)
		w1.Bus.Release()
		w.EventuallyEnded("flooded", n+1)
		w.wantHandled("flooded", append([]string{"e0"}, worldtest.Numbered(n)...)...)
		time.Sleep(3 * time.Second)
		w.WantPosition(0, w.Server.LaneEnd(0))
		w.wantSaved("flooded", map[string]string{"n": fmt.Sprint(n)})
	})
}

// While the reader waits for a space that is slow but makes progress, the rest of the partition works: leases
// arrive, spaces are saved, and the worker can be stopped.
func TestFlood_OnlyTheReaderWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := book(t)
		if err := p.Handle("slow", func(tx *space.Tx, _ *model.Event) (model.Value, error) {
			tx.Set("n", 1)
			<-time.After(90 * time.Microsecond)
			return model.Value{}, nil
		}); err != nil {
			t.Fatal(err)
		}
		w1 := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(p)}, nil)
		w.Send("other", "add", "e1")
		const n = 25_000 // 2.25 s
		w.flood("flooded", "slow", 1, n)
		time.Sleep(500 * time.Millisecond)
		v := w.watch("other", "double")
		time.Sleep(200 * time.Millisecond)
		if v.last() != "2" {
			t.Errorf("a watcher of another space sees %q, want 2", v.last())
		}
		time.Sleep(time.Second)
		if len(w.Receipts("flooded")) == n {
			t.Fatal("the flood is over, and the test needs it to last")
		}
		if st := w.Server.LoadState("flooded"); st.Mark.Seq == 0 {
			t.Error("the space was not saved")
		}
		w1.Shutdown()
		w.process(worker.Config{ID: "w2", Programs: worldtest.Always(p)}, nil)
		time.Sleep(10 * time.Second)
		w.wantHandled("flooded", worldtest.Numbered(n)...)
	})
}

// In a flood with a short lane buffer, most events are read from the stream again, page by page, while more
// arrive.
func TestFlood_EventsWithoutRoomAreReadAgainInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		cfg := worker.Config{ID: "w1"}
		cfg.LaneLimit, cfg.MaxGroup = 5, 7
		w.process(cfg, nil)
		sent := 0
		for range 10 {
			for _, n := range []int{1, 600, 30, 2} {
				w.flood("a", "add", sent+1, n)
				w.flood("b", "add", sent+1, n)
				sent += n
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		w.wantHandled("a", worldtest.Numbered(sent)...)
		w.wantHandled("b", worldtest.Numbered(sent)...)
	})
}

// Every kind of event that cannot be handled ends in a receipt with the reason, and later events are handled.
func TestLane_AnUnhandleableEventEndsInARefusedReceipt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.worker("w1")
		for _, m := range []model.Message{
			{Stream: "add", ID: "broken", Payload: []byte(`{"n":`)},
			{Stream: "nosuch", ID: "e2"},
			{Stream: "add", ID: "far:7:1:0"},
			{Stream: "add", ID: "far:7:1:1", Payload: []byte(`1`)},
			{Stream: "add", ID: "plain", Position: 9}, // a client's event has no position, whatever it says
			{Stream: "add", ID: "binary", Payload: []byte{0xff, 0, 0x80}},
			{Stream: "add", ID: "fine"},
		} {
			m.Space = "s"
			w.SendMessage(m)
		}
		time.Sleep(3 * time.Second)
		var got []string
		for _, rc := range w.Receipts("s") {
			got = append(got, rc.Event+" "+string(rc.Outcome))
			if (rc.Error == "") != (rc.Outcome == model.Handled) {
				t.Errorf("%s: outcome %s, reason %q", rc.Event, rc.Outcome, rc.Error)
			}
		}
		want := []string{
			"broken refused", "e2 refused", "far:7:1:0 refused", "far:7:1:1 refused", "plain handled", "binary refused", "fine handled",
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("receipts %v, want %v", got, want)
		}
		w.WantPosition(0, 7)
		if got := w.Doc("s", "n"); got != "2" {
			t.Errorf("n is %s, want 2", got)
		}
	})
}

// While a space works off thousands of events, it is always reported as the one with the most, not only
// before it begins: the events that were read are handled a page at a time.
func TestFlood_TheBusiestSpaceIsReportedThroughoutItsBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := book(t)
		if err := p.Handle("slow", func(*space.Tx, *model.Event) (model.Value, error) {
			time.Sleep(time.Millisecond)
			return model.Value{}, nil
		}); err != nil {
			t.Fatal(err)
		}
		w1 := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(p)}, nil)
		n := raced.Fewer(3, 3) * inbox
		w.flood("hot", "slow", 1, n)
		for i := range 20 {
			w.sendMany(fmt.Sprint("cold", i), "add", 2)
		}
		looks := 0
		for range n / 50 { // longer than the space needs
			time.Sleep(100 * time.Millisecond)
			f, err := fleet.Look(t.Context(), w.Client)
			if err != nil {
				t.Fatal(err)
			}
			left := f.Partitions[0]
			if w1.Counts().Receipts >= uint64(n) {
				break // what remains is to save the position
			}
			if looks++; left.Busiest != "hot" || left.BusiestEvents <= left.Events/2 {
				t.Errorf("look %d: of %d events, the space with the most is %q with %d", looks, left.Events, left.Busiest, left.BusiestEvents)
			}
		}
		if looks < raced.Fewer(50, 2) {
			t.Errorf("only %d looks before all events were handled", looks)
		}
		w.EventuallyEnded("hot", n)
	})
}
