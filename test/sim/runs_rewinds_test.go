package sim

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/runs"
	"github.com/settlehq/settle/workflow"
)

// Runs are tried again, and reset to one of their steps, also in another version of their workflow.

// rewinds returns after how many steps a run goes on, and in which version, or why it does not.
func (k *clerk) rewinds(stream string, ev *model.Event) (fl *flow, to int, p *workflow.Program, why runs.Reason) {
	id, _ := ev.Payload.Get("run").AsString()
	if fl = k.flows[id]; fl == nil {
		return nil, 0, nil, runs.NoRun
	}
	n := len(fl.made)
	if stream == runs.StreamRetry {
		if fl.state != runs.Failed && fl.state != runs.Cancelled {
			return fl, 0, nil, runs.NotEnded
		}
		to = n - 1
	} else {
		if fl.state != runs.Running {
			n--
		}
		step, _ := ev.Payload.Get("step").AsInt()
		if to = int(step); step < 1 || to > n {
			return fl, 0, nil, runs.Invalid
		}
	}
	if fl.undid() {
		return fl, 0, nil, runs.Undone
	}
	if p, why = k.fitting(ev, fl, to); why == "" && stream == runs.StreamRetry && p == fl.program && fl.made[to].begin != nil && !fl.made[to].resumed {
		why = runs.Invalid
	}
	return fl, to, p, why
}

// fitting returns the version in which a run goes on after its first steps: its own, or that of the program if the event
// requests it. It is refused if any of the steps would have had other effects in that.
func (k *clerk) fitting(ev *model.Event, fl *flow, to int) (*workflow.Program, runs.Reason) {
	if latest, _ := ev.Payload.Get("latest").AsBool(); !latest {
		return fl.program, ""
	}
	p := k.f.w.plan.definitions(k.f.edition)[fl.workflow]
	switch {
	case p == nil:
		return nil, runs.NoWorkflow
	case p.Version == fl.program.Version:
		return fl.program, ""
	}
	was, is := newEngine(fl.program), newEngine(p)
	for i := range fl.made[:to] {
		before, err := was.apply(&fl.made[i])
		after, err2 := is.apply(&fl.made[i])
		switch {
		case err != nil:
			k.f.wrong("runs", "step %d of run %s, repeated: %v", i, fl.id, err)
		case err2 != nil || !reflect.DeepEqual(before.started, after.started) || openText(was.run.Open(), was.timers) != openText(is.run.Open(), is.timers):
			k.f.w.count("runs that do not fit another version")
			return nil, runs.Misfit
		}
	}
	return p, ""
}

func (k *clerk) takeRetry(ev *model.Event) { k.rewind(runs.StreamRetry, ev) }
func (k *clerk) takeReset(ev *model.Event) { k.rewind(runs.StreamReset, ev) }

// rewind drops the steps of a run after some of them, and lets it go on: it is rebuilt from nothing.
func (k *clerk) rewind(stream string, ev *model.Event) {
	fl, to, p, why := k.rewinds(stream, ev)
	if k.answers(ev, why) {
		return
	}
	last := fl.made[min(to, len(fl.made)-1)]
	for _, work := range slices.Sorted(maps.Keys(fl.calls)) {
		k.abandon(fl, work)
	}
	if p != fl.program {
		k.f.w.count("runs that go on in another version")
	}
	fl.program = p
	e := newEngine(p)
	for i := range fl.made[:to] {
		if _, err := e.apply(&fl.made[i]); err != nil {
			k.f.wrong("runs", "step %d of run %s, repeated: %v", i, fl.id, err)
			return
		}
	}
	m := made{resumed: true, reset: stream == runs.StreamReset}
	if m.reset {
		fl.resets++
		k.f.w.count("runs that were reset")
	} else {
		m.again = again(&last, e)
		if last.begin != nil { // in another version
			m.begin, m.deadline = last.begin, last.deadline
		}
		k.f.w.count("runs that were tried again")
	}
	fl.engine, fl.made = e, fl.made[:to:to]
	fl.state, fl.end, fl.ended, fl.lostTimer = runs.Running, nil, 0, false
	fl.revoked, fl.undone = false, e.run.Undoing() != nil
	k.step(fl, m)
}

// again returns what is tried again: what the last step of a run reported the end of.
func again(last *made, e *engine) (list []string) {
	switch {
	case last.resumed:
		return last.again
	case last.done != nil:
		return []string{last.done.Work}
	case last.failed != nil:
		return []string{last.failed.Work}
	case last.due:
		for id, at := range e.timers { // any order: sorted below
			if at <= last.now && strings.HasPrefix(id, "wait ") {
				list = append(list, id)
			}
		}
		slices.Sort(list)
	}
	return list
}
