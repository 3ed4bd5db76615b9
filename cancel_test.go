package settle_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// cancelPatience turns a hang into a failure.
const cancelPatience = 2 * time.Minute

// gateProgram is a program whose handler of "work" counts in the document "done", and waits, with the document
// "open" computed late, until it is let through; the payload determines what "work" does.
func gateProgram(wait func(id string)) *settle.Program {
	done := settle.NewRows[int]("done")
	p := settle.NewProgram("gate")
	p.Handle("work", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		wait(ev.ID)
		done.Update(tx, ev.ID, func(n *int) { *n++ })
		if to, ok := ev.Payload.Get("send").AsString(); ok {
			tx.Send(to, "work", nil)
		}
		if _, ok := ev.Payload.Get("later").AsString(); ok {
			tx.SendAfter(tx.Space(), "work", time.Hour, nil)
		}
		switch timer, _ := ev.Payload.Get("timer").AsString(); timer {
		case "set":
			tx.SetTimer("t", "work", tx.Now().Add(time.Hour), nil)
		case "cancel":
			tx.CancelTimer("t")
		}
		return settle.Value{}, nil
	})
	return p
}

func cancelling(t *testing.T, wait func(string), workers int) (context.Context, *settle.Deployment) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), cancelPatience)
	t.Cleanup(cancel)
	d, err := settle.Start(ctx, settle.Config{
		Programs: settle.Always(gateProgram(wait)), Workers: workers, Options: worker.Options{Heartbeat: 20 * time.Millisecond, MemberTTL: 750 * time.Millisecond},
		Server: embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval}, Bus: bus.Config{Partitions: 2}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cancelPatience)
		defer cancel()
		if err := d.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return ctx, d
}

func at(id string) history.EventRef { return history.EventRef{Space: "s", Stream: "work", Event: id} }

// counted is how often each event was handled.
func counted(ctx context.Context, t *testing.T, d *settle.Deployment) map[string]int {
	t.Helper()
	v, _, err := d.Client().Space("s").Get(ctx, "done")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	for id, n := range v.All() {
		times, _ := n.AsInt()
		all[id] = int(times)
	}
	return all
}

// While one event is handled, those behind it are cancelled: they end when their turn comes, and their
// handlers have no effect. So does the one that is handled: its handler returns, and its commit is refused.
func TestCancel_OfTheFirstEventAndOfThoseBehindIt(t *testing.T) {
	let, at1 := make(chan struct{}), make(chan struct{}, 64)
	ctx, d := cancelling(t, func(id string) {
		if id == "e0" {
			at1 <- struct{}{}
			<-let
		}
	}, 1)
	open := sync.OnceFunc(func() { close(let) })
	t.Cleanup(open) // before the deployment stops
	for i := range 4 {
		if _, err := d.Client().Send(ctx, settle.Outgoing{Space: "s", Stream: "work", ID: settle.ID(fmt.Sprintf("e%d", i))}); err != nil {
			t.Fatal(err)
		}
	}
	<-at1
	short, end := context.WithTimeout(ctx, time.Second)
	defer end()
	if _, err := d.Client().Cancel(short, at("e0"), "it hangs"); !errors.Is(err, settle.ErrCancelPending) {
		t.Fatalf("of the one at work: %v", err)
	}
	var waiting sync.WaitGroup
	waiting.Go(func() {
		rc, err := d.Client().Cancel(ctx, at("e2"), "not this one")
		if err != nil || rc.Outcome != model.Cancelled || rc.Error != "not this one" {
			t.Errorf("of one behind: %+v, %v", rc, err)
		}
	})
	// It is in the log before the first one goes on.
	for {
		marks, _, err := d.Client().Space("s").Get(ctx, space.CancelDoc)
		if err != nil {
			t.Fatal(err)
		}
		if len(marks.Keys()) == 2 {
			break
		}
		if pause.For(ctx, time.Millisecond) != nil {
			t.Fatalf("the marks are %v", marks)
		}
	}
	open()
	waiting.Wait()
	for id, want := range map[string]model.Outcome{"e0": model.Cancelled, "e1": model.Handled, "e2": model.Cancelled, "e3": model.Handled} {
		rc, err := d.Client().Space("s").Await(ctx, "work", settle.ID(id))
		if err != nil || rc.Outcome != want {
			t.Errorf("%s: %+v, %v", id, rc, err)
		}
	}
	if got := counted(ctx, t, d); len(got) != 2 || got["e1"] != 1 || got["e3"] != 1 {
		t.Errorf("handled were %v", got)
	}
	if rc, err := d.Client().Cancel(ctx, at("e1"), "too late"); err != nil || rc.Outcome != model.Handled {
		t.Errorf("of one that is handled: %+v, %v", rc, err)
	}
	if _, err := d.Client().Cancel(ctx, at("nobody"), ""); err == nil {
		t.Error("an event was cancelled that was never sent")
	}
	if marks, _, err := d.Client().Space("s").Get(ctx, space.CancelDoc); err != nil || len(marks.Keys()) > 0 {
		t.Errorf("marks that are left: %v, %v", marks, err)
	}
}

// An event that waits for a time is cancelled at once: one that a client has sent with a time, and one that
// a handler has sent to its own space.
func TestCancel_OfWhatWaitsForATime(t *testing.T) {
	ctx, d := cancelling(t, func(string) {}, 1)
	if _, err := d.Client().Send(ctx, settle.Outgoing{Space: "s", Stream: "work", ID: settle.ID("e0"), NotBefore: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Client().Call(ctx, settle.Outgoing{Space: "s", Stream: "work", ID: settle.ID("e1"), Payload: map[string]string{"later": "yes"}}); err != nil {
		t.Fatal(err)
	}
	tree, err := d.Client().Tree(ctx, history.TreeQuery{Space: "s", Stream: "work", Event: "e1"})
	if err != nil || len(tree.Root.Caused) != 1 {
		t.Fatalf("tree: %+v, %v", tree, err)
	}
	for _, of := range []history.EventRef{at("e0"), tree.Root.Caused[0].EventRef} {
		rc, err := d.Client().Cancel(ctx, of, "no")
		if err != nil || rc.Outcome != model.Cancelled {
			t.Errorf("%v: %+v, %v", of, rc, err)
		}
	}
	if got := counted(ctx, t, d); len(got) != 1 {
		t.Errorf("handled were %v", got)
	}
}

// A timer that its space cancels has no receipt. A cancellation that was before that, in the log, does not wait for one, and
// leaves no mark.
func TestCancel_OfATimerThatItsSpaceCancels(t *testing.T) {
	let, begun := make(chan struct{}), make(chan struct{}, 64)
	ctx, d := cancelling(t, func(id string) {
		if id == "e2" {
			begun <- struct{}{}
			<-let
		}
	}, 1)
	open := sync.OnceFunc(func() { close(let) })
	t.Cleanup(open)
	if _, err := d.Client().Call(ctx, settle.Outgoing{Space: "s", Stream: "work", ID: settle.ID("e1"), Payload: map[string]string{"timer": "set"}}); err != nil {
		t.Fatal(err)
	}
	tree, err := d.Client().Tree(ctx, history.TreeQuery{Space: "s", Stream: "work", Event: "e1"})
	if err != nil || len(tree.Root.Caused) != 1 {
		t.Fatalf("tree: %+v, %v", tree, err)
	}
	timer := tree.Root.Caused[0].EventRef
	if _, err := d.Client().Send(ctx, settle.Outgoing{Space: "s", Stream: "work", ID: settle.ID("e2"), Payload: map[string]string{"timer": "cancel"}}); err != nil {
		t.Fatal(err)
	}
	<-begun
	var cancelling sync.WaitGroup
	cancelling.Go(func() {
		if rc, err := d.Client().Cancel(ctx, timer, "no"); rc != nil || err == nil || errors.Is(err, settle.ErrCancelPending) || !strings.Contains(err.Error(), "a timer that was cancelled") {
			t.Errorf("%+v, %v", rc, err)
		}
	})
	for u, err := range d.Client().Space("s").Watch(ctx, space.CancelDoc) {
		if err != nil {
			t.Fatal(err)
		}
		if len(u.Value.Keys()) > 0 {
			break
		}
	}
	open()
	cancelling.Wait()
	if marks, _, err := d.Client().Space("s").Get(ctx, space.CancelDoc); err != nil || len(marks.Keys()) > 0 {
		t.Errorf("marks that are left: %v, %v", marks, err)
	}
}

// An event that has ended, and one that does not exist, do not prevent the others of a list from being cancelled.
func TestCancelAll_GoesOnPastWhatCannotBeCancelled(t *testing.T) {
	ctx, d := cancelling(t, func(string) {}, 1)
	if _, err := d.Client().Call(ctx, settle.Outgoing{Space: "s", Stream: "work", ID: settle.ID("e0")}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"e1", "e2"} {
		if _, err := d.Client().Send(ctx, settle.Outgoing{Space: "s", Stream: "work", ID: settle.ID(id), NotBefore: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := d.Client().CancelAll(ctx, []history.EventRef{at("e0"), at("e1"), at("none"), at("e2")}, "no")
	if err != nil || len(all) != 4 {
		t.Fatalf("%+v, %v", all, err)
	}
	for i, want := range []model.Outcome{model.Handled, model.Cancelled, "", model.Cancelled} {
		c := all[i]
		if want == "" && (c.Err == nil || c.Receipt != nil) || want != "" && (c.Err != nil || c.Receipt.Outcome != want) {
			t.Errorf("%v: %+v, %v", c.Event, c.Receipt, c.Err)
		}
	}
	if marks, _, err := d.Client().Space("s").Get(ctx, space.CancelDoc); err != nil || len(marks.Keys()) > 0 {
		t.Errorf("marks that are left: %v, %v", marks, err)
	}
}

// A space whose sent event is cancelled receives a notice, as for one that was refused; later positions are handled.
func TestCancel_OfWhatAnotherSpaceHasSent(t *testing.T) {
	let := make(chan struct{})
	ctx, d := cancelling(t, func(id string) {
		if id == "e0" {
			<-let
		}
	}, 1)
	open := sync.OnceFunc(func() { close(let) })
	t.Cleanup(open)
	if _, err := d.Client().Send(ctx, settle.Outgoing{Space: "s", Stream: "work", ID: settle.ID("e0")}); err != nil {
		t.Fatal(err)
	}
	var sent []history.EventRef
	for i := range 2 {
		id := fmt.Sprintf("x%d", i)
		if _, err := d.Client().Call(ctx, settle.Outgoing{Space: "other", Stream: "work", ID: settle.ID(id), Payload: map[string]string{"send": "s"}}); err != nil {
			t.Fatal(err)
		}
		tree, err := d.Client().Tree(ctx, history.TreeQuery{Space: "other", Stream: "work", Event: id})
		if err != nil || len(tree.Root.Caused) != 1 {
			t.Fatalf("tree: %+v, %v", tree, err)
		}
		sent = append(sent, tree.Root.Caused[0].EventRef)
	}
	short, end := context.WithTimeout(ctx, time.Second)
	defer end()
	if _, err := d.Client().Cancel(short, sent[0], "no"); !errors.Is(err, settle.ErrCancelPending) {
		t.Fatal(err)
	}
	open()
	tree, err := d.Client().Space("other").WaitTree(ctx, "work", settle.ID("x0"))
	if err != nil || tree.Root.Caused[0].State != lineage.State(model.Cancelled) || len(tree.Root.Caused[0].Caused) != 1 || tree.Root.Caused[0].Caused[0].Stream != model.Undelivered {
		t.Errorf("tree: %+v, %v", tree, err)
	}
	if rc, err := d.Client().Space("s").Await(ctx, "work", settle.ID(sent[1].Event)); err != nil || rc.Outcome != model.Handled {
		t.Errorf("the next one: %+v, %v", rc, err)
	}
	for l, err := range d.Client().Space("s").DeadLetters(ctx) {
		t.Errorf("there is a dead letter: %+v, %v", l, err)
	}
}

// An event that is cancelled while it is handled ends once, whichever comes first: with its effect and the
// receipt of that, or with neither. Two workers take turns, and one of them is killed.
func TestCancel_RacesWithTheHandling(t *testing.T) {
	ctx, d := cancelling(t, func(string) {}, 2)
	const events = 60
	outcomes := make([]model.Outcome, events)
	var all sync.WaitGroup
	window := make(chan struct{}, 8)
	for i := range events {
		window <- struct{}{}
		if i == events/2 {
			d.KillWorker(d.Workers()[0])
			if _, err := d.AddWorker(ctx); err != nil {
				t.Fatal(err)
			}
		}
		all.Go(func() {
			defer func() { <-window }()
			id := fmt.Sprintf("e%d", i)
			if _, err := d.Client().Send(ctx, settle.Outgoing{Space: "s", Stream: "work", ID: settle.ID(id)}); err != nil {
				t.Error(err)
				return
			}
			_ = pause.For(ctx, time.Duration(rand.IntN(2000))*time.Microsecond)
			rc, err := d.Client().Cancel(ctx, at(id), "a race")
			if err != nil {
				t.Error(err)
				return
			}
			outcomes[i] = rc.Outcome
		})
	}
	all.Wait()
	got := counted(ctx, t, d)
	for i, o := range outcomes {
		id := fmt.Sprintf("e%d", i)
		if want := map[model.Outcome]int{model.Handled: 1, model.Cancelled: 0}[o]; got[id] != want {
			t.Errorf("%s is said to be %s, and took effect %d times", id, o, got[id])
		}
		if rc, err := d.Client().Space("s").FindReceipt(ctx, "work", settle.ID(id)); err != nil || rc == nil || rc.Outcome != o {
			t.Errorf("%s is said to be %s, and its receipt is %+v, %v", id, o, rc, err)
		}
	}
}

// An event is handled until it expires, and not afterwards: not when its turn comes too late, and
// not when it has waited at the head for something that did not come.
func TestExpires_WhatComesTooLateIsNotHandled(t *testing.T) {
	let, begun := make(chan struct{}), make(chan struct{}, 64)
	ctx, d := cancelling(t, func(id string) {
		if id == "e0" {
			begun <- struct{}{}
			<-let
		}
	}, 1)
	open := sync.OnceFunc(func() { close(let) })
	t.Cleanup(open)
	send := func(id string, expires time.Duration) {
		t.Helper()
		if _, err := d.Client().Send(ctx, settle.Outgoing{Space: "s", Stream: "work", ID: settle.ID(id), Expires: time.Now().Add(expires)}); err != nil {
			t.Fatal(err)
		}
	}
	send("e0", time.Hour)
	<-begun
	send("e1", time.Millisecond)
	send("e2", time.Hour)
	if err := pause.For(ctx, 5*time.Millisecond); err != nil { // so that it has expired, whatever the clock's grain
		t.Fatal(err)
	}
	open()
	for id, want := range map[string]model.Outcome{"e0": model.Handled, "e1": model.Expired, "e2": model.Handled} {
		rc, err := d.Client().Space("s").Await(ctx, "work", settle.ID(id))
		if err != nil || rc.Outcome != want {
			t.Errorf("%s: %+v, %v", id, rc, err)
		}
	}
	if got := counted(ctx, t, d); len(got) != 2 || got["e1"] != 0 {
		t.Errorf("handled were %v", got)
	}
	if _, err := d.Client().Send(ctx, settle.Outgoing{Space: "s", Stream: "work", ID: settle.ID("e3"), NotBefore: time.Now().Add(time.Hour), Expires: time.Now()}); err == nil {
		t.Error("an event was sent that expires before it may be handled")
	}
}

// CancelAll marks a parked event after a coordinator has released it, and not before: a mark needs an event in
// its space. Until then the event's space is not touched.
func TestCancelAll_MarksAParkedEventWhenItIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start("w1", relay(), nil)
		c, _ := w.client("c", nil)
		if _, err := c.Call(t.Context(), pass("e1", "b")); err != nil {
			t.Fatal(err)
		}
		tree, err := c.Tree(t.Context(), history.TreeQuery{Event: "e1"})
		if err != nil || len(tree.Root.Caused) != 1 || tree.States["parked"] != 1 {
			t.Fatalf("%+v, %v", tree, err)
		}
		parked := []history.EventRef{tree.Root.Caused[0].EventRef}
		short, end := context.WithTimeout(t.Context(), 10*time.Second)
		defer end()
		all, err := c.CancelAll(short, parked, "no")
		if err != nil || len(all) != 1 || !errors.Is(all[0].Err, context.DeadlineExceeded) || !strings.Contains(all[0].Err.Error(), "is parked") {
			t.Errorf("without a coordinator: %+v, %v", all, err)
		}
		if marks, at, err := c.Space("b").Get(t.Context(), space.CancelDoc); err != nil || at > 0 {
			t.Errorf("marks in the space of the parked event: %v at %d, %v", marks, at, err)
		}
		go func() {
			time.Sleep(time.Second)
			w.Coordinator()
		}()
		all, err = c.CancelAll(t.Context(), parked, "no")
		if err != nil || len(all) != 1 || all[0].Err != nil || all[0].Receipt.Event != parked[0].Event {
			t.Errorf("with a coordinator: %+v, %v", all, err)
		}
	})
}
