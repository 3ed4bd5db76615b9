package space

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
)

// limited is a program with actions whose tasks have a deadline after ten seconds: "work" in one document, "call" in one each,
// and what Done was called with. Its streams start, start with other options, replace, cancel, forget and drop the task k.
func limited(t testing.TB, ended *[]string, mended *bool) *Program {
	t.Helper()
	p := newProgram(t)
	for _, action := range []string{"work", "call"} {
		do := func(name string, f func(tx *Tx)) {
			p.handle(name+"-"+action, func(tx *Tx, _ *model.Event) any { f(tx); return nil })
		}
		do("start", func(tx *Tx) { tx.StartTask(action, "k", 1) })
		do("sooner", func(tx *Tx) { tx.StartTask(action, "k", 1, Deadline(3*time.Second)) })
		do("later", func(tx *Tx) { tx.StartTask(action, "k", 1, Deadline(time.Hour)) })
		do("by", func(tx *Tx) { tx.StartTask(action, "k", 1, DeadlineAt(time.UnixMilli(noon+8_000))) })
		do("wrong", func(tx *Tx) { tx.StartTask(action, "k", 1, Deadline(-time.Second)) })
		do("zero", func(tx *Tx) { tx.StartTask(action, "k", 1, Deadline(0)) })
		do("replace", func(tx *Tx) { tx.StartTask(action, "k", 2, Replace()) })
		do("cancel", func(tx *Tx) { tx.CancelTask(action, "k") })
		do("forget", func(tx *Tx) { tx.ForgetTask(action, "k") })
		do("drop", func(tx *Tx) { tx.DropTask(action, "k") })
		do("both", func(tx *Tx) { tx.StartTask(action, "k", 1); tx.CancelTask(action, "k"); tx.DropTask(action, "k") })
		done := func(_ *Tx, task Task) error {
			if !*mended {
				return errors.New("not now")
			}
			out := task.Err
			if task.State == TaskDone {
				out = task.Out.String()
			}
			*ended = append(*ended, fmt.Sprintf("%s %s %s", task.Key, task.State, out))
			return nil
		}
		a := &ActionSpec{Name: action, Discard: action == "call", External: true, Remote: &Remote{}, Done: done, Deadline: 10 * time.Second}
		if err := p.Action(a); err != nil {
			t.Fatal(err)
		}
	}
	p.handle("nothing", func(*Tx, *model.Event) any { return nil })
	return p.Program
}

// limits returns an owner of home that runs the program of limited, at noon.
func (w *world) limits(p *Program, runtime string, wall int64) *host {
	h := w.host(runtime, p)
	h.wall = wall
	h.takeOver()
	h.run()
	return h
}

func (h *host) sends(streams ...string) {
	for _, s := range streams {
		h.w.send(home, s, fmt.Sprint(s, len(h.w.receipts(home))), nil)
		h.run()
	}
}

func (h *host) pending(action string) (list []Task) {
	for _, task := range h.core.Tasks(action) {
		if task.State == TaskPending {
			list = append(list, task)
		}
	}
	return list
}

// What Done is called with when the deadline of the action, or that of the stream by, has passed.
const (
	passed   = "k failed DeadlineError: the task has not ended within 10s"
	passedBy = "k failed DeadlineError: the task has not ended by 2027-01-15T08:00:08Z"
)

// A task that has not ended fails when its deadline passes: not before, and once.
func TestDeadline_ATaskThatHasNotEndedFails(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"work", "call"} {
		var ended []string
		mended := true
		w := newWorld(t)
		h := w.limits(limited(t, &ended, &mended), "w1", noon)
		h.sends("start-" + action)
		h.pass(9_999)
		h.run()
		if list := h.pending(action); len(list) != 1 || list[0].Until != noon+10_000 || len(ended) > 0 {
			t.Errorf("%s: %+v, ended %v", action, list, ended)
		}
		h.pass(1)
		h.run()
		h.pass(time.Hour.Milliseconds())
		h.run()
		if len(h.pending(action)) > 0 || !slices.Equal(ended, []string{passed}) || len(h.core.Inspect().Lane().Later()) > 0 {
			t.Errorf("%s: %+v, ended %q, %v wait", action, h.pending(action), ended, h.core.Inspect().Lane().Later())
		}
		late := Completion{Key: "k", N: 1, Out: model.Int(5)}
		w.send(home, action, "late", late.Value())
		h.run()
		if len(ended) != 1 {
			t.Errorf("%s: ended %q", action, ended)
		}
	}
}

// Whatever ends a task cancels its deadline, which then has no effect on a later start of the key.
func TestDeadline_IsCancelledByAnyOtherEnd(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"work", "call"} {
		for _, how := range []string{"done", "failed", "cancel", "drop", "both", "replace", "unhandled"} {
			var ended []string
			mended := true
			w := newWorld(t)
			h := w.limits(limited(t, &ended, &mended), "w1", noon)
			if how != "both" {
				h.sends("start-" + action)
			}
			h.pass(5_000)
			waiting := 0
			switch how {
			case "done":
				c := Completion{Key: "k", Out: model.Int(7)}
				w.send(home, action, how, c.Value())
			case "failed", "unhandled":
				mended = how == "failed"
				c := Completion{Key: "k", Err: "no"}
				w.send(home, action, how, c.Value())
			case "replace":
				waiting = 1
				fallthrough
			default:
				h.sends(how + "-" + action)
			}
			h.run()
			mended = true
			if n := len(h.core.Inspect().Lane().Later()); n != waiting {
				t.Errorf("%s, %s: %d events wait, not %d", action, how, n, waiting)
			}
			if !strings.Contains(h.value(action), `"until"`) == (how == "replace" && action == "work") {
				t.Errorf("%s, %s: %s", action, how, h.value(action))
			}
			h.pass(6_000) // the first start's would pass
			h.run()
			if n := len(h.core.Inspect().Lane().Later()); n != waiting || slices.Contains(ended, passed) {
				t.Errorf("%s, %s: %d events wait, ended %q", action, how, n, ended)
			}
		}
	}
}

// A key may be any text: the timer, whose name is part of an id, has the name of the key.
func TestDeadline_OfAKeyThatIsNoNameHasATimerWithAName(t *testing.T) {
	t.Parallel()
	key := strings.Repeat("card of ann/1, ", 10)
	p := newProgram(t).handle("start", func(tx *Tx, _ *model.Event) any {
		tx.StartTask("work", key, 1, Deadline(10*time.Second))
		return nil
	})
	if err := p.Action(&ActionSpec{Name: "work", External: true, Remote: &Remote{}}); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	h := w.limits(p.Program, "w1", noon)
	h.sends("start")
	waits := h.core.Inspect().Lane().Later()
	if len(waits) != 1 {
		t.Fatalf("%v wait, receipts %v", waits, w.receipts(home))
	}
	if task, is := TaskOfTimer(waits[0].Timer); !is || task != "work."+model.NameOf(key) {
		t.Errorf("the timer is %q", waits[0].Timer)
	}
	h.pass(10_000)
	h.run()
	if task := h.core.Tasks("work")[0]; task.Key != key || task.State != TaskFailed {
		t.Errorf("%+v", task)
	}
}

// The start that replaces a pending task has no deadline if it names none, and nothing is left of that of the task.
func TestDeadline_OfATaskThatIsReplacedIsCancelled(t *testing.T) {
	t.Parallel()
	for _, apart := range []bool{false, true} {
		p := newProgram(t).
			handle("start", func(tx *Tx, _ *model.Event) any {
				tx.StartTask("work", "k", 1, Deadline(10*time.Second))
				return nil
			}).
			handle("replace", func(tx *Tx, _ *model.Event) any {
				tx.StartTask("work", "k", 2, Replace())
				return nil
			})
		if err := p.Action(&ActionSpec{Name: "work", Discard: apart, External: true, Remote: &Remote{}}); err != nil {
			t.Fatal(err)
		}
		w := newWorld(t)
		h := w.limits(p.Program, "w1", noon)
		h.sends("start", "replace")
		if waits := h.core.Inspect().Lane().Later(); len(waits) > 0 {
			t.Errorf("apart %v: %v wait", apart, waits)
		}
		h.pass(20_000)
		h.run()
		if list := h.pending("work"); len(list) != 1 || list[0].N != 2 || list[0].Until != 0 {
			t.Errorf("apart %v: %+v", apart, h.core.Tasks("work"))
		}
	}
}

// The deadline of an earlier start, which an earlier version has not cancelled with its task, does not end the task of the next start.
func TestDeadline_OfAnEarlierStartEndsNoLaterOne(t *testing.T) {
	t.Parallel()
	limit := []TaskOption{Deadline(10 * time.Second)}
	p := newProgram(t).handle("start", func(tx *Tx, _ *model.Event) any {
		tx.StartTask("work", "k", 1, limit...)
		return nil
	})
	if err := p.Action(&ActionSpec{Name: "work", External: true, Remote: &Remote{}}); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	h := w.limits(p.Program, "w1", noon)
	h.sends("start")
	w.put(home, model.Write{Doc: "work", Path: model.Path{"tasks", "k", "until"}, Delete: true})
	h = w.limits(p.Program, "w2", noon)
	c := Completion{Key: "k", Err: "no"}
	w.send(home, "work", "failed", c.Value())
	h.run()
	limit = nil
	h.sends("start")
	if len(h.core.Inspect().Lane().Later()) != 1 {
		t.Fatal("the timer of the first start is gone")
	}
	h.pass(20_000)
	h.run()
	if list := h.pending("work"); len(list) != 1 || list[0].N != 2 || len(h.core.Inspect().Lane().Later()) > 0 {
		t.Errorf("%+v", h.core.Tasks("work"))
	}
}

// Of the limit of the action and that of a start the sooner one counts. One that is not positive fails the transaction.
func TestDeadline_TheSoonerOfTwoCounts(t *testing.T) {
	t.Parallel()
	var ended []string
	mended := true
	w := newWorld(t)
	h := w.limits(limited(t, &ended, &mended), "w1", noon)
	h.sends("wrong-work", "zero-work", "sooner-work", "later-call")
	if got := w.receipts(home)[:2]; !slices.Equal(got, []string{"wrong-work0 failed", "zero-work1 failed"}) {
		t.Error(got)
	}
	if a, b := h.pending("work")[0].Until, h.pending("call")[0].Until; a != noon+3_000 || b != noon+10_000 {
		t.Errorf("at %d and %d", a-noon, b-noon)
	}
}

// A deadline may be a time. Of several, the soonest one counts, and the error describes that one. The zero time is none.
func TestDeadline_MayBeATime(t *testing.T) {
	t.Parallel()
	at := func(ms int64) TaskOption { return DeadlineAt(time.UnixMilli(noon + ms)) }
	for _, c := range []struct {
		of      time.Duration // the action
		options []TaskOption
		until   int64 // 0 for none
		words   string
	}{
		{0, []TaskOption{at(5_000)}, 5_000, "by 2027-01-15T08:00:05Z"},
		{0, []TaskOption{DeadlineAt(time.UnixMilli(noon + 5_000).Add(-time.Nanosecond).In(time.FixedZone("east", 3600)))}, 5_000, "by 2027-01-15T08:00:04.999999999Z"},
		{10 * time.Second, []TaskOption{at(5_000)}, 5_000, "by 2027-01-15T08:00:05Z"},
		{10 * time.Second, []TaskOption{at(10_000)}, 10_000, "within 10s"},
		{10 * time.Second, []TaskOption{at(15_000)}, 10_000, "within 10s"},
		{10 * time.Second, []TaskOption{at(5_000), Deadline(3 * time.Second)}, 3_000, "within 3s"},
		{0, []TaskOption{Deadline(8 * time.Second), at(5_000)}, 5_000, "by 2027-01-15T08:00:05Z"},
		{0, []TaskOption{DeadlineAt(time.Time{})}, 0, ""},
		{10 * time.Second, []TaskOption{DeadlineAt(time.Time{})}, 10_000, "within 10s"},
	} {
		p := newProgram(t).handle("start", func(tx *Tx, _ *model.Event) any {
			tx.StartTask("work", "k", 1, c.options...)
			return nil
		})
		if err := p.Action(&ActionSpec{Name: "work", External: true, Remote: &Remote{}, Deadline: c.of}); err != nil {
			t.Fatal(err)
		}
		w := newWorld(t)
		h := w.limits(p.Program, "w1", noon)
		h.sends("start")
		if c.until == 0 {
			if list := h.pending("work"); len(list) != 1 || list[0].Until != 0 || len(h.core.Inspect().Lane().Later()) > 0 {
				t.Errorf("%+v", list)
			}
			continue
		}
		h.pass(c.until - 1)
		h.run()
		if list := h.pending("work"); len(list) != 1 || list[0].Until != noon+c.until {
			t.Errorf("%s: %+v", c.words, list)
		}
		h.pass(1)
		h.run()
		if task := h.core.Tasks("work")[0]; task.State != TaskFailed || task.Err != "DeadlineError: the task has not ended "+c.words {
			t.Errorf("%+v, want %s", task, c.words)
		}
	}
}

// A start at or after the time of its deadline, such as that of an event which is redriven a day later, is no mistake of the program: the task fails at once.
func TestDeadline_ThatHasPassedAtTheStartFailsTheTaskAtOnce(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"work", "call"} {
		for _, wall := range []int64{noon + 8_000, noon + 86_400_000} {
			var ended []string
			mended := true
			w := newWorld(t)
			h := w.limits(limited(t, &ended, &mended), "w1", wall)
			h.sends("by-" + action)
			if len(h.pending(action)) > 0 || !slices.Equal(ended, []string{passedBy}) || len(h.core.Inspect().Lane().Later()) > 0 {
				t.Errorf("%s: %+v, ended %q, receipts %v", action, h.core.Tasks(action), ended, w.receipts(home))
			}
		}
	}
}

// A time that is more than ten years ahead is probably a mistake in the unit, as of a timer.
func TestDeadline_ATimeFarAheadFailsTheStart(t *testing.T) {
	t.Parallel()
	p := newProgram(t).handle("start", func(tx *Tx, _ *model.Event) any {
		tx.StartTask("work", "k", 1, DeadlineAt(time.UnixMilli(noon*1000)))
		return nil
	})
	if err := p.Action(&ActionSpec{Name: "work", External: true, Remote: &Remote{}}); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	h := w.limits(p.Program, "w1", noon)
	h.sends("start")
	if rc := w.receipt(home, "start0"); rc.Outcome != model.Failed || !strings.Contains(rc.Error, "more than ten years") {
		t.Errorf("%+v", rc)
	}
}

// While a deadline's event is not handled because Done fails, the task is failed and its event a dead letter. Redriving it calls Done.
func TestDeadline_IsRedrivenIfDoneFails(t *testing.T) {
	t.Parallel()
	var ended []string
	mended := false
	w := newWorld(t)
	h := w.limits(limited(t, &ended, &mended), "w1", noon)
	h.sends("start-work")
	h.pass(10_000)
	h.run()
	if task := h.core.Tasks("work")[0]; task.State != TaskFailed || !task.Unhandled || task.Until != 0 || len(h.core.Inspect().Lane().Later()) != 0 {
		t.Errorf("%+v", task)
	}
	mended = true
	rc := w.allReceipts(home)[1]
	c := Completion{Key: "k", N: 1, Err: "DeadlineError: the task has not ended within 10s"}
	w.send(home, "work", model.RedriveID(rc.Event), c.Value())
	h.run()
	if !slices.Equal(ended, []string{passed}) {
		t.Errorf("ended %q, receipts %v", ended, w.receipts(home))
	}
}

// If the end that a performer has reported could not be handled, the deadline does not end the task a second time, even if an earlier version,
// which does not know until, has left the timer.
func TestDeadline_DoesNotReplaceAnEndThatIsNotHandled(t *testing.T) {
	t.Parallel()
	for _, earlier := range []bool{false, true} {
		var ended []string
		mended := false
		w := newWorld(t)
		p := limited(t, &ended, &mended)
		h := w.limits(p, "w1", noon)
		h.sends("start-work")
		if earlier {
			w.put(home, model.Write{Doc: "work", Path: model.Path{"tasks", "k", "until"}, Delete: true})
			h = w.limits(p, "w2", noon)
		}
		c := Completion{Key: "k", Out: model.Int(7)}
		w.send(home, "work", "done", c.Value())
		h.run()
		mended = true
		if waits := len(h.core.Inspect().Lane().Later()) > 0; waits != earlier {
			t.Errorf("the timer waits: %v", waits)
		}
		h.pass(20_000)
		h.run()
		if task := h.core.Tasks("work")[0]; !task.Unhandled || len(ended) > 0 {
			t.Errorf("%+v, ended %q", task, ended)
		}
		w.send(home, "work", model.RedriveID("done"), c.Value())
		h.run()
		if !slices.Equal(ended, []string{"k done 7"}) {
			t.Errorf("ended %q", ended)
		}
	}
}

// An operator can cancel the event of a deadline that waits: the task goes on without one.
func TestDeadline_ATaskWhoseDeadlineIsCancelledGoesOn(t *testing.T) {
	t.Parallel()
	var ended []string
	mended := true
	w := newWorld(t)
	h := w.limits(limited(t, &ended, &mended), "w1", noon)
	h.sends("start-work")
	waits := h.core.Inspect().Lane().Later()[0]
	operator := w.attached("operator", newProgram(t).Program, func(c *Config) { c.WithoutEvents = true })
	if _, err := operator.core.Transact("cancel", func(tx *Tx) error {
		tx.Set(CancelDoc, CancelMark("no", waits.Slot), CancelKey("work", waits.ID))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	operator.run()
	h.integrate()
	h.run()
	h.pass(20_000)
	h.run()
	if pending := h.pending("work"); len(pending) != 1 || h.core.Tasks("work")[0].Until != 0 || len(ended) > 0 || len(h.core.Inspect().Lane().Later()) > 0 {
		t.Errorf("%+v, ended %q, receipts %v", h.core.Tasks("work"), ended, w.receipts(home))
	}
	c := Completion{Key: "k", Out: model.Int(7)}
	w.send(home, "work", "done", c.Value())
	h.run()
	if !slices.Equal(ended, []string{"k done 7"}) {
		t.Errorf("ended %q", ended)
	}
}

// An operator can cancel the event with which a worker reports an end: no other event would, so the task has ended, and its deadline with it.
func TestDeadline_ATaskWhoseReportedEndIsCancelledHasEnded(t *testing.T) {
	t.Parallel()
	var ended []string
	mended := true
	w := newWorld(t)
	h := w.limits(limited(t, &ended, &mended), "w1", noon)
	h.sends("start-work")
	operator := w.attached("operator", newProgram(t).Program, func(c *Config) { c.WithoutEvents = true })
	if _, err := operator.core.Transact("cancel", func(tx *Tx) error {
		tx.Set(CancelDoc, CancelMark("no", 0), CancelKey("work", "done:1-k"))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	operator.run()
	h.integrate()
	c := Completion{Key: "k", N: 1, Out: model.Int(7)}
	w.publish(model.Event{Space: home, Stream: "work", ID: "done:1-k", Payload: c.Value()})
	h.run()
	if rc := w.receipt(home, "done:1-k"); rc == nil || rc.Outcome != model.Cancelled {
		t.Errorf("the receipt is %+v", rc)
	}
	if task := h.core.Tasks("work")[0]; task.State != TaskFailed || !task.Unhandled || task.Until != 0 || len(h.core.Inspect().Lane().Later()) > 0 {
		t.Errorf("%+v, %v wait", task, h.core.Inspect().Lane().Later())
	}
	w.send(home, "work", model.RedriveID("done:1-k"), c.Value())
	h.run()
	if !slices.Equal(ended, []string{"k done 7"}) {
		t.Errorf("ended %q", ended)
	}
}

// If the space has a program without the action when the deadline passes, the event is a dead letter, and redriving it ends the task.
func TestDeadline_ThatPassesWithoutTheActionIsADeadLetter(t *testing.T) {
	t.Parallel()
	var ended []string
	mended := true
	w := newWorld(t)
	p := limited(t, &ended, &mended)
	h := w.limits(p, "w1", noon)
	h.sends("start-work")
	other := w.limits(newProgram(t).Program, "w2", noon+10_000)
	rc := w.allReceipts(home)[1]
	if rc.Outcome != model.Refused || len(other.core.Inspect().Lane().Later()) > 0 {
		t.Errorf("receipts %v", w.receipts(home))
	}
	h = w.limits(p, "w3", noon+20_000)
	if len(h.pending("work")) != 1 {
		t.Errorf("%+v", h.core.Tasks("work"))
	}
	c := Completion{Key: "k", N: 1, Err: "DeadlineError: the task has not ended within 10s"}
	w.send(home, "work", model.RedriveID(rc.Event), c.Value())
	h.run()
	if !slices.Equal(ended, []string{passed}) || len(h.pending("work")) > 0 {
		t.Errorf("ended %q, receipts %v", ended, w.receipts(home))
	}
}

// Deadlines pass while the space is nowhere in memory; the next owner ends the tasks, from what is saved or from the log alone.
func TestDeadline_PassesWhileNoWorkerHasTheSpace(t *testing.T) {
	t.Parallel()
	for _, saved := range []bool{false, true} {
		for _, action := range []string{"work", "call"} {
			for stream, want := range map[string]string{"start": passed, "by": passedBy} { // any order
				var ended []string
				mended := true
				w := newWorld(t)
				p := limited(t, &ended, &mended)
				h := w.limits(p, "w1", noon)
				h.sends(stream + "-" + action)
				if saved {
					h.checkpoint()
				}
				h2 := w.limits(p, "w2", noon+86_400_000)
				if len(h2.pending(action)) > 0 || !slices.Equal(ended, []string{want}) {
					t.Errorf("%s %s: %+v, ended %q", stream, action, h2.pending(action), ended)
				}
			}
		}
	}
}

func TestDeadline_IsCheckedWhenAnActionIsRegistered(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]*ActionSpec{ // any order
		"up to ten years": {Name: "a", Deadline: -1},
		"0 is for none":   {Name: "a", Deadline: 20 * 366 * 24 * time.Hour},
		"an input has no": {Name: "a", Input: true, Deadline: time.Hour},
	} {
		if err := newProgram(t).Action(a); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// In any order of starts, ends, cancellations, passing time, undone commits and takeovers, a task is pending if and only if that is what a plain model
// has, Done was called for the same ends, and a timer is set for each pending task and no other.
func TestDeadline_AgreesWithAPlainModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var ended []string
		mended := true
		w := newWorld(t)
		p := limited(t, &ended, &mended)
		h := w.limits(p, "w0", noon)
		action := rapid.SampledFrom([]string{"work", "call"}).Draw(rt, "action")
		var until int64 // 0 if nothing is pending
		var in, state string
		var want []string
		for i := range rapid.IntRange(1, 25).Draw(rt, "steps") {
			id := fmt.Sprint("e", i)
			switch step := rapid.SampledFrom([]string{"start", "sooner", "by", "replace", "cancel", "drop", "done", "pass", "pass", "takeover"}).Draw(rt, "step"); step {
			case "pass":
				h.pass(rapid.Int64Range(1, 8_000).Draw(rt, "ms"))
				h.run()
				if until > 0 && h.wall >= until {
					text := passed
					switch in {
					case "3":
						text = strings.ReplaceAll(passed, "10s", "3s")
					case "by":
						text = passedBy
					}
					want = append(want, text)
					until, state = 0, "failed"
				}
			case "takeover":
				if rapid.Bool().Draw(rt, "saved") {
					h.checkpoint()
				}
				h = w.limits(p, fmt.Sprint("w", i+1), h.wall)
			case "done":
				c := Completion{Key: "k", Out: model.Int(7)}
				w.send(home, action, id, c.Value())
				h.run()
				if until > 0 || state == "cancelled" {
					want = append(want, "k done 7")
					until, state = 0, "done"
				}
			default:
				w.send(home, step+"-"+action, id, nil)
				h.run()
				kept := until > 0 || state == "done" && action == "work" // a start has no effect, or fails
				switch {
				case step == "cancel" && until > 0:
					until, state = 0, "cancelled"
				case step == "drop":
					until, state = 0, ""
				case step == "start" && !kept:
					until, state, in = h.wall+10_000, "pending", "10"
				case step == "sooner" && !kept:
					until, state, in = h.wall+3_000, "pending", "3"
				case step == "by" && !kept && h.wall < noon+8_000:
					until, state, in = min(h.wall+10_000, noon+8_000), "pending", "by"
				case step == "by" && !kept:
					want = append(want, passedBy)
					state = "failed"
				case step == "replace" && (!kept || until > 0 && in != "r"):
					until, state, in = h.wall+10_000, "pending", "r"
				}
			}
			list := h.pending(action)
			if (until > 0) != (len(list) == 1) || until > 0 && list[0].Until != until || !slices.Equal(ended, want) {
				rt.Fatalf("step %d: until %d, pending %+v, ended %q, want %q", i, until, list, ended, want)
			}
			if n := len(h.core.Inspect().Lane().Later()); n != len(list) {
				rt.Fatalf("step %d: %d timers for %d tasks", i, n, len(list))
			}
		}
	})
}
