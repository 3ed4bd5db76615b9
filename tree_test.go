package settle_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
)

// relay passes an event on to the spaces that its payload lists.
func relay() *settle.Program {
	return settle.NewProgram("relay").
		Handle("pass", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			for to := range ev.Payload.Elements() {
				name, _ := to.AsString()
				tx.Send(name, "end", nil)
			}
			return settle.Value{}, nil
		}).
		Handle("down", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			left, _ := ev.Payload.Get("left").AsInt()
			end, _ := ev.Payload.Get("end").AsString()
			if left > 0 {
				tx.Send(ev.Space, "down", map[string]any{"left": left - 1, "end": end})
			} else {
				tx.Send(end, "end", nil)
			}
			return settle.Value{}, nil
		}).
		Handle("mend", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
			tx.Set("mended", true)
			return settle.Value{}, nil
		}).
		Handle("end", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			if ok, _ := tx.Get("mended").AsBool(); !ok && ev.Space == "broken" {
				return settle.Value{}, errors.New("broken")
			}
			return settle.Value{}, nil
		})
}

func pass(id string, to ...string) settle.Outgoing {
	return settle.Outgoing{Space: "a", Stream: "pass", ID: settle.ID(id), Payload: to}
}

func TestTree_IsToldByACoordinatorOrReadFromTheLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start("w1", relay(), nil)
		c, _ := w.client("c", nil)
		if _, err := c.Call(t.Context(), pass("e1", "b", "broken")); err != nil {
			t.Fatal(err)
		}
		tree, err := c.Tree(t.Context(), history.TreeQuery{Event: "e1"})
		if err != nil || !tree.Unattended || tree.Events != 3 || tree.States["parked"] != 2 {
			t.Fatalf("with no coordinator: %+v, %v", tree, err)
		}
		w.Coordinator()
		time.Sleep(5 * time.Second)
		tree, err = c.Tree(t.Context(), history.TreeQuery{Event: "e1"})
		if err != nil || tree.Unattended || tree.States["handled"] != 2 || tree.States["failed"] != 1 {
			t.Errorf("with a coordinator: %+v, %v", tree, err)
		}
		var missing *history.MissingError
		if _, err := c.Tree(t.Context(), history.TreeQuery{Event: "e2"}); !errors.As(err, &missing) {
			t.Errorf("what there is not: %v", err)
		}
		if _, err := c.Send(t.Context(), settle.Outgoing{Space: "b", Stream: "end", ID: settle.ID("e1")}); err != nil {
			t.Fatal(err)
		}
		var several *history.AmbiguousError
		if _, err := c.Tree(t.Context(), history.TreeQuery{Event: "e1"}); !errors.As(err, &several) {
			t.Errorf("what there is twice: %v", err)
		}
		c.Close()
		if _, err := c.Space("a").WaitTree(t.Context(), "pass", settle.ID("e1")); !errors.Is(err, model.ErrStopped) {
			t.Errorf("after the end of the client: %v", err)
		}
	})
}

func TestWaitTree_ReturnsTheTreeWhenItHasSettledOrTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start("w1", relay(), nil)
		c, _ := w.client("c", nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := c.Send(ctx, pass("e1", "b", "c")); err != nil {
			t.Fatal(err)
		}
		tree, err := c.Space("a").WaitTree(ctx, "pass", settle.ID("e1"))
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "still open: 2") || tree == nil || tree.States["parked"] != 2 {
			t.Errorf("with no coordinator: %+v, %v", tree, err)
		}
		w.Coordinator()
		tree, err = c.Space("a").WaitTree(t.Context(), "pass", settle.ID("e1"))
		if err != nil || !tree.Settled || tree.States["handled"] != 3 {
			t.Errorf("with a coordinator: %+v, %v", tree, err)
		}
	})
}

// What is cut of a tree was waited for, and is counted.
func TestWaitTree_CountsWhatIsTooDeepToBeShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start("w1", relay(), nil)
		c, _ := w.client("c", nil)
		down := func(id, end string) settle.Outgoing {
			return settle.Outgoing{Space: "a", Stream: "down", ID: settle.ID(id), Payload: map[string]any{"left": 150, "end": end}}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := c.Send(ctx, down("e1", "broken")); err != nil {
			t.Fatal(err)
		}
		tree, err := c.Space("a").WaitTree(ctx, "down", settle.ID("e1"))
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "still open: 1") || tree == nil || tree.Settled || !tree.More {
			t.Errorf("with an end that is parked: %+v, %v", tree, err)
		}
		w.Coordinator()
		tree, err = c.Space("a").WaitTree(t.Context(), "down", settle.ID("e1"))
		if err != nil || !tree.Settled || !tree.More || tree.Events != 152 || tree.States["handled"] != 151 || tree.States["failed"] != 1 {
			t.Errorf("with an end that has failed: %+v, %v", tree, err)
		}
		if _, err := c.Send(t.Context(), down("e2", "b")); err != nil {
			t.Fatal(err)
		}
		tree, err = c.Space("a").WaitTree(t.Context(), "down", settle.ID("e2"))
		if err != nil || !tree.More || tree.Events != 152 || tree.States["handled"] != 152 {
			t.Errorf("with an end that is handled: %+v, %v", tree, err)
		}
	})
}

func TestRedrive_ADeadLetterIsListedSentAgainAndSaidToHaveBeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start("w1", relay(), nil)
		w.Coordinator()
		c, _ := w.client("c", nil)
		list := func(space string) (found []history.Dead) {
			for d, err := range c.Space(space).DeadLetters(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, d)
			}
			return found
		}
		targets := make([]string, 250) // more than a page
		for i := range targets {
			targets[i] = "broken"
		}
		if _, err := c.Send(t.Context(), pass("e1", targets...)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Space("a").WaitTree(t.Context(), "pass", settle.ID("e1")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		dead := list("")
		if len(dead) != 250 || len(list("broken")) != 250 || len(list("a")) != 0 || dead[0].Redriven != nil || dead[0].Error != "broken" {
			t.Fatalf("%d dead letters, the first is %+v", len(dead), dead[0])
		}
		if _, err := c.Call(t.Context(), settle.Outgoing{Space: "broken", Stream: "mend", ID: settle.ID("m")}); err != nil {
			t.Fatal(err)
		}
		of, sent, err := c.Space("broken").Redrive(t.Context(), "", settle.ID(dead[0].Event))
		if err != nil || sent.Duplicate || of.Event != dead[0].Event+":r1" {
			t.Fatalf("redrive: %+v, %+v, %v", of, sent, err)
		}
		if rc, err := c.Space(of.Space).Await(t.Context(), of.Stream, settle.ID(of.Event)); err != nil || rc.Outcome != model.Handled {
			t.Errorf("it ended in %+v, %v", rc, err)
		}
		if r := list("broken")[0].Redriven; r == nil || r.Event != of.Event || r.State != "handled" {
			t.Errorf("the view says %+v", r)
		}
		var none *history.NoLetterError
		if _, _, err := c.Space("a").Redrive(t.Context(), "", settle.ID("e1")); !errors.As(err, &none) {
			t.Errorf("redrive of what was handled: %v", err)
		}
		for _, err := range c.DeadLetters(t.Context()) { // breaking off ends the listing
			if err != nil {
				t.Error(err)
			}
			break
		}
		for _, err := range c.Space("a.b").DeadLetters(t.Context()) {
			var name *model.NameError
			if !errors.As(err, &name) {
				t.Errorf("of what is no space: %v", err)
			}
		}
	})
}
