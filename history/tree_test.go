package history_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
)

func TestTree_HasTheCausedEventsInSendingOrder(t *testing.T) {
	deployed(t, func(t *testing.T, w *world) {
		w.send("a", "e1", script(to("b", script(to("c", nil), to("b", nil))), to("a", script(to("c", nil))), to("b", nil)))
		w.rest()
		tree := w.wantShape(history.TreeQuery{Event: "e1", Space: "a"}, "a:handled(b:handled(c:handled b:handled) a:handled(c:handled) b:handled)")
		if tree.Events != 7 || !tree.Settled || tree.More || tree.States[lineage.Handled] != 7 || len(tree.CausedBy) != 0 {
			t.Errorf("the tree is %+v", tree)
		}
		root := tree.Root
		if root.Lane != 1 || root.Commit == 0 || root.Runtime != "w1" || root.Tx == "" || root.Stream != "do" || root.Result.String() != "1" {
			t.Errorf("the root is %+v", root)
		}
		leaf := root.Caused[0].Caused[0]
		of := w.wantShape(history.TreeQuery{Event: leaf.Event}, "c:handled") // the id names its space
		if want := []history.EventRef{root.Caused[0].EventRef, root.EventRef}; !slices.Equal(of.CausedBy, want) {
			t.Errorf("the event was caused by %v, want %v", of.CausedBy, want)
		}
		own := root.Caused[1] // a follow-up, which is in no lane
		of = w.wantShape(history.TreeQuery{Event: own.Event}, "a:handled(c:handled)")
		if want := []history.EventRef{root.EventRef}; !slices.Equal(of.CausedBy, want) {
			t.Errorf("the follow-up was caused by %v, want %v", of.CausedBy, want)
		}
		data, err := json.Marshal(tree)
		var again history.Tree
		if err == nil {
			err = json.Unmarshal(data, &again)
		}
		if err != nil || shape(again.Root) != shape(tree.Root) || again.Events != 7 {
			t.Errorf("its JSON is %s, %v", data, err)
		}
	})
}

func TestTree_HasTheStateOfEachEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.work("w1")
		w.send("a", "e1", script(to("b", nil), to("a", ends("fail")), sent{To: "c", Stream: "unknown"}, to("idle", nil), to("a", ends("panic"))))
		w.rest()
		const q = "e1"
		tree := w.wantShape(history.TreeQuery{Event: q}, "a:handled(b:parked a:failed c:parked idle:parked a:failed)")
		if tree.Settled {
			t.Error("the tree counts as settled")
		}
		parked := tree.Root.Caused[0].Event
		of := w.wantShape(history.TreeQuery{Event: parked}, "b:parked")
		if want := []history.EventRef{tree.Root.EventRef}; !slices.Equal(of.CausedBy, want) || of.Root.Stream != "do" || of.Root.Position != 1 {
			t.Errorf("the parked event is %+v, caused by %v", of.Root, of.CausedBy)
		}
		w.Coordinator()
		w.rest()
		tree = w.wantShape(history.TreeQuery{Event: q}, "a:handled(b:handled a:failed c:refused(notice a:handled) idle:queued a:failed)")
		if e := tree.Root.Caused[1].Error; e != "it must fail" {
			t.Errorf("the failed event has error %q", e)
		}
		if e := tree.Root.Caused[2].Error; !strings.Contains(e, "unknown") {
			t.Errorf("the refused event has error %q", e)
		}
		notice := tree.Root.Caused[2].Caused[0]
		of = w.tree(history.TreeQuery{Event: notice.Event})
		if want := []history.EventRef{tree.Root.Caused[2].EventRef, tree.Root.EventRef}; !slices.Equal(of.CausedBy, want) {
			t.Errorf("the notice was caused by %v, want %v", of.CausedBy, want)
		}
	})
}

// A timer is in the same state in its own tree as in that of the event that has set it.
func TestTree_OfATimerHasTheStateOfTheTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.work("w1")
		w.Send("a", "alarm", "e1")
		w.rest()
		timer := w.wantShape(history.TreeQuery{Event: "e1"}, "a:handled(a:waiting)").Root.Caused[0]
		own := w.wantShape(history.TreeQuery{Event: timer.Event}, "a:waiting").Root
		if !own.Until.Equal(timer.Until) || own.Until.IsZero() {
			t.Errorf("it is due at %v, and as a child at %v", own.Until, timer.Until)
		}
		w.Send("a", "calm", "e2")
		w.rest()
		w.wantShape(history.TreeQuery{Event: timer.Event}, "a:cancelled")
	})
}

func TestTree_AnUncommittedSendIsDroppedOnceThatIsCertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		commit := func(epoch uint64, txs ...model.Tx) uint64 {
			return w.Append(&model.Commit{Space: "a", Runtime: "w", Epoch: epoch, Takeover: len(txs) == 0, Txs: txs})
		}
		epoch := commit(0)
		id := func(n uint64) string { return model.TxID{Space: "a", Epoch: epoch, N: n}.Event(0) }
		sends := func(n uint64) model.Tx {
			return model.Tx{
				N: n, By: "handle go", Receipt: &model.Receipt{Event: fmt.Sprint("e", n), Outcome: model.Handled},
				Sends: []model.Send{{ID: id(n), To: "b", Stream: "do", Position: n}},
			}
		}
		commit(epoch, sends(1))
		commit(epoch, sends(3))
		w.wantShape(history.TreeQuery{Event: id(3)}, "b:parked")
		w.wantShape(history.TreeQuery{Event: id(2)}, ":dropped") // its number was passed
		w.wantMissing(history.TreeQuery{Event: id(4)})           // it may still be committed
		commit(0)
		tree := w.wantShape(history.TreeQuery{Event: id(4)}, ":dropped")
		if !tree.Settled || tree.Root.Error == "" {
			t.Errorf("the dropped event is %+v", tree.Root)
		}
		w.wantShape(history.TreeQuery{Event: id(3)}, "b:parked")
		w.wantMissing(history.TreeQuery{Event: "a:99:1:0"})
		w.wantMissing(history.TreeQuery{Event: id(3), Space: "c"})
	})
}

func (w *world) wantMissing(q history.TreeQuery) {
	w.Helper()
	_, err := history.ReadTree(context.Background(), w.Client, q)
	var missing *history.MissingError
	if !errors.As(err, &missing) || !strings.Contains(err.Error(), q.Event) || !strings.Contains(err.Error(), "check") {
		w.Errorf("walk %+v: %v, want a MissingError that says what to check", q, err)
	}
}

func TestTree_AMissingOrAmbiguousEventIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.work("w1")
		w.send("a", "e1", nil)
		w.send("b", "e1", nil)
		w.Send("a", "repair", "e1")
		w.rest()
		w.wantMissing(history.TreeQuery{Event: "e2"})
		w.wantMissing(history.TreeQuery{Event: "e1", Space: "c"})
		w.wantMissing(history.TreeQuery{Event: "e1", Space: "b", Stream: "repair"})
		w.wantShape(history.TreeQuery{Event: "e1", Space: "b"}, "b:handled")
		w.wantShape(history.TreeQuery{Event: "e1", Space: "a", Stream: "do"}, "a:handled")
		var several *history.AmbiguousError
		for q, n := range map[history.TreeQuery]int{{Event: "e1"}: 3, {Event: "e1", Space: "a"}: 2, {Event: "e1", Stream: "do"}: 2} {
			if _, err := history.ReadTree(t.Context(), w.Client, q); !errors.As(err, &several) || len(several.Found) != n {
				t.Errorf("walk %+v: %v, want %d of them", q, err, n)
			}
			if names := strings.Contains(several.Error(), "by the space and"); names != (q.Space == "") {
				t.Errorf("walk %+v: %v: the space is what is missing: %v", q, several, q.Space == "")
			}
		}
		for _, bad := range []history.TreeQuery{{}, {Event: "*"}, {Event: "e", Space: "a.b"}, {Event: "e", Stream: ">"}} {
			var name *model.NameError
			if _, err := history.ReadTree(t.Context(), w.Client, bad); !errors.As(err, &name) {
				t.Errorf("walk %+v: %v, want a NameError", bad, err)
			}
		}
	})
}

func TestTree_IsBoundedInSizeAndDepth(t *testing.T) {
	deployed(t, func(t *testing.T, w *world) {
		wide, deep := script(), (*act)(nil)
		for range 20 {
			wide.Send = append(wide.Send, to("b", script(to("c", nil))))
			deep = script(to("b", script(to("a", deep))))
		}
		w.send("a", "wide", wide)
		w.send("a", "deep", deep)
		w.rest()
		if tree := w.tree(history.TreeQuery{Event: "wide"}); tree.Events != 41 || tree.More || !tree.Settled {
			t.Errorf("unbounded: %d events, more %t, settled %t", tree.Events, tree.More, tree.Settled)
		}
		tree := w.wantShape(history.TreeQuery{Event: "wide", MaxEvents: 4}, "a:handled(b:handled(+1) b:handled(+1) b:handled(+1) +17)")
		if tree.Events != 4 || !tree.More || tree.Settled {
			t.Errorf("bounded: %+v", tree)
		}
		w.wantShape(history.TreeQuery{Event: "deep", MaxDepth: 3}, "a:handled(b:handled(a:handled(b:handled(+1))))")
		if tree := w.tree(history.TreeQuery{Event: "deep"}); tree.Events != 41 || tree.More {
			t.Errorf("%d events, more %t", tree.Events, tree.More)
		}
	})
}
