package flow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/runs"
	"github.com/settlehq/settle/schedule"
)

// Schedule says when runs start, and of which workflow. See [schedule.Definition].
type Schedule = schedule.Definition

// ScheduleState is a schedule of a space: its definition, its next occurrence, its last run, and counts. Times are in
// milliseconds since 1970. See [schedule.State].
type ScheduleState = schedule.Schedule

// ScheduleRefusal is the error of an operation on a schedule that has no effect, with a code and a reason. See
// [schedule.Refusal].
type ScheduleRefusal = schedule.Refusal

// ErrNoSchedule reports that a space has no schedule of a name.
var ErrNoSchedule = errors.New("there is no such schedule")

// Schedule declares a schedule that each space of the program has, and of which a space starts runs with arguments by name:
// a map, a struct, or nil. A space adopts it after its first event, and a changed declaration when it runs the changed
// program.
func (w *Workflows) Schedule(name string, s Schedule, args any) {
	v, err := argumentsOf(args)
	if err != nil {
		w.note(fmt.Errorf("schedule %s: the arguments: %w", name, err))
		return
	}
	w.note(w.set.Declare(name, s, v))
}

func argumentsOf(args any) (v settle.Value, err error) {
	if args == nil {
		return v, nil
	}
	return settle.ValueOf(args)
}

// Schedules are the schedules of a space, for clients.
type Schedules struct{ space settle.Space }

// SchedulesIn returns the schedules of a space.
func SchedulesIn(space settle.Space) Schedules { return Schedules{space} }

// scheduleResult is the result of an event about a schedule.
type scheduleResult struct {
	Refused     string `json:"refused"`
	Message     string `json:"message"`
	Created     bool   `json:"created"`
	Run         string `json:"run"`
	Started     bool   `json:"started"`
	Occurrences int    `json:"occurrences"`
}

// call sends an event, and returns its result, or the refusal.
func (s Schedules) call(ctx context.Context, stream, name string, fields ...model.Field) (scheduleResult, error) {
	payload := model.Object(append(fields, model.F("schedule", name), model.F("answer", true))...)
	out, err := settle.NewRequest[settle.Value, scheduleResult](stream).Call(ctx, s.space, settle.NewID(), payload)
	if err == nil && out.Refused != "" {
		err = &ScheduleRefusal{Code: out.Refused, Message: out.Message}
	}
	return out, err
}

// Set creates a schedule, or replaces its definition and arguments; it reports whether it was created. If the times are the
// same as before, the next occurrence remains.
func (s Schedules) Set(ctx context.Context, name string, d Schedule, args any) (created bool, err error) {
	if err := errors.Join(schedule.CheckName(name), d.Check()); err != nil {
		return false, err
	}
	v, err := d.Value()
	if err != nil {
		return false, err
	}
	var fields []model.Field
	for key, x := range v.All() {
		fields = append(fields, model.Field{Key: key, Value: x})
	}
	given, err := argumentsOf(args)
	if err != nil {
		return false, fmt.Errorf("schedule %s: the arguments: %w", name, err)
	}
	if !given.IsAbsent() {
		fields = append(fields, model.F("args", given))
	}
	out, err := s.call(ctx, runs.StreamScheduleSet, name, fields...)
	return out.Created, err
}

// Pause has a schedule start no runs, but those that are triggered, until Resume.
func (s Schedules) Pause(ctx context.Context, name, why string) error {
	_, err := s.call(ctx, runs.StreamSchedulePause, name, model.F("why", why))
	return err
}

// Resume ends a pause. Occurrences during the pause are not made up for; Backfill does that.
func (s Schedules) Resume(ctx context.Context, name string) error {
	_, err := s.call(ctx, runs.StreamScheduleResume, name)
	return err
}

// Trigger starts a run now, and returns its ID. With overlap "queue" it may have to wait: then started is false.
func (s Schedules) Trigger(ctx context.Context, name string) (run string, started bool, err error) {
	out, err := s.call(ctx, runs.StreamScheduleTrigger, name)
	return out.Run, out.Started, err
}

// Backfill starts runs of the past occurrences from a time on and before another, and returns how many there are. The
// overlap rule applies to them; "" is that of the schedule.
func (s Schedules) Backfill(ctx context.Context, name string, from, to time.Time, overlap schedule.Overlap) (int, error) {
	out, err := s.call(ctx, runs.StreamScheduleBackfill, name, model.F("from", from.UTC().Format(time.RFC3339Nano)), model.F("to", to.UTC().Format(time.RFC3339Nano)), model.F("overlap", string(overlap)))
	return out.Occurrences, err
}

// Delete removes a schedule. Its runs go on. One that the program declares cannot be deleted; pause it.
func (s Schedules) Delete(ctx context.Context, name string) error {
	_, err := s.call(ctx, runs.StreamScheduleDelete, name)
	return err
}

// List returns the schedules of the space, sorted by name, without their lists of runs.
func (s Schedules) List(ctx context.Context) ([]*ScheduleState, error) {
	v, _, err := s.space.Get(ctx, runs.Schedules)
	if err != nil {
		return nil, err
	}
	all := map[string]*ScheduleState{}
	for name, entry := range v.All() {
		if all[name], err = schedule.Read("", name, entry, settle.Value{}); err != nil {
			return nil, err
		}
	}
	var list []*ScheduleState
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[name])
	}
	return list, nil
}

// Get returns a schedule, and the arguments of its runs.
func (s Schedules) Get(ctx context.Context, name string) (x *ScheduleState, args settle.Value, err error) {
	all, _, err := s.space.Get(ctx, runs.Schedules)
	if err != nil {
		return nil, args, err
	}
	entry := all.Get(name)
	if entry.IsAbsent() {
		return nil, args, fmt.Errorf("schedule %.100s: %w", name, ErrNoSchedule)
	}
	detail, _, err := s.space.Get(ctx, runs.ScheduleDoc(name))
	if err != nil {
		return nil, args, err
	}
	x, err = schedule.Read("", name, entry, detail.Get("runs"))
	return x, detail.Get("args"), err
}
