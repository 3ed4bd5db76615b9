package tasks

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
	"github.com/settlehq/settle/space"
)

// desk is a list of the tasks of one action, and of the work that it has begun.
type desk struct {
	*List
	a     *performing
	begun []func() // beside the loop
	done  []string // keys
	sent  []model.Message
	// refuse is how many sends fail.
	refuse int
}

func newDesk(t *testing.T, how *Performer) *desk {
	t.Helper()
	core, err := space.New(space.Config{Space: "s", Runtime: "r"}, space.NewProgram("p"), replica.New("s"))
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{}
	if how.Do == nil {
		how.Do = func(_ context.Context, key string, _ model.Value) (model.Value, error) {
			d.done = append(d.done, key)
			return model.Value{}, nil
		}
	}
	d.List = New(Host{
		Space: "s", Ctx: t.Context(), Slots: NewSlots(100), Logger: slog.New(slog.DiscardHandler),
		Now: func() time.Duration { return 0 }, Go: func(f func()) { d.begun = append(d.begun, f) }, Call: func(f func()) { f() },
		Send: func(m model.Message) error {
			if d.refuse--; d.refuse >= 0 {
				return errors.New("not today")
			}
			d.sent = append(d.sent, m)
			return nil
		},
		Report: func(string, error) {}, Warn: func(string, string, ...any) {},
	})
	d.a = &performing{spec: &space.ActionSpec{Name: "work"}, how: how, limit: how.Concurrency(), pending: map[string]*task{}, queue: newQueue()}
	d.core, d.program, d.actions = core, core.Program(), []*performing{d.a}
	return d
}

func (d *desk) is(key string, state space.TaskState, attempts int) {
	d.lookAtEntry(d.a, key, model.Object(model.F("n", 1), model.F("state", string(state)), model.F("attempts", attempts)))
}

// perform starts the tasks that are due, and finishes them.
func (d *desk) perform() {
	d.Perform()
	begun := d.begun
	d.begun = nil
	for _, f := range begun {
		f()
	}
}

func TestList_LimitsConcurrentAttempts(t *testing.T) {
	d := newDesk(t, &Performer{AtATime: 2})
	for _, key := range []string{"a", "b", "c", "d"} {
		d.is(key, space.TaskPending, 0)
	}
	d.Perform()
	if len(d.begun) != 2 || d.a.underWay != 2 {
		t.Errorf("%d tasks begun, %d running, want two", len(d.begun), d.a.underWay)
	}
}

// The document shows the cancellation, whichever runtime made it.
func TestList_TheAttemptAtACancelledTaskEnds(t *testing.T) {
	d := newDesk(t, &Performer{})
	d.is("a", space.TaskPending, 0)
	d.Perform()
	of := d.a.pending["a"]
	ended := false
	of.cancel = func() { ended = true }
	d.is("a", space.TaskCancelled, 0)
	if !ended || !of.gone {
		t.Error("the attempt continues")
	}
}

// Once an operator has cancelled the deadline of a task, attempts begin after that time, too.
func TestList_ATaskWhoseDeadlineIsCancelledIsAttempted(t *testing.T) {
	d := newDesk(t, &Performer{})
	d.host.Wall = func() time.Time { return time.UnixMilli(1000) }
	entry := model.Object(model.F("n", 1), model.F("state", string(space.TaskPending)), model.F("until", 1000))
	d.lookAtEntry(d.a, "a", entry)
	d.perform()
	if len(d.done) > 0 {
		t.Error("an attempt began after the deadline")
	}
	d.is("a", space.TaskPending, 0)
	d.host.Now = func() time.Duration { return time.Second }
	d.perform()
	if len(d.done) != 1 {
		t.Errorf("%d attempts", len(d.done))
	}
}

func TestList_AttemptsAtRemovedActionsEnd(t *testing.T) {
	d := newDesk(t, &Performer{})
	d.is("a", space.TaskPending, 0)
	d.Perform()
	of := d.a.pending["a"]
	ended := false
	of.cancel = func() { ended = true }
	d.change(space.NewProgram("q"))
	if !ended || !of.gone || d.Pending() {
		t.Error("the attempt continues")
	}
}

func TestList_AttemptsOfFormerOwnersCount(t *testing.T) {
	d := newDesk(t, &Performer{Attempts: 4})
	d.is("a", space.TaskPending, 3)
	if of := d.a.pending["a"]; of.Attempts != 3 {
		t.Errorf("%d attempts counted, want 3", of.Attempts)
	}
}

// A finished task waits until the log has its end. Its end is reported again, but the task is not done again.
func TestList_AFinishedTaskIsReportedAgainAndNotRepeated(t *testing.T) {
	d := newDesk(t, &Performer{})
	d.is("a", space.TaskPending, 0)
	d.perform()
	d.a.pending["a"].at = 0 // its end has not reached the log for long
	d.perform()
	if len(d.done) != 1 || len(d.sent) != 2 || d.sent[0].ID == d.sent[1].ID {
		t.Errorf("done %v, told %+v", d.done, d.sent)
	}
}

func TestTell_IsRetriedUntilItIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, &Performer{})
		d.refuse = 3
		d.is("a", space.TaskPending, 0)
		d.perform()
		if len(d.sent) != 1 || len(d.done) != 1 || d.a.pending["a"].ended == nil {
			t.Errorf("done %v, told %+v", d.done, d.sent)
		}
	})
}

// A key that is too long for an id is reported under its hash. A key that looks like such a hash is
// another key.
func TestCompletionID_DistinguishesKeys(t *testing.T) {
	long := completionID(&space.Completion{Key: strings.Repeat("x", model.MaxNameLen+1), N: 1}, 0)
	_, hash, _ := strings.Cut(strings.TrimPrefix(long, "done:"), "-")
	if like := completionID(&space.Completion{Key: hash, N: 1}, 0); like == long {
		t.Errorf("two keys have the id %s", long)
	}
	for _, key := range []string{"r5", "undelivered", "dismissed", "r1"} {
		id := completionID(&space.Completion{Key: key, N: 1}, 0)
		if _, is := model.RedriveOf(id); is || model.FirstID(id) != id || strings.HasSuffix(id, ":"+key) {
			t.Errorf("the id of the completion of %s is %s, which is that of another event", key, id)
		}
	}
	if !model.IsMinted(long) {
		t.Errorf("a client may use the id %s", long)
	}
	if _, is := model.OriginOf(long); is {
		t.Errorf("%s is the id of what a space sends", long)
	}
}

func TestSlots_AreReleased(t *testing.T) {
	s := NewSlots(1)
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		a := &Attempt{Space: "s"}
		if !s.enter(ctx, a) {
			t.Fatal("there is no free slot")
		}
		cancel()
		if s.enter(ctx, &Attempt{}) {
			t.Error("there are two free slots")
		}
		s.leave(a)
		if n := len(s.places); n != 0 {
			t.Fatalf("%d slots are not released", n)
		}
	}
}

// running is a core that makes transactions, and records the events that they send.
type running struct {
	*space.Space
	made []uint64
	err  error
}

func (r *running) Transact(string, func(*space.Tx) error) (uint64, error) {
	if r.err != nil {
		return 0, r.err
	}
	r.made = append(r.made, uint64(len(r.made)+1))
	return r.made[len(r.made)-1], nil
}

func newRunningDesk(t *testing.T, how *Performer) (*desk, *running) {
	t.Helper()
	d := newDesk(t, how)
	r := &running{Space: d.core.(*space.Space)}
	d.core = r
	return d, r
}

func TestEnds_AreTransactionsOfTheSpaceAndNoMessages(t *testing.T) {
	d, core := newRunningDesk(t, &Performer{})
	d.is("a", space.TaskPending, 0)
	d.perform()
	if len(core.made) != 1 || len(d.sent) != 0 || d.a.underWay != 0 || d.a.pending["a"].ended == nil {
		t.Errorf("%d transactions, sent %+v, %d under way", len(core.made), d.sent, d.a.underWay)
	}
	d.is("a", space.TaskDone, 0)
	if len(d.ends.made) != 0 || d.ends.bytes != 0 {
		t.Errorf("an end that is handled is kept: %+v", d.ends)
	}
}

// The space may be another worker's by now, which has not done the work.
func TestEnds_ThatAreUndoneGoThroughTheLane(t *testing.T) {
	d, core := newRunningDesk(t, &Performer{})
	d.is("a", space.TaskPending, 0)
	d.perform()
	d.Undone([]uint64{7, core.made[0]})
	for _, f := range d.begun {
		f()
	}
	if len(d.sent) != 1 || len(d.done) != 1 || len(d.ends.made) != 0 || d.ends.bytes != 0 {
		t.Errorf("sent %+v, done %v, kept %+v", d.sent, d.done, d.ends)
	}
}

func TestEnds_GoThroughTheLaneWhereTheSpaceCannotReportThem(t *testing.T) {
	big := func(context.Context, string, model.Value) (model.Value, error) {
		return model.String(strings.Repeat("x", maxOwnEnds/2)), nil
	}
	fails := func(context.Context, string, model.Value) (model.Value, error) {
		return model.Value{}, errors.New("no")
	}
	for name, c := range map[string]struct {
		how   *Performer
		err   error
		keys  []string
		made  int
		lane  int
		block func(*desk)
	}{
		"it makes no transactions":        {how: &Performer{}, err: space.ErrNotRunning, keys: []string{"a"}, lane: 1},
		"too much is not handled yet":     {how: &Performer{Do: big}, keys: []string{"a", "b", "c"}, made: 1, lane: 2},
		"another attempt follows":         {how: &Performer{Do: fails}, keys: []string{"a"}, lane: 1},
		"the task was cancelled":          {how: &Performer{}, keys: []string{"a"}, lane: 1, block: func(d *desk) { d.is("a", space.TaskCancelled, 0) }},
		"the first one may have any size": {how: &Performer{Do: big}, keys: []string{"a"}, made: 1},
	} {
		t.Run(name, func(t *testing.T) {
			d, core := newRunningDesk(t, c.how)
			core.err = c.err
			for _, key := range c.keys {
				d.is(key, space.TaskPending, 0)
			}
			d.Perform()
			if c.block != nil {
				d.a.pending[c.keys[0]].cancel = nil // its function returns a result nevertheless
				c.block(d)
			}
			for _, f := range d.begun {
				f()
			}
			if len(core.made) != c.made || len(d.sent) != c.lane {
				t.Errorf("%d transactions and %d messages, want %d and %d", len(core.made), len(d.sent), c.made, c.lane)
			}
		})
	}
}

// What a workflow decides about is no warning; a panic is one.
func TestList_AFailureThatTheProgramHandlesIsNoWarning(t *testing.T) {
	for _, c := range []struct {
		discard, panics bool
		want            string
	}{{true, false, "level=INFO"}, {false, false, "level=WARN"}, {true, true, "level=WARN"}} {
		d := newDesk(t, &Performer{Attempts: 1, Do: func(context.Context, string, model.Value) (model.Value, error) {
			if c.panics {
				panic("no")
			}
			return model.Value{}, errors.New("no")
		}})
		var log strings.Builder
		d.host.Logger, d.a.spec.Discard = slog.New(slog.NewTextHandler(&log, nil)), c.discard
		d.is("a", space.TaskPending, 0)
		d.perform()
		if !strings.Contains(log.String(), c.want+" msg=task") {
			t.Errorf("discard %v, panics %v: %s, want %s", c.discard, c.panics, log.String(), c.want)
		}
	}
}
