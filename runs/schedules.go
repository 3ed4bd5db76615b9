package runs

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/schedule"
	"github.com/settlehq/settle/space"
)

// Streams of the events about schedules. StreamScheduleTimer is for their timers.
const (
	StreamScheduleSet      = "workflow-schedule-set"
	StreamSchedulePause    = "workflow-schedule-pause"
	StreamScheduleResume   = "workflow-schedule-resume"
	StreamScheduleTrigger  = "workflow-schedule-trigger"
	StreamScheduleBackfill = "workflow-schedule-backfill"
	StreamScheduleDelete   = "workflow-schedule-delete"
	StreamScheduleTimer    = "workflow-schedule-timer"
)

// ScheduleStreams returns the streams of the events that clients send about schedules.
func ScheduleStreams() []string {
	return []string{
		StreamScheduleSet, StreamSchedulePause, StreamScheduleResume, StreamScheduleTrigger, StreamScheduleBackfill, StreamScheduleDelete,
	}
}

// maxSchedules is the largest number of schedules of a space that clients set, and of those that a program declares.
const maxSchedules = 100

// registerSchedules registers the handlers of the events about schedules.
func (s *Set) registerSchedules(p *space.Program) error {
	operations := map[string]operation{
		StreamSchedulePause: pause, StreamScheduleResume: resumeSchedule, StreamScheduleTrigger: trigger, StreamScheduleBackfill: backfill,
		StreamScheduleDelete: remove,
	}
	for _, stream := range append(ScheduleStreams(), StreamScheduleTimer) {
		handle := answering(s.operate(operations[stream]))
		switch stream {
		case StreamScheduleSet:
			handle = answering(s.setSchedule)
		case StreamScheduleTimer:
			handle = s.scheduleTimer
		}
		if err := errors.Join(p.Handle(stream, handle), p.Within(stream, handlerLimit)); err != nil {
			return err
		}
	}
	return s.registerDeclared(p)
}

// refusal is that of an operation on a schedule, as one of this package.
func refusal(r *schedule.Refusal) error { return &Refusal{Reason: Reason(r.Code), Message: r.Message} }

// operation changes a schedule. Its fields are in the result of the event. With a refusal it has changed nothing.
type operation func(h *host, x *schedule.Schedule, in model.Value) ([]model.Field, *schedule.Refusal, error)

// operate returns the handler of the events about a schedule that exists: {"schedule": NAME, ...}.
func (s *Set) operate(do operation) space.Handler {
	return func(tx *space.Tx, ev *model.Event) (model.Value, error) {
		h := s.host(tx)
		name, _ := ev.Payload.Get("schedule").AsString()
		x, err := h.schedule(name)
		if err != nil {
			return model.Value{}, err
		}
		if x == nil {
			return model.Value{}, refusal(schedule.Refuse(schedule.Unknown, "space %s has no schedule %.100q", tx.Space(), name))
		}
		fields, r, err := do(h, x, ev.Payload)
		switch {
		case err != nil:
			return model.Value{}, err
		case r != nil:
			return model.Value{}, refusal(r)
		}
		return model.Object(append(fields, model.F("schedule", name))...), tx.Err()
	}
}

func pause(h *host, x *schedule.Schedule, in model.Value) ([]model.Field, *schedule.Refusal, error) {
	why, _ := in.Get("why").AsString()
	if r := x.Pause(why); r != nil {
		return nil, r, nil
	}
	return state(x), nil, h.keep(x)
}

func resumeSchedule(h *host, x *schedule.Schedule, _ model.Value) ([]model.Field, *schedule.Refusal, error) {
	x.Resume(h.now())
	return state(x), nil, h.keep(x)
}

// trigger starts a run now. The result has its ID, and whether it waits for another one.
func trigger(h *host, x *schedule.Schedule, _ model.Value) ([]model.Field, *schedule.Refusal, error) {
	turn, o, r := x.Trigger(h.moment(x))
	if r != nil {
		return nil, r, nil
	}
	return []model.Field{model.F("run", o.Run), model.F("started", turn.Start != nil)}, nil, h.act(x, turn)
}

func backfill(h *host, x *schedule.Schedule, in model.Value) ([]model.Field, *schedule.Refusal, error) {
	from, err := timeOf(in, "from")
	to, err2 := timeOf(in, "to")
	if err = errors.Join(err, err2); err != nil {
		return nil, schedule.Refuse(schedule.Invalid, "%s", err), nil
	}
	rule, _ := in.Get("overlap").AsString()
	n, r := x.Fill(from, to, schedule.Overlap(rule), h.now())
	if r != nil {
		return nil, r, nil
	}
	return append(state(x), model.F("occurrences", n)), nil, h.keep(x)
}

// timeOf returns the time in a field of a payload, the zero time if it is absent.
func timeOf(in model.Value, field string) (t time.Time, err error) {
	if v := in.Get(field); !v.IsAbsent() {
		text, _ := v.AsString()
		if t, err = time.Parse(time.RFC3339, text); err != nil {
			err = fmt.Errorf("%s is %.100s; write a time such as \"2026-11-27T10:00:00Z\"", field, v)
		}
	}
	return t, err
}

// remove deletes a schedule. Its runs go on.
func remove(h *host, x *schedule.Schedule, _ model.Value) ([]model.Field, *schedule.Refusal, error) {
	if h.set.declared[x.Name] != nil {
		return nil, schedule.Refuse(schedule.Owned, "the program of space %s declares schedule %s: pause it, or remove it from the program", h.tx.Space(), x.Name), nil
	}
	h.forget(x.Name)
	return nil, nil, nil
}

func state(x *schedule.Schedule) []model.Field {
	fields := []model.Field{model.F("state", string(x.Status))}
	if x.Next != 0 {
		fields = append(fields, model.F("next", x.Next))
	}
	return fields
}

// setSchedule handles {"schedule": NAME, "workflow": NAME, "args": {...}, "cron": ..., ...}: it creates a schedule, or
// replaces its definition.
func (s *Set) setSchedule(tx *space.Tx, ev *model.Event) (model.Value, error) {
	h := s.host(tx)
	name, d, args, r := s.definition(ev.Payload)
	if r != nil {
		return model.Value{}, refusal(r)
	}
	x, err := h.schedule(name)
	if err != nil {
		return model.Value{}, err
	}
	if x == nil && tx.Peek(Schedules).Len() >= maxSchedules+len(s.declared) {
		return model.Value{}, refusal(schedule.Refuse(schedule.TooMany, "space %s has %d schedules; more are not possible: use several spaces", tx.Space(), tx.Peek(Schedules).Len()))
	}
	fresh := x == nil
	if x, err = h.define(x, name, d, args); err != nil {
		return model.Value{}, err
	}
	if x.Changed = s.declared[name] != nil; !x.Changed {
		x.Declared = ""
	}
	if err := h.keep(x); err != nil {
		return model.Value{}, err
	}
	return model.Object(append(state(x), model.F("schedule", name), model.F("created", fresh))...), tx.Err()
}

// definition reads what a client sets.
func (s *Set) definition(in model.Value) (name string, d schedule.Definition, args model.Value, r *schedule.Refusal) {
	if in.Kind() != model.KindObject {
		return "", d, args, schedule.Refuse(schedule.Invalid, `the payload is no object: {"schedule": NAME, "workflow": NAME, "cron": "0 3 * * *"}`)
	}
	name, _ = in.Get("schedule").AsString()
	args = in.Get("args")
	var rest []model.Field
	for key, v := range in.All() {
		if key != "schedule" && key != "args" && key != "answer" {
			rest = append(rest, model.Field{Key: key, Value: v})
		}
	}
	d, err := schedule.ReadDefinition(model.Object(rest...))
	if err == nil {
		args, err = checkSchedule(name, args)
	}
	if err != nil {
		return "", d, args, schedule.Refuse(schedule.Invalid, "%s", err)
	}
	w := s.byName[d.Workflow]
	if w == nil {
		return "", d, args, schedule.Refuse(schedule.Unknown, "%s", s.lacks(d.Workflow))
	}
	if err := w.checkScheduled(d, args); err != nil {
		return "", d, args, schedule.Refuse(schedule.Invalid, "%s", err)
	}
	return name, d, args, nil
}

func (s *Set) lacks(workflow string) string {
	return fmt.Sprintf("this program has no workflow %.100q; it has %s%s", workflow, s.names(), model.DidYouMean(workflow, s.list()))
}

// checkSchedule checks the name and the arguments of a schedule, and returns the arguments as an object.
func checkSchedule(name string, args model.Value) (model.Value, error) {
	if err := schedule.CheckName(name); err != nil {
		return args, err
	}
	if args.IsAbsent() || args.IsNull() {
		args = model.Object()
	}
	switch size := len(args.String()); {
	case args.Kind() != model.KindObject:
		return args, fmt.Errorf(`the arguments are %.100s; they must be an object by name, such as {"n": 1}`, args)
	case size > MaxValue:
		return args, fmt.Errorf("the arguments have %d bytes; at most %d are possible: pass a reference to what is large", size, MaxValue)
	}
	return args, nil
}

// schedule returns a schedule of the space, nil if there is none of the name.
func (h *host) schedule(name string) (*schedule.Schedule, error) {
	v := h.tx.Peek(Schedules).Get(name)
	if v.IsAbsent() {
		return nil, nil
	}
	return schedule.Read(h.tx.Space(), name, v, h.tx.Peek(ScheduleDoc(name)).Get("runs"))
}

// define creates a schedule, or replaces its definition. It writes only the arguments.
func (h *host) define(x *schedule.Schedule, name string, d schedule.Definition, args model.Value) (*schedule.Schedule, error) {
	var err error
	if x == nil {
		x, err = schedule.New(h.tx.Space(), name, d, h.now())
	} else {
		err = x.Redefine(h.tx.Space(), d, h.now())
	}
	if err == nil {
		h.tx.Set(ScheduleDoc(name), args, "args")
	}
	return x, err
}

// keep writes a schedule, and sets its timer.
func (h *host) keep(x *schedule.Schedule) error {
	v, err := x.Value()
	lists, err2 := x.Lists.Value()
	if err = errors.Join(err, err2); err != nil {
		return err
	}
	skipped, _ := h.tx.Peek(Schedules, x.Name, "skipped").AsInt()
	missed, _ := h.tx.Peek(Schedules, x.Name, "missed").AsInt()
	for range min(x.Skipped-skipped+x.Missed-missed, maxNotes) {
		h.tx.Note(NoteScheduleSkipped, x.Name)
	}
	h.tx.Set(Schedules, v, x.Name)
	h.tx.Set(ScheduleDoc(x.Name), lists, "runs")
	timer := timerOfSchedule(x.Name)
	was, set := h.tx.Timer(timer)
	at := min(x.Wake(h.now()), h.now()+maxTimer)
	switch {
	case at == 0 && set:
		h.tx.CancelTimer(timer)
	case at != 0 && (!set || was.UnixMilli() != at):
		h.tx.SetTimer(timer, StreamScheduleTimer, time.UnixMilli(at), model.Object(model.F("schedule", x.Name)))
	}
	return h.tx.Err()
}

// forget removes a schedule.
func (h *host) forget(name string) {
	h.tx.Delete(Schedules, name)
	h.tx.Delete(ScheduleDoc(name))
	if timer := timerOfSchedule(name); h.isSet(timer) {
		h.tx.CancelTimer(timer)
	}
}

func (h *host) isSet(timer string) bool {
	_, set := h.tx.Timer(timer)
	return set
}

// moment returns what a schedule has to know of the space.
func (h *host) moment(x *schedule.Schedule) schedule.Moment {
	m := schedule.Moment{Now: h.now(), Exists: func(id string) bool { return h.state(id) != "" }}
	if h.set.byName[x.Workflow] == nil {
		m.Blocked = h.set.lacks(x.Workflow)
	} else if err := h.tidy(); err != nil {
		m.Blocked = err.Error()
	}
	return m
}

// act does what a schedule has decided. The schedule is written first: runs that end on the way change it.
func (h *host) act(x *schedule.Schedule, t schedule.Turn) error {
	if err := h.keep(x); err != nil {
		return err
	}
	for _, id := range t.Cancel {
		if h.state(id) != Running {
			continue
		}
		if err := h.step(id, &record{Cancel: fmt.Sprintf("schedule %s starts its next run", x.Name)}); err != nil {
			return err
		}
	}
	if t.Start != nil {
		h.tx.Note(NoteScheduleStarted, x.Name)
		args, err := h.arguments(x, t.Start)
		if err != nil {
			return err
		}
		if err := h.begin(h.set.byName[x.Workflow], t.Start.Run, args, origin{fields: []model.Field{model.F("schedule", x.Name), model.F("occurrence", t.Start.At)}}); err != nil {
			return err
		}
	}
	if len(t.Cancel) > 0 {
		return h.wake()
	}
	return nil
}

// arguments returns the arguments of the run of an occurrence.
func (h *host) arguments(x *schedule.Schedule, o *schedule.Occurrence) (model.Value, error) {
	args := h.tx.Peek(ScheduleDoc(x.Name)).Get("args")
	if x.TimeAs == "" {
		return args, nil
	}
	return args.Set(model.Path{x.TimeAs}, model.String(o.Time()))
}

// scheduleTimer handles the timer of a schedule, and the event that a space gets once for the schedules that its program
// declares.
func (s *Set) scheduleTimer(tx *space.Tx, ev *model.Event) (model.Value, error) {
	h := s.host(tx)
	name, is := ev.Payload.Get("schedule").AsString()
	if !is {
		return model.Value{}, h.declare()
	}
	x, err := h.schedule(name)
	if err != nil || x == nil {
		return model.Value{}, err
	}
	if x.Declared != "" && s.declared[name] == nil {
		h.forget(name)
		return model.Value{}, tx.Err()
	}
	return model.Value{}, h.act(x, x.Turn(h.moment(x)))
}

// resumeScheduled notes in its schedule that a run that had ended goes on.
func (h *host) resumeScheduled(id string) {
	name, _ := h.tx.Peek(Doc(id), "schedule").AsString()
	x, err := h.schedule(name)
	if err == nil && x != nil {
		x.Resumed(id)
		err = h.keep(x)
	}
	if err != nil {
		h.tx.Fail(err)
	}
}

// endScheduled notes in its schedule that a run has ended.
func (h *host) endScheduled(id string, state State) {
	name, is := h.tx.Peek(Doc(id)).Get("schedule").AsString()
	if !is {
		return
	}
	x, err := h.schedule(name)
	if err == nil && x != nil && (slices.Contains(x.Active, id) || x.Last != nil && x.Last.Run == id) {
		x.Ended(id, string(state), h.now())
		err = h.keep(x)
	}
	if err != nil {
		h.tx.Fail(err)
	}
}
