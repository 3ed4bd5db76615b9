package space

import (
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// A progress is kept while its task is pending, ends nothing, and is bounded.
func TestTask_ProgressEndsNothing(t *testing.T) {
	t.Parallel()
	ends := 0
	p := newProgram(t).handle("start", func(tx *Tx, ev *model.Event) any { tx.StartTask("pay", ev.ID, 1); return nil })
	if err := p.Action(&ActionSpec{Name: "pay", External: true, Remote: &Remote{}, Done: func(*Tx, Task) error { ends++; return nil }}); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	task := func() Task { return TaskOf("a", h.core.Value("pay").At(PathOfTask("a"))) }
	w.send(home, "start", "a", nil)
	for id, c := range map[string]Completion{ // any order: only one of them counts
		"p1": {Key: "a", N: 1, Progress: model.Int(7)},
		"p2": {Key: "a", N: 2, Progress: model.Int(8)},
		"p3": {Key: "a", Progress: model.Int(9), Out: model.Int(1)},
		"p4": {Key: "a", Progress: model.String(strings.Repeat("x", MaxProgress))},
	} {
		w.send(home, "pay", id, c.Value())
	}
	h.run()
	if got := task(); got.State != TaskPending || got.Progress.String() != "7" || ends != 0 {
		t.Errorf("the task is %+v, and Done was called %d times", got, ends)
	}
	end := Completion{Key: "a", Out: model.Int(1)}
	w.send(home, "pay", "end", end.Value())
	late := Completion{Key: "a", Progress: model.Int(10)}
	w.send(home, "pay", "late", late.Value())
	h.run()
	if got := task(); got.State != TaskDone || !got.Progress.IsAbsent() {
		t.Errorf("the task is %+v", got)
	}
}

func TestRemote_TermsAreChecked(t *testing.T) {
	t.Parallel()
	for part, r := range map[string]Remote{
		"must not be negative":  {Attempts: -1},
		"a rate of -1":          {Rate: -1},
		"a heartbeat every 1ms": {Heartbeat: time.Millisecond},
		"use one of them":       {Queue: "a", QueueBy: "b"},
		"queue":                 {Queue: "a.b"},
		"a heartbeat every 2h":  {Heartbeat: 2 * time.Hour},
	} {
		if err := r.Check(); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%+v: %v, want %q", r, err, part)
		}
	}
}

// A pending task has the event whose handler has started it, and still has it when the space is loaded again; an ended one does not.
func TestTask_HasItsEventWhileItIsPending(t *testing.T) {
	t.Parallel()
	for _, apart := range []bool{false, true} {
		p := newProgram(t).handle("start", func(tx *Tx, _ *model.Event) any {
			tx.StartTask("work", "k", 1)
			return nil
		})
		if err := p.Action(&ActionSpec{Name: "work", Discard: apart, External: true, Remote: &Remote{}}); err != nil {
			t.Fatal(err)
		}
		w := newWorld(t)
		h := w.owner("w1", p.Program)
		w.send(home, "start", "order-17", nil)
		h.run()
		event := func(h *host) string {
			if apart {
				_, task, _ := TaskIn(model.TaskDoc("work", "k"), h.core.Value(model.TaskDoc("work", "k")))
				return task.Event
			}
			return TaskOf("k", h.core.Value("work").At(PathOfTask("k"))).Event
		}
		if got := event(h); got != "order-17" {
			t.Errorf("apart %v: the event is %q", apart, got)
		}
		h = w.owner("w2", p.Program)
		h.run()
		if got := event(h); got != "order-17" {
			t.Errorf("apart %v: its next owner has the event %q", apart, got)
		}
		end := Completion{Key: "k", Out: model.Int(1)}
		w.send(home, "work", "end", end.Value())
		h.run()
		if got := event(h); got != "" {
			t.Errorf("apart %v: after its end the event is %q", apart, got)
		}
	}
}

// A Done that rejects the end of a task has failed: no caller waits for the answer, and only a dead letter can be redriven.
func TestTask_ARejectionByDoneIsAnError(t *testing.T) {
	p := newProgram(t).handle("start", func(tx *Tx, ev *model.Event) any {
		tx.StartTask("pay", ev.ID, 5)
		return nil
	})
	no := receipts.Reject("no", "not now", nil)
	if err := p.Action(&ActionSpec{Name: "pay", Done: func(tx *Tx, task Task) error {
		if task.Key == "e2" { // as a typed write does
			tx.Fail(no)
			return nil
		}
		return no
	}}); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	for _, key := range []string{"e1", "e2"} {
		w.send(home, "start", key, nil)
		h.run()
		done := Completion{Key: key, N: 1}
		w.publish(model.Event{Space: home, Stream: "pay", ID: "done:1-" + key, Payload: done.Value()})
		h.run()
		rc := w.receipt(home, "done:1-"+key)
		if rc == nil || rc.Outcome != model.Failed || !strings.Contains(rc.Error, "return another error") {
			t.Errorf("%s: %+v", key, rc)
		}
		if task := TaskOf(key, h.core.Value("pay").At(PathOfTask(key))); task.State != TaskFailed || !task.Unhandled {
			t.Errorf("%s: %+v", key, task)
		}
	}
}

// A write names no version: a key that a client has chosen could make the document one that no program reads.
func TestWrite_NamesNoVersion(t *testing.T) {
	p := newProgram(t).handle("set", func(tx *Tx, ev *model.Event) any {
		key, _ := ev.Payload.AsString()
		tx.Set("scores", 5, key)
		return nil
	}).handle("row", func(tx *Tx, ev *model.Event) any {
		key, _ := ev.Payload.AsString()
		tx.Set("scores", 6, "of", key) // as rows have it
		return nil
	}).handle("drop", func(tx *Tx, ev *model.Event) any {
		tx.Delete("scores", model.VersionKey)
		return nil
	})
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	w.send(home, "set", "e1", "ann")
	w.send(home, "set", "e2", model.VersionKey)
	w.send(home, "drop", "e3", nil)
	w.send(home, "row", "e4", "ann")
	w.send(home, "row", "e5", model.VersionKey)
	h.run()
	for event, want := range map[string]model.Outcome{"e1": model.Handled, "e2": model.Failed, "e3": model.Failed, "e4": model.Handled, "e5": model.Failed} { // any order: each on its own
		if rc := w.receipt(home, event); rc.Outcome != want || want == model.Failed && !strings.Contains(rc.Error, "reserved") {
			t.Errorf("%s: %+v", event, rc)
		}
	}
}

// workerFunction is a performer that is called by no test.
type workerFunction struct{ Performer }

// A client ends no task that workers perform, and supplies values of inputs.
func TestTask_WorkersAloneEndWhatTheyPerform(t *testing.T) {
	rate := &ActionSpec{Name: "rate", Input: true, Performer: workerFunction{}}
	p := newProgram(t).handle("start", func(tx *Tx, ev *model.Event) any {
		for _, action := range []string{"pay", "call"} {
			tx.StartTask(action, "k", 5)
		}
		return string(tx.WantTask("rate", "k").State)
	})
	for _, a := range []*ActionSpec{{Name: "pay", Performer: workerFunction{}}, {Name: "call", External: true, Remote: &Remote{}}, rate} {
		if err := p.Action(a); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	w.send(home, "start", "e1", nil)
	h.run()
	for stream, want := range map[string]model.Outcome{"pay": model.Rejected, "call": model.Handled, "rate": model.Handled} { // any order: each on its own
		end := Completion{Key: "k", N: 1, Out: model.Int(7)}
		w.send(home, stream, "of-"+stream, end.Value())
		h.run()
		if rc := w.receipt(home, "of-"+stream); rc == nil || rc.Outcome != want {
			t.Errorf("%s: %+v, want %s", stream, rc, want)
		}
		state := TaskOf("k", h.core.Value(stream).At(PathOfTask("k"))).State
		if ended := state == TaskDone; ended != (want == model.Handled) {
			t.Errorf("%s: the task is %s", stream, state)
		}
	}
	done := Completion{Key: "k", N: 1, Out: model.Int(7)}
	w.publish(model.Event{Space: home, Stream: "pay", ID: "done:1-k", Payload: done.Value()})
	h.run()
	if state := TaskOf("k", h.core.Value("pay").At(PathOfTask("k"))).State; state != TaskDone {
		t.Errorf("a worker has reported the end of the task, and it is %s", state)
	}
}

// A refused event of a client ends no task, nor does one that is redriven from it, however often; that of a worker does, because no other event would.
func TestTask_RefusedEventsOfClientsEndNone(t *testing.T) {
	t.Parallel()
	p := newProgram(t).handle("start", func(tx *Tx, _ *model.Event) any { tx.StartTask("call", "k", 5); return nil })
	if err := p.Action(&ActionSpec{Name: "call", External: true, Remote: &Remote{}}); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	w.send(home, "start", "e1", nil)
	h.run()
	forged, again := model.EventIDOf("alice", "forged"), model.RedriveID("forged")
	for _, id := range []string{"forged", forged, again, model.RedriveID(forged), model.RedriveID(again), "done:1-k"} {
		end := Completion{Key: "k", N: 1, Err: "give it back"}
		w.publish(model.Event{Space: home, Stream: "call", ID: id, Payload: end.Value(), Invalid: "no rule allows it"})
		h.run()
		if rc := w.receipt(home, id); rc == nil || rc.Outcome != model.Refused {
			t.Errorf("%s: %+v", id, rc)
		}
		task := TaskOf("k", h.core.Value("call").At(PathOfTask("k")))
		if byWorker := id == "done:1-k"; (task.State == TaskPending) == byWorker || task.Unhandled != byWorker {
			t.Errorf("after %s the task is %+v", id, task)
		}
	}
}
