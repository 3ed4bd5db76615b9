package history_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/replica"
)

// scriptedLog is the log of a space as one replica after another shows it.
type scriptedLog struct {
	port.Client // nil: for methods that the test does not call
	entries     []model.LogEntry
	state       model.SpaceState
	head        uint64
	epoch       uint64
	shows       []int  // how many entries the next reads see; afterwards all
	read        func() // called after each read, if set
	lagging     int    // how many of the next reads of the state see old
	old         model.SpaceState
	follow      []func(deliver func(model.LogEntry)) error
}

// setting returns an entry that sets document n, at a sequence after prev.
func setting(seq, prev uint64, n int64) model.LogEntry {
	tx := model.Tx{N: seq, By: "test", Writes: []model.Write{{Doc: "n", Value: model.Int(n)}}}
	c := &model.Commit{Version: model.CommitVersion, Space: "s", Runtime: "w", Epoch: 1, Txs: []model.Tx{tx}}
	return model.LogEntry{Space: "s", Seq: seq, Prev: prev, Data: model.AppendCommit(nil, c, model.AppendTx(nil, &tx))}
}

// settings are entries that count document n up from 1.
func settings(n uint64) (list []model.LogEntry) {
	for seq := uint64(1); seq <= n; seq++ {
		list = append(list, setting(seq, seq-1, int64(seq)))
	}
	return list
}

func (h *scriptedLog) Epoch() uint64                                { return h.epoch }
func (h *scriptedLog) Head(context.Context, string) (uint64, error) { return h.head, nil }

func (h *scriptedLog) LoadState(context.Context, string) (model.SpaceState, error) {
	return h.state, nil
}

func (h *scriptedLog) LoadPart(_ context.Context, _, key string) (model.SpaceState, error) {
	if h.lagging > 0 {
		h.lagging--
		return h.old.Part(key), nil
	}
	return h.state.Part(key), nil
}

func (h *scriptedLog) LoadMark(context.Context, string) (model.StateDoc, time.Time, error) {
	return h.state.Mark, time.Time{}, nil
}

func (h *scriptedLog) ReadLog(_ context.Context, _ string, after uint64, limit int) (found []model.LogEntry, err error) {
	seen := h.entries
	if len(h.shows) > 0 {
		seen, h.shows = seen[:h.shows[0]], h.shows[1:]
	}
	for _, e := range seen {
		if e.Seq > after && len(found) < limit {
			found = append(found, e)
		}
	}
	if h.read != nil {
		h.read()
	}
	return found, nil
}

func (h *scriptedLog) FollowSpace(ctx context.Context, _ string, _ uint64, deliver func(model.LogEntry)) error {
	if len(h.follow) == 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	next := h.follow[0]
	h.follow = h.follow[1:]
	return next(deliver)
}

// within runs a test in virtual time, with a context that ends.
func within(t *testing.T, f func(ctx context.Context)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		f(ctx)
	})
}

// The leader knows where the log ends; a replica that shows less is read again. A replica that shows nothing
// does not mean that the document does not exist.
func TestRead_ALaggingReplicaIsReadAgain(t *testing.T) {
	for _, shows := range [][]int{{0}, {1}, {0, 1, 1, 0}} {
		within(t, func(ctx context.Context) {
			d, err := history.Read(ctx, &scriptedLog{entries: settings(2), head: 2, shows: shows}, "s", "n")
			if err != nil || d.Value.String() != "2" || d.Seq != 2 {
				t.Errorf("with replicas that show %v: %+v, %v", shows, d, err)
			}
		})
		within(t, func(ctx context.Context) {
			c, err := history.ReadContents(ctx, &scriptedLog{entries: settings(2), head: 2, shows: shows}, "s")
			if err != nil || c.Seq != 2 || c.Doc("n").Value.String() != "2" {
				t.Errorf("the space, with replicas that show %v: %+v, %v", shows, c, err)
			}
		})
	}
}

// A state that a read has begun with is not continued with the log of another epoch, even if that log fits.
func TestRead_DoesNotMixStatesOfTwoEpochs(t *testing.T) {
	within(t, func(ctx context.Context) {
		kept := model.StateDoc{Doc: "kept", Data: []byte(`5`), Seq: 5, Rev: 1}
		h := &scriptedLog{state: model.SpaceState{Docs: []model.StateDoc{kept}, Mark: markAt(5, 2)}, entries: []model.LogEntry{setting(6, 4, 6)}, head: 6}
		h.read = func() { h.epoch, h.state, h.read = 1, model.SpaceState{Mark: markAt(4, 1)}, nil }
		d, err := history.Read(ctx, h, "s", "kept")
		if err != nil || !d.Value.IsAbsent() || d.Read != 6 {
			t.Errorf("read %+v, %v", d, err)
		}
	})
}

func markAt(seq, rev uint64) model.StateDoc {
	data, err := (&model.Mark{Version: model.MarkVersion, Epoch: 1, Owner: "w"}).Encode()
	if err != nil {
		panic(err)
	}
	return model.StateDoc{Data: data, Seq: seq, Rev: rev}
}

// A replica that shows an old checkpoint for long, behind which the log is purged, is no loss.
func TestRead_AnOldCheckpointOfALaggingReplicaIsNoLoss(t *testing.T) {
	within(t, func(ctx context.Context) {
		n := model.StateDoc{Doc: "n", Data: []byte(`8`), Seq: 8, Rev: 7}
		h := &scriptedLog{
			old: model.SpaceState{Mark: markAt(2, 3)}, lagging: 40,
			state: model.SpaceState{Docs: []model.StateDoc{n}, Mark: markAt(8, 9)}, entries: []model.LogEntry{setting(9, 8, 9)}, head: 9,
		}
		if d, err := history.Read(ctx, h, "s", "n"); err != nil || d.Value.String() != "9" || h.lagging > 0 {
			t.Errorf("read %+v, %v, with %d lagging answers left", d, err, h.lagging)
		}
	})
}

// A read does not wait for a head that the store has lost since the leader reported it.
func TestReadContents_GoesBackWithTheStore(t *testing.T) {
	within(t, func(ctx context.Context) {
		h := &scriptedLog{entries: settings(1), head: 5}
		h.read = func() { h.epoch = 1 }
		if _, err := history.ReadContents(ctx, h, "s"); !errors.Is(err, model.ErrRewound) {
			t.Errorf("the error is %v", err)
		}
	})
}

// inNoLane is a log with lanes in which there is no event.
type inNoLane struct{ *scriptedLog }

func (inNoLane) FindEvents(context.Context, string, string) ([]model.Message, error) { return nil, nil }

// If commits are purged while the origin of an event is searched, it is not known whether one of them has sent the event.
func TestTree_APurgeDuringTheSearchDoesNotMeanThatAnEventWasNeverSent(t *testing.T) {
	for _, purged := range []bool{false, true} {
		within(t, func(ctx context.Context) {
			h := &scriptedLog{entries: settings(6), head: 6}
			reads := 0
			h.read = func() {
				if reads++; purged && reads == 2 {
					h.entries = h.entries[5:]
				}
			}
			tree, err := history.ReadTree(ctx, inNoLane{h}, history.TreeQuery{Space: "s", Event: model.TxID{Space: "s", Epoch: 1, N: 2}.Event(0)})
			want := lineage.Dropped
			if purged {
				want = lineage.Forgotten
			}
			if err != nil || tree.Root.State != want {
				t.Errorf("purged: %v: %+v, %v", purged, tree, err)
			}
		})
	}
}

// A timer waits though the commit that has set it is purged; one that does not wait is forgotten.
func TestTree_ATimerWaitsLongerThanTheLogReachesBack(t *testing.T) {
	within(t, func(ctx context.Context) {
		id := model.TxID{Space: "s", Epoch: 1, N: 1}.Event(0)
		tx := model.Tx{N: 1, By: "test", Sends: []model.Send{{ID: id, To: "s", Stream: "ring", Timer: "t", Slot: 1, NotBefore: 5000}}}
		c := &model.Commit{Version: model.CommitVersion, Space: "s", Runtime: "w", Epoch: 1, Txs: []model.Tx{tx}}
		sets := model.LogEntry{Space: "s", Seq: 1, Data: model.AppendCommit(nil, c, model.AppendTx(nil, &tx))}
		covered := replica.New("s")
		if err := history.Replay(ctx, &scriptedLog{entries: []model.LogEntry{sets}}, covered); err != nil {
			t.Fatal(err)
		}
		point, err := covered.Checkpoint()
		if err != nil {
			t.Fatal(err)
		}
		h := inNoLane{&scriptedLog{entries: []model.LogEntry{setting(2, 1, 2)}, head: 2, state: model.SpaceState{Later: point.Docs, Mark: point.Mark}}}
		for stream, want := range map[string]lineage.State{"ring": lineage.Waiting, "other": lineage.Forgotten} { // any order
			tree, err := history.ReadTree(ctx, h, history.TreeQuery{Space: "s", Stream: stream, Event: id})
			if err != nil || tree.Root.State != want {
				t.Errorf("%s: %+v, %v", stream, tree, err)
			}
		}
	})
}

func TestReplay_ContinuesAfterAPage(t *testing.T) {
	r := replica.New("s")
	if err := history.Replay(t.Context(), &scriptedLog{entries: settings(600)}, r); err != nil || r.Seq != 600 {
		t.Errorf("replayed up to %d, %v", r.Seq, err)
	}
}

// Where commits were purged, a checkpoint replaces them, though perhaps not at once. An entry whose
// predecessor is missing is never applied.
func TestReadContents_AGapIsCoveredByACheckpoint(t *testing.T) {
	within(t, func(ctx context.Context) {
		_, err := history.ReadContents(ctx, &scriptedLog{entries: []model.LogEntry{setting(1, 0, 1), setting(3, 2, 3)}, head: 3}, "s")
		if !errors.Is(err, model.ErrPurged) {
			t.Errorf("the error is %v", err)
		}
	})
	within(t, func(ctx context.Context) {
		h := &scriptedLog{entries: []model.LogEntry{setting(3, 2, 3)}, head: 3}
		covered := replica.New("s")
		if err := history.Replay(ctx, &scriptedLog{entries: settings(2)}, covered); err != nil {
			t.Fatal(err)
		}
		c, err := covered.Checkpoint()
		if err != nil {
			t.Fatal(err)
		}
		h.read = func() { h.state.Docs, h.state.Mark = c.Docs, c.Mark }
		got, err := history.ReadContents(ctx, h, "s")
		if err != nil || got.Seq != 3 || got.Doc("n").Value.String() != "3" {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// followed returns what Changes delivers, at most so many changes, and the error that ended it.
func followed(ctx context.Context, h *scriptedLog, most int) (seen []string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch := history.Watch{Bus: h, Space: "s", Doc: "n"}
	err = watch.Changes(ctx, func(c history.Change) {
		seen = append(seen, fmt.Sprint(c.Value, " at ", c.Revision, " ", c.Rewound))
		if len(seen) == most {
			cancel()
		}
	})
	return seen, err
}

func TestFollow_ContinuesAfterAPurge(t *testing.T) {
	within(t, func(ctx context.Context) {
		h := &scriptedLog{entries: settings(1), head: 1}
		h.follow = append(h.follow, func(func(model.LogEntry)) error {
			h.entries, h.head = settings(3), 3
			return fmt.Errorf("follow: %w", model.ErrPurged)
		})
		if seen, err := followed(ctx, h, 2); !slices.Equal(seen, []string{"1 at 1 false", "3 at 3 false"}) {
			t.Errorf("seen were %q, %v", seen, err)
		}
	})
}

// When the store has gone back, a watcher is notified once, and receives the present document even if its
// revision is lower.
func TestFollow_GoesBackWithTheStore(t *testing.T) {
	within(t, func(ctx context.Context) {
		h := &scriptedLog{entries: settings(5), head: 5}
		h.follow = append(h.follow, func(func(model.LogEntry)) error {
			h.entries, h.head, h.epoch = settings(1), 1, 1
			return model.ErrRewound
		}, func(deliver func(model.LogEntry)) error {
			deliver(setting(2, 1, 20))
			return nil
		})
		want := []string{"5 at 5 false", "1 at 1 true", "20 at 2 false"}
		if seen, err := followed(ctx, h, 3); !slices.Equal(seen, want) {
			t.Errorf("received %q, %v, want %q", seen, err, want)
		}
	})
}

// What was read of a store while it went back may be lost.
func TestFollow_ReadsAgainAfterARewind(t *testing.T) {
	within(t, func(ctx context.Context) {
		h := &scriptedLog{entries: settings(5), head: 5}
		h.read = func() { h.entries, h.head, h.epoch, h.read = settings(1), 1, 1, nil }
		if seen, err := followed(ctx, h, 1); !slices.Equal(seen, []string{"1 at 1 false"}) {
			t.Errorf("seen were %q, %v", seen, err)
		}
	})
}

// Nothing after an entry that cannot be applied is delivered: it would be a value that the document never
// had.
func TestFollow_NothingIsDeliveredAfterAnInvalidEntry(t *testing.T) {
	within(t, func(ctx context.Context) {
		h := &scriptedLog{entries: settings(1), head: 1}
		h.follow = append(h.follow, func(deliver func(model.LogEntry)) error {
			deliver(model.LogEntry{Space: "s", Seq: 2, Prev: 1, Data: []byte("no commit")})
			deliver(setting(3, 2, 3))
			return nil
		})
		if seen, err := followed(ctx, h, 9); !slices.Equal(seen, []string{"1 at 1 false"}) || err == nil {
			t.Errorf("seen were %q, %v", seen, err)
		}
	})
}

// A call of Changes after one that ended with an error continues where that ended: nothing is delivered
// twice, and a rewind in between is reported.
func TestWatch_ContinuesWhereACallHasEnded(t *testing.T) {
	within(t, func(ctx context.Context) {
		lost := errors.New("the source is lost")
		h := &scriptedLog{entries: settings(5), head: 5}
		ends := func(func(model.LogEntry)) error { return lost }
		var seen []string
		watch := history.Watch{Bus: h, Space: "s", Doc: "n"}
		call := func() {
			t.Helper()
			h.follow = append(h.follow, ends)
			err := watch.Changes(ctx, func(c history.Change) { seen = append(seen, fmt.Sprint(c.Value, " at ", c.Revision, " ", c.Rewound)) })
			if !errors.Is(err, lost) {
				t.Errorf("the watch ended with %v", err)
			}
		}
		call()
		call() // nothing new
		h.entries, h.head = settings(6), 6
		call()
		h.entries, h.head, h.epoch = settings(2), 2, 1
		call()
		if want := []string{"5 at 5 false", "6 at 6 false", "2 at 2 true"}; !slices.Equal(seen, want) {
			t.Errorf("received %q, want %q", seen, want)
		}
	})
}

// A caller that has the document as of a revision receives newer values, or the present one of a store that
// went back during the first read.
func TestWatch_FromARevisionDeliversNewerValues(t *testing.T) {
	within(t, func(ctx context.Context) {
		from := func(h *scriptedLog, revision uint64, most int) (seen []string) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			watch := history.Watch{Bus: h, Space: "s", Doc: "n"}
			watch.From(revision)
			_ = watch.Changes(ctx, func(c history.Change) {
				if seen = append(seen, fmt.Sprint(c.Value, " at ", c.Revision, " ", c.Rewound)); len(seen) == most {
					cancel()
				}
			})
			return seen
		}
		next := func(deliver func(model.LogEntry)) error { deliver(setting(6, 5, 6)); return nil }
		h := &scriptedLog{entries: settings(5), head: 5, follow: []func(func(model.LogEntry)) error{next}}
		if seen := from(h, 5, 1); !slices.Equal(seen, []string{"6 at 6 false"}) {
			t.Errorf("from revision 5, received %q", seen)
		}
		if seen := from(&scriptedLog{entries: settings(5), head: 5}, 3, 1); !slices.Equal(seen, []string{"5 at 5 false"}) {
			t.Errorf("from revision 3, received %q", seen)
		}
		h = &scriptedLog{entries: settings(5), head: 5}
		h.read = func() { h.entries, h.head, h.epoch, h.read = settings(1), 1, 1, nil }
		if seen := from(h, 5, 1); !slices.Equal(seen, []string{"1 at 1 true"}) {
			t.Errorf("from revision 5 of a store that goes back, received %q", seen)
		}
	})
}

// LoadItem finds nothing: no operator has decided anything.
func (h *scriptedLog) LoadItem(context.Context, string, string) (model.StateDoc, error) {
	return model.StateDoc{}, nil
}
