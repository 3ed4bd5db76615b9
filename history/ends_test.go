package history_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// archive is a scriptedLog with a lane and saved items.
type archive struct {
	scriptedLog
	lane  []model.Message
	items map[string]model.StateDoc
}

func (a *archive) Horizon() time.Duration { return time.Hour }

func (a *archive) FindEvent(_ context.Context, _, stream, id string) (model.Message, bool, error) {
	for _, m := range a.lane {
		if m.Stream == stream && m.ID == id {
			return m, true, nil
		}
	}
	return model.Message{}, false, nil
}

func (a *archive) ReadLane(_ context.Context, _ string, after uint64, limit int) (found []model.Message, err error) {
	for _, m := range a.lane {
		if m.Seq > after && len(found) < limit {
			found = append(found, m)
		}
	}
	return found, nil
}

func (a *archive) LoadItem(_ context.Context, _, key string) (model.StateDoc, error) {
	return a.items[key], nil
}

// commit appends a commit at a sequence after the last entry.
func (a *archive) commit(seq uint64, c model.Commit) {
	c.Version, c.Space, c.Runtime = model.CommitVersion, "s", "w"
	e := model.LogEntry{Space: "s", Seq: seq, Prev: a.head, Stored: time.Unix(int64(seq), 0).UTC()}
	var txs []byte
	for i := range c.Txs {
		txs = model.AppendTx(txs, &c.Txs[i])
	}
	e.Data = model.AppendCommit(nil, &c, txs)
	a.entries, a.head = append(a.entries, e), seq
}

// purge removes the entries below a sequence from the log.
func (a *archive) purge(below uint64) {
	a.entries = slices.DeleteFunc(slices.Clone(a.entries), func(e model.LogEntry) bool { return e.Seq < below })
}

// endTx returns the transaction that ended an event.
func endTx(n uint64, id string, lane uint64) model.Tx {
	return model.Tx{N: n, By: "handle add", Receipt: &model.Receipt{Event: id, Lane: lane, Outcome: model.Handled}}
}

func waiting(id string, slot uint64) *model.Waiting {
	return &model.Waiting{ID: id, Stream: "add", NotBefore: 1000, Slot: slot, Lane: 1, Seq: 1}
}

// wantReceipt checks where the receipt of an event is found; at is 0 for no receipt.
func (a *archive) wantReceipt(ctx context.Context, t *testing.T, id string, at uint64, want error) {
	t.Helper()
	h, err := history.FindReceipt(ctx, a, "s", "add", id)
	switch {
	case !errors.Is(err, want):
		t.Errorf("the receipt of %s: error %v, want %v", id, err, want)
	case (h != nil) != (at > 0) || h != nil && h.Seq != at:
		t.Errorf("the receipt of %s is %+v, want the one at %d", id, h, at)
	}
}

// A lane that had lost its end assigned the sequence of an event again. A cursor passed the sequence long
// ago, for another event; the receipt of this one comes after the time at which it was stored.
func TestFindReceipt_OfAnEventUnderAReusedSequence(t *testing.T) {
	within(t, func(ctx context.Context) {
		a := &archive{}
		a.commit(1, model.Commit{Epoch: 1, Cursor: model.Cursor{Floor: 5}, Txs: []model.Tx{endTx(1, "e1", 3)}})
		a.commit(2, model.Commit{Epoch: 1, Cursor: model.Cursor{Floor: 5}, Txs: []model.Tx{endTx(2, "e2", 3)}})
		a.lane = []model.Message{{Space: "s", Stream: "add", ID: "e2", Seq: 3, Stored: time.Unix(2, 0).UTC()}}
		a.wantReceipt(ctx, t, "e2", 2, nil)
	})
}

// The event was handled before the lane lost it and it was sent again. Other commits have passed its new
// sequence since, before the loss was detected.
func TestFindReceipt_OfARepeatedEventUnderAReusedSequence(t *testing.T) {
	for _, at := range []uint64{2, 4} {
		within(t, func(ctx context.Context) {
			a := &archive{}
			for seq := uint64(1); seq <= 5; seq++ {
				end := endTx(seq, fmt.Sprint("e", seq), 3)
				if seq == at {
					end = endTx(seq, "again", 7)
				}
				a.commit(seq, model.Commit{Epoch: 1, Cursor: model.Cursor{Floor: 5}, Txs: []model.Tx{end}})
			}
			a.lane = []model.Message{{Space: "s", Stream: "add", ID: "again", Seq: 3, Stored: time.Unix(3, 0).UTC()}}
			a.wantReceipt(ctx, t, "again", at, nil)
		})
	}
}

// A delayed event is done with in the lane before it is handled. Its slot leads on to the receipt: the saved
// slot may still have the event, be empty, or belong to another event.
func TestFindReceipt_OfAnEventThatHasWaited(t *testing.T) {
	slot := func(w *model.Waiting) model.StateDoc {
		data, err := w.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return model.StateDoc{Doc: model.StateKeyOfSlot(w.Slot), Data: data, Seq: 3, Rev: 1}
	}
	for name, items := range map[string]map[string]model.StateDoc{ // any order: the cases are independent
		"saved as waiting":     {"": {Seq: 1}, model.StateKeyOfSlot(7): slot(waiting("e1", 7))},
		"saved as gone":        {"": {Seq: 3}, model.StateKeyOfSlot(7): {Seq: 2, Rev: 2}},
		"another has the slot": {"": {Seq: 3}, model.StateKeyOfSlot(7): slot(waiting("e9", 7))},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(ctx context.Context) {
				a := &archive{items: items}
				a.commit(1, model.Commit{Epoch: 1, Cursor: model.Cursor{Floor: 1}, Txs: []model.Tx{{N: 1, By: "later", Later: waiting("e1", 7)}}})
				a.commit(2, model.Commit{Epoch: 1, Cursor: model.Cursor{Floor: 1}, Txs: []model.Tx{endTx(2, "e1", 1)}})
				a.commit(3, model.Commit{Epoch: 1, Cursor: model.Cursor{Floor: 2}, Txs: []model.Tx{{N: 3, By: "later", Later: waiting("e9", 7)}}})
				a.lane = []model.Message{{Space: "s", Stream: "add", ID: "e1", Seq: 1, NotBefore: 1000}}
				a.wantReceipt(ctx, t, "e1", 2, nil)
			})
		})
	}
}

// If the log is purged past the commit that made an event wait, the saved state shows whether it still waits:
// then it is open, and not forgotten.
func TestFindReceipt_OfAnEventThatWaitsLongerThanTheLog(t *testing.T) {
	for _, waits := range []bool{true, false} {
		within(t, func(ctx context.Context) {
			a := &archive{}
			a.commit(1, model.Commit{Epoch: 1, Cursor: model.Cursor{Floor: 1}, Txs: []model.Tx{{N: 1, By: "later", Later: waiting("e1", 7)}}})
			a.commit(5, model.Commit{Epoch: 1, Cursor: model.Cursor{Floor: 2}, Txs: []model.Tx{endTx(2, "e2", 2)}})
			a.lane = []model.Message{{Space: "s", Stream: "add", ID: "e1", Seq: 1, NotBefore: 1000}}
			c, err := history.ReadContents(ctx, a, "s")
			if err != nil {
				t.Fatal(err)
			}
			saved, err := c.Checkpoint()
			if err != nil {
				t.Fatal(err)
			}
			a.state.Mark = saved.Mark
			for _, d := range saved.Docs {
				if list := a.state.ListOf(d.Doc); waits || d.Doc != model.StateKeyOfSlot(7) {
					*list = append(*list, d)
				}
			}
			a.purge(5)
			if waits {
				a.wantReceipt(ctx, t, "e1", 0, nil)
			} else {
				a.wantReceipt(ctx, t, "e1", 0, history.ErrForgotten)
			}
		})
	}
}

// An id with a time is known to be forgotten beyond the horizon; for an id without a time nothing is known.
func TestFindReceipt_OfAnIDThatIsOlderThanTheHorizon(t *testing.T) {
	within(t, func(ctx context.Context) {
		a := &archive{}
		a.wantReceipt(ctx, t, model.TimedEventID(time.Now().Add(-59*time.Minute), "x"), 0, nil)
		a.wantReceipt(ctx, t, model.TimedEventID(time.Now().Add(-61*time.Minute), "x"), 0, history.ErrForgotten)
		a.wantReceipt(ctx, t, "plain", 0, nil)
	})
}

// A purge during a read makes its result inconclusive.
func TestFindReceipt_WhileTheLogIsPurged(t *testing.T) {
	within(t, func(ctx context.Context) {
		a := &archive{}
		a.commit(22, model.Commit{Epoch: 10, Txs: []model.Tx{{N: 1, By: "test"}}})
		a.commit(30, model.Commit{Epoch: 10, Txs: []model.Tx{{N: 9, By: "test"}}})
		a.wantReceipt(ctx, t, "s:10:5:0", 0, nil) // between two existing ones
		reads := 0
		a.read = func() {
			if reads++; reads == 4 {
				a.purge(30)
			}
		}
		a.wantReceipt(ctx, t, "s:10:5:0", 0, history.ErrForgotten)
		if reads < 5 {
			t.Errorf("the log was read %d times, which is too few for the test", reads)
		}
	})
}

// A scan that meets a gap has missed what was there.
func TestFindSent_OfAPartOfTheLogThatIsPurged(t *testing.T) {
	within(t, func(ctx context.Context) {
		a := &archive{}
		for seq := uint64(1); seq <= 5; seq++ {
			a.commit(seq, model.Commit{Epoch: 1, Txs: []model.Tx{{N: seq, By: "test"}}})
		}
		origin, s := &history.Handling{Space: "s", Seq: 2}, &model.Send{To: "s", Stream: "add", ID: "s:1:2:0"}
		if h, err := history.FindSent(ctx, a, origin, s); h != nil || err != nil {
			t.Errorf("%+v, %v: the event is still to be handled", h, err)
		}
		a.purge(4)
		if h, err := history.FindSent(ctx, a, origin, s); h != nil || !errors.Is(err, history.ErrForgotten) {
			t.Errorf("%+v, %v, want ErrForgotten", h, err)
		}
	})
}

// shrinking is an archive whose log loses its end after the head was read.
type shrinking struct {
	archive
	asked int
}

func (s *shrinking) Head(context.Context, string) (uint64, error) {
	if s.asked++; s.asked == 1 {
		return s.head + 5, nil
	}
	return s.head, nil
}

func TestFindReceipt_DoesNotWaitForATruncatedLog(t *testing.T) {
	within(t, func(ctx context.Context) {
		s := &shrinking{}
		s.commit(1, model.Commit{Takeover: true})
		s.commit(3, model.Commit{Epoch: 1, Txs: []model.Tx{{N: 1, By: "test"}}})
		if _, err := history.FindReceipt(ctx, s, "s", "add", "s:1:9:0"); !errors.Is(err, model.ErrRewound) {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestFindOrigin_OfATransactionThatWasUndone(t *testing.T) {
	within(t, func(ctx context.Context) {
		a := &archive{}
		a.commit(1, model.Commit{Takeover: true})
		send := func(n uint64) model.Tx {
			return model.Tx{N: n, By: "test", Sends: []model.Send{{ID: fmt.Sprintf("s:1:%d:0", n), To: "b", Stream: "add", Position: n}}}
		}
		a.commit(2, model.Commit{Epoch: 1, Txs: []model.Tx{send(1)}})
		a.commit(3, model.Commit{Epoch: 1, Txs: []model.Tx{send(3)}})
		if sent, err := history.FindOrigin(ctx, a, "s:1:3:0"); err != nil || sent == nil || sent.Origin.Seq != 3 {
			t.Errorf("%+v, %v", sent, err)
		}
		if sent, err := history.FindOrigin(ctx, a, "s:1:2:0"); sent != nil || !errors.Is(err, history.ErrNeverSent) {
			t.Errorf("%+v, %v, want ErrNeverSent", sent, err)
		}
		if sent, err := history.FindOrigin(ctx, a, "s:1:4:0"); sent != nil || err != nil {
			t.Errorf("%+v, %v: the event may still be sent", sent, err)
		}
	})
}

// An event that the cursor has set aside is not done, although later ones are.
func TestReadWaiting_IncludesEventsThatWereSetAside(t *testing.T) {
	within(t, func(ctx context.Context) {
		a := &archive{}
		a.commit(1, model.Commit{Epoch: 1, Cursor: model.Cursor{Floor: 3, Held: []uint64{2}}, Txs: []model.Tx{endTx(1, "e1", 1), endTx(2, "e3", 3)}})
		for seq := uint64(1); seq <= 4; seq++ {
			a.lane = append(a.lane, model.Message{Space: "s", Stream: "add", ID: fmt.Sprint("e", seq), Seq: seq, NotBefore: 5000})
		}
		all, exists, err := history.ReadWaiting(ctx, a, "s")
		if err != nil || !exists || len(all) != 2 || all[0].ID != "e2" || all[1].ID != "e4" {
			t.Errorf("%+v, %v, %v, want e2 and e4", all, exists, err)
		}
	})
}

// The next event is neither done with nor waiting for its predecessor; follow-ups of the space itself come
// after what was in the lane at that time.
func TestFirstOpen_IsTheNextEvent(t *testing.T) {
	within(t, func(ctx context.Context) {
		a := &archive{}
		own := endTx(2, "e1", 1)
		own.Sends = []model.Send{{ID: "s:1:2:0", To: "s", Stream: "note", Behind: 3}}
		a.commit(1, model.Commit{Epoch: 1, Cursor: model.Cursor{Floor: 1}, Txs: []model.Tx{own}})
		early := model.Message{Space: "s", Stream: "add", ID: "b:1:9:0", Seq: 2, Position: 2}
		next := model.Message{Space: "s", Stream: "add", ID: "e3", Seq: 3}
		late := model.Message{Space: "s", Stream: "add", ID: "e9", Seq: 9}
		for _, c := range []struct {
			lane []model.Message
			want string
		}{{[]model.Message{early, next, late}, "e3"}, {[]model.Message{early, late}, "s:1:2:0"}, {nil, "s:1:2:0"}} {
			a.lane = c.lane
			if ev, err := history.FirstOpen(ctx, a, "s"); err != nil || ev == nil || ev.ID != c.want {
				t.Errorf("%+v, %v, want %s", ev, err, c.want)
			}
		}
	})
}

// The last few receipts are searched backwards in stretches; sequences are those of the partition, and most
// belong to other spaces.
func TestReceipts_TheLastFewAreInOrderAndEachOnce(t *testing.T) {
	within(t, func(ctx context.Context) {
		a := &archive{}
		var want []string
		for i := uint64(1); i <= 60; i++ {
			tx := model.Tx{N: i, By: "test"}
			if i%7 == 0 {
				tx = endTx(i, fmt.Sprint("e", i), i)
				want = append(want, tx.Receipt.Event)
			}
			a.commit(10*i, model.Commit{Epoch: 1, Txs: []model.Tx{tx}})
		}
		for last := 1; last <= len(want); last++ {
			ids, err := listed(ctx, a, "s", history.ReceiptFilter{Last: last}, 100)
			if err != nil || !slices.Equal(ids, want[len(want)-last:]) {
				t.Errorf("the last %d are %v, %v, want %v", last, ids, err, want[len(want)-last:])
			}
		}
	})
}

// A node that is no plain computation writes documents with other names than its own.
func TestReadContents_OnlyPlainComputationsAreDocuments(t *testing.T) {
	within(t, func(ctx context.Context) {
		a := &archive{}
		a.commit(1, model.Commit{Epoch: 1})
		for _, o := range []space.Observation{{Node: "total"}, {Node: "effect", Shape: 7}} {
			data, err := json.Marshal(&o)
			if err != nil {
				t.Fatal(err)
			}
			a.state.Observations = append(a.state.Observations, model.StateDoc{Doc: model.StateKeyOfNode(o.Node), Data: data, Seq: 1, Rev: 1})
		}
		c, err := history.ReadContents(ctx, a, "s")
		if err != nil || !slices.Equal(c.Derived, []string{"total"}) {
			t.Errorf("derived are %v, %v", c.Derived, err)
		}
	})
}
