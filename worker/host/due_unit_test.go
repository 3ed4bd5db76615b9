package host

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/replica"
)

// itemBus has one item.
type itemBus struct {
	Bus
	there model.StateDoc
	saved []model.StateDoc
}

func (b *itemBus) LoadItem(context.Context, string, string) (model.StateDoc, error) {
	return b.there, nil
}

func (b *itemBus) SaveState(_ context.Context, _ string, docs []model.StateDoc, _ *model.StateDoc) error {
	b.saved = append(b.saved, docs...)
	return nil
}

// The earlier of two times counts, whatever their sequences.
func TestDue_AnEarlierSavedTimeStays(t *testing.T) {
	for _, c := range []struct {
		name    string
		known   model.StateDoc
		at      int64
		seq     uint64
		want    int64 // the saved time, 0 for none
		wantSeq uint64
	}{
		{"an earlier time of a later state", dueItem(100, 9), 200, 5, 0, 0},
		{"an earlier time of an older state is saved again", dueItem(100, 3), 200, 5, 100, 5},
		{"a later time is replaced", dueItem(300, 9), 200, 5, 200, 10},
		{"no time", model.StateDoc{}, 200, 5, 200, 5},
	} {
		h := newTestHost(t, 0)
		b := &itemBus{there: c.known}
		h.saver.bus = b
		if _, err := h.saver.saveEarlier(t.Context(), c.at, c.seq); err != nil {
			t.Fatal(err)
		}
		if got := readDue(b.saved); got != c.want || c.want > 0 && b.saved[0].Seq != c.wantSeq {
			t.Errorf("%s: saved %+v, want %d at %d", c.name, b.saved, c.want, c.wantSeq)
		}
	}
}

// The earliest event that a commit leaves waiting decides when it is due.
func TestDue_TheEarliestWaitingEventOfACommitCounts(t *testing.T) {
	send := func(to string, slot uint64, at int64) model.Send {
		return model.Send{To: to, Slot: slot, NotBefore: at}
	}
	for _, c := range []struct {
		name  string
		sends []model.Send
		want  int64
	}{
		{"the second", []model.Send{send("s", 1, 300), send("s", 2, 100), send("s", 3, 200)}, 100},
		{"the first", []model.Send{send("s", 1, 100), send("s", 2, 300)}, 100},
		{"an event without a time", []model.Send{send("s", 1, 300), send("s", 0, 0)}, atOnce},
		{"an event to another space", []model.Send{send("t", 1, 100)}, 0},
	} {
		commit := &model.Commit{Space: "s", Txs: []model.Tx{{Sends: c.sends}}}
		if got := leavesToDo(commit); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// A follow-up is saved as due at once, unless nothing was due before: then the lane leads to it.
func TestDue_AFollowUpIsSavedAsDueAtOnce(t *testing.T) {
	for saved, want := range map[int64]int64{unknownDue: atOnce, atOnce: atOnce, 5000: atOnce, 0: 0} {
		h := newTestHost(t, 0)
		r := replica.New("s")
		r.Own = []model.Event{{Space: "s", Stream: "x", ID: "e"}}
		core, err := newTestCoreOf("w", ledger.Limits{}, r)
		if err != nil {
			t.Fatal(err)
		}
		h.core, h.graph = core, h.newGraphParts(core)
		h.saver.dueAt = saved
		var c unsavedState
		if h.saver.takeDue(h.core, h.nextDue(), &c); c.dueAt != want {
			t.Errorf("with %d saved, %d is to be saved, want %d", saved, c.dueAt, want)
		}
	}
}

// A failed save may have taken effect, so the deletion of the item is saved again.
func TestDue_AfterAFailedSaveTheDeletionIsSavedAgain(t *testing.T) {
	h := newTestHost(t, 0)
	h.saver.dueAt = 5000
	h.saver.settle(h.core, unsavedState{moved: true, dueAt: 0}, model.ErrStopped)
	var c unsavedState
	h.saver.takeDue(h.core, h.nextDue(), &c)
	if len(c.Docs) != 1 || c.Docs[0].Data != nil {
		t.Errorf("the next checkpoint has %+v, want the deletion of the item", c.Docs)
	}
}

// listBus lists due spaces, different ones each time.
type listBus struct {
	Bus
	lists [][]model.Due
}

func (b *listBus) Partitions() int { return 1 }

func (b *listBus) DueSpaces(context.Context, int) ([]model.Due, error) {
	if len(b.lists) == 0 {
		return nil, nil
	}
	list := b.lists[0]
	b.lists = b.lists[1:]
	return list, nil
}

// testPartition returns a partition that serves no space, since it has no programs.
func testPartition(ctx context.Context, b Bus) *servedPartition {
	cfg := &Config{Now: time.Now, Programs: func(string) (Program, error) { return nil, nil }, BeforeLeaving: func() {}}
	return &servedPartition{
		env: env{bus: b, ctx: ctx, cfg: cfg, counters: &counters{}}, hosts: map[string]*host{}, asleep: map[string]laneBacklog{}, waiting: map[string][]func(*host){},
		wakeups: newWakeups(),
	}
}

// Due spaces are listed when the partition starts, and again once no replica can lag that far. The second
// entry of a space that was served here in between is stale.
func TestDue_ListsOfSpaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		b := &listBus{lists: [][]model.Due{
			{{Space: "served", At: 100}, {Space: "first", At: 200}},
			{{Space: "served", At: 100}, {Space: "first", At: 200}, {Space: "second", At: 300}},
		}}
		p := testPartition(ctx, b)
		p.wakeups.place()
		p.wakeups.served["served"] = true
		ended := make(chan error)
		go func() { ended <- p.listDue(ctx) }() // ends with ctx
		due := func() map[string]int64 {
			synctest.Wait()
			p.mu.Lock()
			defer p.mu.Unlock()
			return maps.Clone(p.wakeups.at)
		}
		if at := due(); at["first"] != 200 || len(at) != 1 {
			t.Errorf("after the first list %v are due", at)
		}
		pass := time.NewTimer(port.StaleLeader + time.Second)
		<-pass.C
		if at := due(); at["first"] != 200 || at["second"] != 300 || len(at) != 2 {
			t.Errorf("after the second list %v are due", at)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A space that was woken when due, without success, is woken again.
func TestDue_ASpaceThatWasNotServedIsWokenAgain(t *testing.T) {
	p := testPartition(t.Context(), &listBus{})
	now := time.Now()
	p.cfg.Now = func() time.Time { return now }
	p.wakeups.set("s", now.UnixMilli()-1)
	if next := p.wakeThose(); next <= now.UnixMilli() || next > now.Add(maxNap).UnixMilli() {
		t.Errorf("the space is woken again at %d, now is %d", next, now.UnixMilli())
	}
}
