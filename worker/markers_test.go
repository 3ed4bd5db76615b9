package worker_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/space"
)

// savedItems returns how many items of a space the bucket has, markers included.
func (w *world) savedItems(name string) int {
	st := w.Server.LoadState(name)
	return len(st.Docs) + len(st.Observations)
}

// transact runs one transaction in an application that attaches for it.
func (w *world) transact(f func(tx *space.Tx) error) {
	w.Helper()
	a := w.attach("app")
	if err := a.Transact(w.Context(), "app", f); err != nil {
		w.Fatal(err)
	}
	a.close()
}

func TestMarkers_DocumentsThatComeAndGoLeaveNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Coordinator()
		w.process(frugal("w1"), nil)
		w.Send("s", "add", "e1")
		for round := range 20 {
			w.transact(func(tx *space.Tx) error {
				for i := range 50 {
					tx.Set(fmt.Sprintf("d%d-%d", round, i), i)
				}
				return nil
			})
			w.Pass(time.Second)
			w.transact(func(tx *space.Tx) error {
				for i := range 50 {
					tx.Delete(fmt.Sprintf("d%d-%d", round, i))
				}
				return nil
			})
			w.commitSome()
			if n := w.savedItems("s"); n > 60 {
				t.Fatalf("after round %d the bucket has %d items", round, n)
			}
		}
		w.commitSome()
		if n := w.savedItems("s"); n > 4 {
			t.Errorf("the bucket has %d items", n)
		}
		if got := w.Doc("s", "n"); got != "1" {
			t.Errorf("n is %s", got)
		}
	})
}

// Markers go as well if every checkpoint has a document that was never stored.
func TestMarkers_GoWhileDocumentsAreCreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.process(frugal("w1"), nil)
		w.Send("s", "add", "e1")
		for round := range 60 {
			w.transact(func(tx *space.Tx) error {
				tx.Set(fmt.Sprint("d", round), round)
				tx.Delete(fmt.Sprint("d", round-1))
				return nil
			})
			w.Pass(time.Second)
			if n := w.savedItems("s"); n > 20 {
				t.Fatalf("after round %d the bucket has %d items", round, n)
			}
		}
	})
}

// commitSome commits, so that checkpoints are saved: each raises the floor, or lets markers be purged.
func (w *world) commitSome() {
	w.Helper()
	for i := range 4 {
		w.Pass(time.Second)
		w.transact(func(tx *space.Tx) error { tx.Set("beside", i); return nil })
	}
	w.Pass(time.Second)
}

// beside is how many other documents come and go with d.
const beside = 8

// makeDocument creates the document d of space s, with others, and returns it as it is saved.
func (w *world) makeDocument() model.StateDoc {
	w.Helper()
	w.Coordinator()
	w.Send("s", "add", "e1")
	w.transact(func(tx *space.Tx) error {
		for i := range beside { // markers are purged once they are more than the documents that have to be stored again
			tx.Set(fmt.Sprint("d", i), 1)
		}
		tx.Set("d", 1)
		return nil
	})
	w.Pass(time.Second)
	d, there := w.Server.Saved("s", "d")
	if !there {
		w.Fatal("the document is not saved")
	}
	return d
}

// deleteDocument deletes the documents, and has their markers purged.
func (w *world) deleteDocument() {
	w.Helper()
	w.transact(func(tx *space.Tx) error {
		for i := range beside {
			tx.Delete(fmt.Sprint("d", i))
		}
		tx.Delete("d")
		return nil
	})
	w.commitSome()
	if _, there := w.Server.Saved("s", "d"); there {
		w.Fatal("its marker is still there")
	}
}

// A server that is killed restores from its files what the purged marker had replaced. Documents that exist are there as they were,
// with the revisions of their last changes, however often they were stored again.
func TestMarkers_AKilledServerBringsNoDeletedDocumentBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.process(frugal("w1"), nil)
		for range 3 {
			w.makeDocument()
			w.deleteDocument()
		}
		kept, there := w.Server.Saved("s", "n")
		if !there || kept.Kept.Rev == 0 || kept.Kept.Rev >= kept.Rev || kept.Changed() >= kept.Seq {
			t.Fatalf("n was not stored again: %+v", kept)
		}
		if n := w.Server.RebuildState(0); n == 0 {
			t.Fatal("nothing is back")
		}
		if d, there := w.Server.Saved("s", "d"); !there || d.Data == nil {
			t.Fatal("the document is not back")
		}
		for i, owner := range []string{"the owner", "the next owner", "the one after it"} {
			if got := w.Doc("s", "d"); got != (model.Value{}).String() {
				t.Errorf("under %s a reader sees %s", owner, got)
			}
			if got := w.Doc("s", "n"); got != "1" {
				t.Errorf("under %s a reader sees the other document as %s", owner, got)
			}
			p.Shutdown()
			p = w.process(frugal(fmt.Sprint("w", 2+i)), nil)
			w.transact(func(tx *space.Tx) error {
				if got := tx.Get("d"); !got.IsAbsent() {
					t.Errorf("after %s a transaction reads %s", owner, got)
				}
				tx.Set("beside", owner)
				return nil
			})
			w.Pass(time.Second)
		}
		if now, _ := w.Server.Saved("s", "n"); now.Changed() != kept.Changed() {
			t.Errorf("the revision of the document that exists has moved from %d to %d", kept.Changed(), now.Changed())
		}
	})
}

// A former owner, deposed an hour ago, writes the document only now.
func TestMarkers_ADeletedDocumentDoesNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.process(frugal("w1"), nil)
		old := w.makeDocument()
		w.deleteDocument()
		if _, err := w.Server.SaveDoc("s", old); err != nil {
			t.Fatalf("the late save must succeed: %v", err)
		}
		if got := w.Doc("s", "d"); got != (model.Value{}).String() {
			t.Errorf("a reader sees %s", got)
		}
		p.Shutdown()
		w.process(frugal("w2"), nil)
		w.Send("s", "add", "e2")
		w.EventuallyEnded("s", 2)
		a := w.attach("reader")
		if got := a.get("d"); got != (model.Value{}).String() {
			t.Errorf("the next owner has %s", got)
		}
		a.close()
		w.Pass(time.Minute)
		if d, there := w.Server.Saved("s", "d"); there && d.Data != nil {
			t.Errorf("the bucket has %s", d.Data)
		}
	})
}

// The same, but the owner that deleted the document and the next one continue to save, so that the late
// document was stored before their last marks.
func TestMarkers_ADeletedDocumentStaysDeletedWhenOwnersContinueToSave(t *testing.T) {
	for _, moment := range []string{"before the next owner", "under the next owner"} {
		t.Run(moment, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { putBackLate(t, moment) }) })
	}
}

// The same, but the late save is of the owner that has deleted the document since.
func TestMarkers_ADeletedDocumentStaysDeletedWhenItsOwnersSaveArrivesTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.process(frugal("w1"), nil)
		old := w.makeDocument()
		for round := range 20 { // more marks than a mark names
			w.deleteDocument()
			if _, err := w.Server.SaveDoc("s", old); err != nil {
				t.Fatalf("round %d: the late save must succeed: %v", round, err)
			}
			w.Send("s", "add", "again") // the owner continues
			w.Pass(time.Second)         // and saves
			if got := w.Doc("s", "d"); got != (model.Value{}).String() {
				t.Fatalf("a reader sees %s in round %d", got, round)
			}
			w.transact(func(tx *space.Tx) error { tx.Set("d", 1); return nil })
			w.Pass(time.Second)
			old, _ = w.Server.Saved("s", "d")
			old.Rev = 0
		}
		w.deleteDocument()
		if _, err := w.Server.SaveDoc("s", old); err != nil {
			t.Fatalf("the late save must succeed: %v", err)
		}
		w.Send("s", "add", "again")
		w.Pass(time.Second)
		p.Shutdown()
		w.process(frugal("w2"), nil)
		w.Send("s", "add", "e2")
		w.Eventually("the next owner has deleted it again", func() bool {
			d, there := w.Server.Saved("s", "d")
			return there && d.Data == nil
		})
	})
}

func putBackLate(t *testing.T, moment string) {
	w := newWorld(t, 1)
	first := w.process(frugal("w1"), nil)
	old := w.makeDocument()
	first.Shutdown()
	second := w.process(frugal("w2"), nil)
	w.deleteDocument()
	putBack := func() {
		if _, err := w.Server.SaveDoc("s", old); err != nil {
			t.Fatalf("the late save must succeed: %v", err)
		}
		w.Send("s", "add", "again") // the owner continues
		w.Pass(time.Second)         // and saves
	}
	if moment == "before the next owner" {
		putBack()
	}
	second.Shutdown()
	third := w.process(frugal("w3"), nil)
	w.Send("s", "add", "e2")
	w.Pass(time.Second)
	if moment == "under the next owner" {
		putBack()
	}
	if got := w.Doc("s", "d"); got != (model.Value{}).String() {
		t.Errorf("a reader sees %s", got)
	}
	third.Shutdown()
	w.process(frugal("w4"), nil)
	w.Send("s", "add", "e3")
	w.EventuallyEnded("s", 4)
	a := w.attach("reader")
	if got := a.get("d"); got != (model.Value{}).String() {
		t.Errorf("the next owner has %s", got)
	}
	a.close()
}

// unpurged is a bus whose first purges of markers fail.
type unpurged struct {
	*membus.Bus
	fails atomic.Int64
}

func (b *unpurged) PurgeState(ctx context.Context, space string, markers []model.StateDoc) error {
	if b.fails.Add(-1) >= 0 {
		return errStore
	}
	return b.Bus.PurgeState(ctx, space, markers)
}

// A marker that could not be purged is purged later.
func TestMarkers_AFailedPurgeIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		bus := &unpurged{}
		bus.fails.Store(3)
		w.process(frugal("w1"), func(b *membus.Bus) port.Bus {
			bus.Bus = b
			return bus
		})
		w.makeDocument()
		w.deleteDocument()
		if bus.fails.Load() >= 0 {
			t.Error("no purge has failed, which the test needs")
		}
	})
}
