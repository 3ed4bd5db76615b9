package sim

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/runs"
	planned "github.com/settlehq/settle/schedule"
)

// timetable is a schedule of a space according to its log.
type timetable struct {
	name       string
	every, end int64
	overlap    planned.Overlap
	entry      model.Value // as it was last
	last       int64       // the last occurrence whose run was started by its time
	// accounted is set while its occurrences are decided one after the other: they are not if it is set, paused or resumed.
	accounted, triggered bool
	// robbed is set if an operator has taken the event of its timer back, or it was given up.
	robbed bool
}

// takeSchedule takes an event about a schedule.
func (k *clerk) takeSchedule(ev *model.Event) {
	name, _ := ev.Payload.Get("schedule").AsString()
	refused, is := k.tx.Receipt.Result.Get("refused").AsString()
	t, stream := k.schedules[name], k.tx.By[strings.LastIndexByte(k.tx.By, ' ')+1:]
	if is {
		k.checkRefused(t, stream, refused)
		return
	}
	if stream == runs.StreamScheduleSet {
		t = k.define(name, ev)
	}
	switch {
	case t == nil:
		if stream != runs.StreamScheduleTimer {
			k.f.wrong("schedules", "%s of schedule %s succeeds, and there is none", stream, name)
		}
		return
	case stream == runs.StreamScheduleDelete:
		delete(k.schedules, name)
		for _, id := range k.runningOf(name) { // they go on; a schedule that is set later does not know them
			k.flows[id].schedule = ""
		}
		k.f.w.count("schedules deleted")
		return
	}
	t.accounted = stream == runs.StreamScheduleTimer || stream == runs.StreamScheduleTrigger
	t.triggered = stream == runs.StreamScheduleTrigger
	k.f.w.count("events of schedules: " + strings.TrimPrefix(stream, "workflow-schedule-"))
	k.turn(t)
}

// checkRefused: an operation is refused if there is no such schedule, or its rule forbids a run.
func (k *clerk) checkRefused(t *timetable, stream, why string) {
	busy := t != nil && (len(k.runningOf(t.name)) > 0 || !t.entry.Get("waiting").IsAbsent())
	switch {
	case why == planned.Unknown && t == nil:
	case why == planned.Overlaps && busy && stream == runs.StreamScheduleTrigger && t.overlap != planned.Cancel && t.overlap != planned.Allow:
		k.f.w.count("runs that an overlap rule has forbidden")
	default:
		k.f.wrong("schedules", "%s is refused as %s: %+v", stream, why, t)
	}
	if _, wrote := k.after[runs.Schedules]; wrote {
		k.f.wrong("schedules", "%s is refused, and changes the schedules", stream)
	}
}

// define notes a schedule that was set.
func (k *clerk) define(name string, ev *model.Event) *timetable {
	t := k.schedules[name]
	if t == nil {
		t = &timetable{name: name}
		k.schedules[name] = t
	}
	rule, _ := ev.Payload.Get("overlap").AsString()
	t.overlap, t.every, t.end = planned.Overlap(rule), scheduleEvery, scheduleEnd(k.f.w.plan).UnixMilli()
	k.f.w.count("schedules with overlap " + rule)
	return t
}

// turn takes what a schedule does: it cancels runs, then it starts one.
func (k *clerk) turn(t *timetable) {
	for _, id := range k.runningOf(t.name) {
		if len(k.records[id]) > 0 {
			if t.overlap != planned.Cancel {
				k.f.wrong("schedules", "schedule %s with the rule %s ends run %s", t.name, t.overlap, id)
			}
			k.f.w.count("runs that their schedule has cancelled")
			k.step(k.flows[id], made{cancel: "schedule " + t.name + " starts its next run"})
		}
	}
	for id, entry := range k.after[runs.Index].All() {
		doc := k.after[runs.Doc(id)]
		of, _ := doc.Get("schedule").AsString()
		if k.flows[id] != nil || of != t.name {
			continue
		}
		k.checkOccurrence(t, id, doc)
		if before := k.runningOf(t.name); t.overlap != planned.Allow && len(before) > 0 {
			k.f.wrong("schedules", "schedule %s starts run %s while %v are running, with the rule %s", t.name, id, before, t.overlap)
		}
		name, _ := entry.Get("workflow").AsString()
		args := doc.Get("args")
		k.create(id, name, args, nil, nil, made{begin: jsontext.Value(args.String())}).schedule = t.name
		k.f.w.count("runs of schedules")
	}
}

// checkOccurrence: a run is that of an occurrence, which comes after those before it, and has begun.
func (k *clerk) checkOccurrence(t *timetable, id string, doc model.Value) {
	at, _ := doc.Get("occurrence").AsInt()
	begun, _ := doc.Get("at").AsInt()
	if at > begun || begun > k.f.w.wall() {
		k.f.wrong("schedules", "run %s of occurrence %d has begun at %d; it is %d", id, at, begun, k.f.w.wall())
	}
	if id != planned.RunID(t.name, at) { // it was triggered
		k.f.w.count("runs that were triggered")
		return
	}
	if at <= t.last || at >= t.end {
		k.f.wrong("schedules", "run %s is of occurrence %d, after that of %d; the end is %d", id, at, t.last, t.end)
	}
	t.last = at
}

// runningOf returns the runs of a schedule that have not ended.
func (k *clerk) runningOf(name string) (list []string) {
	for id, fl := range k.flows { // any order: sorted below
		if fl.schedule == name && fl.state == runs.Running {
			list = append(list, id)
		}
	}
	slices.Sort(list)
	return list
}

// verifySchedules compares the documents with the runs, and accounts for each occurrence.
func (k *clerk) verifySchedules() {
	all := k.f.docs[runs.Schedules]
	if all.Len() != len(k.schedules) {
		k.f.wrong("schedules", "there are the schedules %s, want %v", all, slices.Sorted(maps.Keys(k.schedules)))
	}
	for name, entry := range all.All() {
		t := k.schedules[name]
		if t == nil {
			continue
		}
		var running []string
		for v := range k.f.docs[runs.ScheduleDoc(name)].Get("runs").Get("running").Elements() {
			id, _ := v.AsString()
			running = append(running, id)
		}
		slices.Sort(running)
		if want := k.runningOf(name); !slices.Equal(running, want) {
			k.f.wrong("schedules", "of schedule %s the runs %v are running, want %v", name, running, want)
		}
		k.account(t, entry)
		state, _ := entry.Get("state").AsString()
		_, set := k.f.agenda.timers[planTimer+name]
		if set {
			t.robbed = false
		}
		waits := entry.Get("next").IsAbsent() && len(running) > 0 // for its runs
		if (state == string(planned.Active)) != set && !t.robbed && !waits {
			k.f.wrong("schedules", "schedule %s is %s, and its timer is set: %v", name, entry, set)
		}
		t.entry, t.accounted = entry, false
	}
}

// account: each occurrence that a schedule passes has started a run, waits, was skipped or was missed.
func (k *clerk) account(t *timetable, entry model.Value) {
	if t.entry.IsAbsent() || !t.accounted {
		return
	}
	sum := func(v model.Value) (n int64) {
		for _, field := range []string{"started", "triggered", "skipped", "missed", "waiting"} {
			k, _ := v.Get(field).AsInt()
			n += k
		}
		return n
	}
	was, _ := t.entry.Get("next").AsInt()
	is, _ := entry.Get("next").AsInt()
	passed := int64(0)
	for at := was; at != 0 && at != is && at < t.end; at += t.every {
		passed++
	}
	if t.triggered {
		passed++
	}
	if got := sum(entry) - sum(t.entry); got != passed {
		k.f.wrong("schedules", "schedule %s has passed %d occurrences, and decided about %d: %s, then %s", t.name, passed, got, t.entry, entry)
	}
	for _, what := range []string{"skipped", "missed", "waiting"} {
		if a, b := t.entry.Get(what), entry.Get(what); !model.Equal(a, b) && !b.IsAbsent() {
			k.f.w.count("occurrences: " + what)
		}
	}
}

// checkSchedules: at rest, no schedule has more to do, unless a run of it does not end.
func (w *world) checkSchedules() {
	for i := range w.plan.spaces {
		k := w.folds[spaceName(i)].clerk
		for name, entry := range k.f.docs[runs.Schedules].All() {
			waiting, _ := entry.Get("waiting").AsInt()
			state, _ := entry.Get("state").AsString()
			idle := entry.Get("next").IsAbsent() && (waiting == 0 || state == string(planned.Paused) || len(k.runningOf(name)) > 0)
			if !idle && !k.schedules[name].robbed {
				w.violate("schedules", "space %s: at rest, schedule %s is %s", k.f.space, name, entry)
			}
		}
	}
}
