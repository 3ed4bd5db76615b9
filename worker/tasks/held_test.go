package tasks

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// fleetAlone is a fleet of this process alone, whose limits are in use by name.
type fleetAlone map[string]int

func (f fleetAlone) Take(limit string, of, _ int) bool {
	if f[limit] >= of {
		return false
	}
	f[limit]++
	return true
}

func (f fleetAlone) Return(limit string) { f[limit]-- }

func (f fleetAlone) Part(_ string, of, _ int) int { return of }

// limitedDesks returns the lists of n spaces whose tasks share limits.
func limitedDesks(t *testing.T, n int, terms space.Fleet) ([]*desk, *Limits, fleetAlone) {
	fleet := fleetAlone{}
	limits := NewLimits(fleet)
	var desks []*desk
	for i := range n {
		d := newDesk(t, &Performer{AtATime: 100})
		d.host.Space, d.host.Limits = fmt.Sprint("s", i), limits
		d.a.spec.Fleet, d.a.held = terms, map[string]*held{}
		desks = append(desks, d)
	}
	return desks, limits, fleet
}

func (d *desk) has(n int) {
	for i := range n {
		d.is(fmt.Sprintf("k%04d", i), space.TaskPending, 0)
	}
}

// end ends the first attempt that is under way.
func (d *desk) end() {
	f := d.begun[0]
	d.begun = d.begun[1:]
	f()
}

// The spaces whose tasks wait for a limit take turns, however many tasks each has.
func TestHeld_TheSpacesTakeTurns(t *testing.T) {
	t.Parallel()
	desks, _, fleet := limitedDesks(t, 3, space.Fleet{AtATime: 1})
	for _, d := range desks {
		d.has(50)
		d.Perform()
	}
	var order string
	for range 30 {
		for i, d := range desks {
			if len(d.begun) > 0 {
				order += fmt.Sprint(i)
				d.end()
				break
			}
		}
		for _, d := range desks {
			d.Perform()
		}
		if fleet["at.work"] != 1 {
			t.Fatalf("%d tasks at a time", fleet["at.work"])
		}
	}
	if want := "0" + strings.Repeat("012", 10)[:29]; order != want { // the first one had begun before the others waited
		t.Errorf("the turns were those of %s", order)
	}
}

// Tasks that wait are not asked one by one: they wait behind the first of them, by priority.
func TestHeld_TasksWaitBehindTheFirstOne(t *testing.T) {
	t.Parallel()
	desks, limits, fleet := limitedDesks(t, 1, space.Fleet{AtATime: 2})
	d := desks[0]
	d.has(1000)
	d.Perform()
	if len(d.begun) != 2 || d.a.queue.len() != 1 {
		t.Fatalf("%d have begun, and %d are in the queue", len(d.begun), d.a.queue.len())
	}
	d.lookAtEntry(d.a, "urgent", model.Object(model.F("n", 1), model.F("state", string(space.TaskPending)), model.F("priority", 5)))
	d.Perform()
	d.end()
	d.Perform()
	if d.a.pending["urgent"].cancel == nil {
		t.Error("the task with the highest priority has not begun next")
	}
	// The first that waits is cancelled, and so are all others but one.
	for key, is := range d.a.pending {
		if is.cancel == nil && is.ended == nil && key != "k0999" {
			d.is(key, space.TaskCancelled, 0)
		}
	}
	d.end()
	d.Perform()
	if d.a.pending["k0999"].cancel == nil {
		t.Error("the last one that waits has not begun")
	}
	for len(d.begun) > 0 {
		d.end()
	}
	if fleet["at.work"] != 0 || len(d.a.held) != 0 || len(limits.by["work"].waiters) != 0 {
		t.Errorf("in the end %d are in use, of %d limits, and %d spaces wait", fleet["at.work"], len(d.a.held), len(limits.by["work"].waiters))
	}
}

// A space that does not want its turn any more, or is gone, does not hold up the others.
func TestHeld_AGoneSpaceLosesItsTurn(t *testing.T) {
	t.Parallel()
	desks, limits, _ := limitedDesks(t, 3, space.Fleet{AtATime: 1})
	desks[0].has(1)
	desks[1].has(2)
	desks[2].has(2)
	for _, d := range desks {
		d.Perform()
	}
	for _, key := range []string{"k0000", "k0001"} {
		desks[1].is(key, space.TaskCancelled, 0)
	}
	desks[0].end()
	desks[2].Perform()
	if len(desks[2].begun) != 1 {
		t.Fatal("a space whose tasks were cancelled holds up another one")
	}
	desks[1].host.Call = func(func()) {} // its loop ends
	desks[1].has(3)
	desks[1].Perform()
	desks[2].end() // the turn of its other task, which had waited before
	desks[2].has(3)
	desks[2].Perform()
	desks[2].end()
	desks[2].Perform()
	if len(desks[2].begun) != 0 {
		t.Error("it is not the turn of the other space")
	}
	f := limits.by["work"]
	f.dropGone(time.Now().Add(goneAfter))
	if len(f.waiters) != 0 {
		t.Errorf("%d spaces wait", len(f.waiters))
	}
}

// Another program may have another limit, or none.
func TestHeld_AnotherProgramLetsThemGo(t *testing.T) {
	t.Parallel()
	desks, limits, _ := limitedDesks(t, 1, space.Fleet{AtATime: 1})
	d := desks[0]
	d.has(10)
	d.Perform()
	p := space.NewProgram("q")
	if err := p.Action(&space.ActionSpec{Name: "work", Performer: d.a.how}); err != nil {
		t.Fatal(err)
	}
	d.change(p)
	d.Perform()
	if len(d.begun) != 10 || len(limits.by["work"].waiters) != 0 {
		t.Errorf("%d of 10 have begun, and %d spaces wait", len(d.begun), len(limits.by["work"].waiters))
	}
}

// Tasks with different values of the field have different limits; those without it share one.
func TestHeld_ByAField(t *testing.T) {
	t.Parallel()
	desks, _, fleet := limitedDesks(t, 1, space.Fleet{AtATime: 1, By: "host"})
	d := desks[0]
	for i, in := range []model.Value{
		model.Object(model.F("host", "a")), model.Object(model.F("host", "a")), model.Object(model.F("host", "b")), model.Object(), model.Object(),
		{},
		model.Object(model.F("host", nil)), model.Object(model.F("host", 1)), model.Object(model.F("host", "1")),
	} {
		d.lookAtEntry(d.a, fmt.Sprint(i), model.Object(model.F("n", 1), model.F("state", string(space.TaskPending)), model.F("in", in)))
	}
	d.Perform()
	if len(d.begun) != 5 || len(fleet) != 5 {
		t.Errorf("%d have begun, of %d limits, want those of a, b, 1, \"1\" and without", len(d.begun), len(fleet))
	}
}

// A part that grows brings no tokens with it, and one that shrinks leaves no more than its own.
func TestRate_OfAPartThatChanges(t *testing.T) {
	t.Parallel()
	var r rate
	at := time.Unix(0, 0)
	if r.share(10, at) != 0 || r.share(10, at) == 0 {
		t.Error("a rate does not begin with one token")
	}
	at = at.Add(10 * time.Second)
	for i := range 10 {
		if wait := r.share(10, at); wait != 0 {
			t.Fatalf("after a pause, task %d waits", i)
		}
	}
	at = at.Add(100 * time.Millisecond)
	if r.share(1000, at) != 0 || r.share(1000, at) == 0 {
		t.Error("the time before the part grew counts as if it had been so large")
	}
	at = at.Add(time.Second)
	if r.share(2, at); r.tokens > 1 {
		t.Errorf("%g tokens are left of a part of 2 per second", r.tokens)
	}
}
