package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/runs"
	"github.com/settlehq/settle/schedule"
)

func schedulesPage() page {
	return page{
		name: "schedules", pattern: "/schedules", under: "workflows", params: []string{"space", "state"}, everyone: true,
		open: func(c *Console, q *query) (view, error) {
			if s := q.Param("space"); s != "" {
				if err := need("space", s); err != nil {
					return view{}, err
				}
			}
			return view{load: func(ctx context.Context) (*shown, error) { return c.schedules(ctx, q) }, every: 2 * time.Second}, nil
		},
	}
}

// scheduleRow is a schedule in the list.
type scheduleRow struct {
	Space, Name, Workflow, When string
	State, Word, Why            string
	Next, Due                   time.Time
	Last                        *schedule.Last
	LastState                   string
	LastStarted                 time.Time
	Started, Skipped, Missed    int64
	Running, Waiting            int
	Skip                        *schedule.Skipped
	Declared                    string
}

// LastURL leads to the last run.
func (r *scheduleRow) LastURL() string { return runURL(r.Space, r.Last.Run) }

// schedulesData is the list.
type schedulesData struct {
	Space   string
	Rows    []scheduleRow
	Filters []filter
	Spaces  int
	All     int
	Unread  []string
}

// maxSchedules bounds the schedules of a page.
const maxSchedules = 500

func (c *Console) schedules(ctx context.Context, q *query) (*shown, error) {
	spaces, err := c.searchSpaces(ctx, q)
	if err != nil {
		return nil, err
	}
	d := &schedulesData{Space: q.Param("space"), All: len(spaces)}
	spaces = spaces[:min(len(spaces), searched)]
	d.Spaces = len(spaces)
	found := make([][]scheduleRow, len(spaces))
	d.Unread = eachSpace(ctx, spaces, func(ctx context.Context, i int) (err error) {
		if d.Space == "" && c.without.has("schedules "+spaces[i]) {
			return nil
		}
		found[i], err = readSchedules(ctx, c.cfg.Bus, spaces[i])
		if err == nil && len(found[i]) == 0 {
			c.without.add("schedules " + spaces[i])
		}
		return err
	})
	if len(d.Unread) > 0 && len(d.Unread) == len(spaces) {
		return nil, errors.New(d.Unread[0])
	}
	counts := map[string]int{}
	for _, list := range found {
		for i := range list {
			counts[list[i].Word]++
			if state := q.Param("state"); state == "" || state == list[i].Word {
				d.Rows = append(d.Rows, list[i])
			}
		}
	}
	slices.SortStableFunc(d.Rows, func(a, b scheduleRow) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), a.Next.Compare(b.Next), cmp.Compare(a.Space, b.Space), cmp.Compare(a.Name, b.Name))
	})
	d.Rows = d.Rows[:min(len(d.Rows), maxSchedules)]
	sum := 0
	for _, word := range []string{"paused", "active", "ended"} {
		sum += counts[word]
	}
	d.Filters = append(d.Filters, filter{"all", q.Address("state", ""), sum, q.Param("state") == ""})
	for _, word := range []string{"paused", "active", "ended"} {
		if counts[word] > 0 || q.Param("state") == word {
			d.Filters = append(d.Filters, filter{word, q.Address("state", word), counts[word], q.Param("state") == word})
		}
	}
	s := &shown{Name: "Schedules", CLI: "settle schedule list " + cmp.Or(d.Space, "SPACE"), Data: d, Parts: []part{{ID: "list", Template: "schedules-list", Data: d}}}
	switch next := d.next(); {
	case sum == 0:
		s.Title, s.State = "No space has a schedule", "dormant"
	case counts["paused"] > 0:
		s.Title, s.State = fmt.Sprintf("%s paused", isAre(counts["paused"], "schedule")), "parked"
	case next != nil:
		s.Title, s.State = fmt.Sprintf("%s of %s is next", next.Name, next.Space), "waiting"
	default:
		s.Title, s.State = display.Count(sum, "schedule"), "clean"
	}
	return s, nil
}

func isAre(n int, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return display.Count(n, what) + " are"
}

func (r *scheduleRow) rank() int { return slices.Index([]string{"paused", "active", "ended"}, r.Word) }

// next is the schedule whose next time comes first.
func (d *schedulesData) next() *scheduleRow {
	for i := range d.Rows {
		if !d.Rows[i].Next.IsZero() && d.Rows[i].Word == "active" {
			return &d.Rows[i]
		}
	}
	return nil
}

// readSchedules reads the schedules of a space.
func readSchedules(ctx context.Context, bus Bus, space string) (list []scheduleRow, err error) {
	doc, err := history.Read(ctx, bus, space, runs.Schedules)
	if err != nil {
		return nil, err
	}
	for name, v := range doc.Value.All() {
		x, err := schedule.Read("", name, v, model.Value{})
		if err != nil {
			list = append(list, scheduleRow{Space: space, Name: name, State: "failed", Word: "unreadable", Why: err.Error()})
			continue
		}
		list = append(list, rowOfSchedule(space, x))
	}
	return list, nil
}

func rowOfSchedule(space string, x *flow.ScheduleState) scheduleRow {
	r := scheduleRow{
		Space: space, Name: x.Name, Workflow: x.Workflow, When: x.When(), Word: string(x.Status), Why: x.Reason, Next: msTime(x.Next), Due: msTime(x.Due), Last: x.Last,
		Started: x.Started, Skipped: x.Skipped, Missed: x.Missed, Running: x.Running, Waiting: x.Waiting, Skip: x.Skip,
	}
	switch x.Status {
	case schedule.Active:
		r.State = "clean"
	case schedule.Paused:
		r.State = "parked"
	default:
		r.State = "dormant"
	}
	if x.Last != nil {
		r.LastState, r.LastStarted = runState(runs.State(x.Last.State)), msTime(x.Last.Started)
	}
	if x.Changed {
		r.Declared = "declared by the program, changed since"
	}
	return r
}

// scheduleActions are the operations on a schedule. Each is an event to its space.
func scheduleActions() []action {
	return []action{
		{name: "schedule-pause", may: maySend(runs.StreamSchedulePause), do: doSchedule("pause", func(ctx context.Context, s flow.Schedules, name string, a *act) (string, error) {
			return "is paused", s.Pause(ctx, name, a.Get("why"))
		}), preview: previewSchedule("Pause", "It starts no runs until it is resumed, except those that are triggered. Runs that are under way go on.", field{Name: "why", Label: "Reason"})},
		{name: "schedule-resume", may: maySend(runs.StreamScheduleResume), do: doSchedule("resume", func(ctx context.Context, s flow.Schedules, name string, _ *act) (string, error) {
			return "is active again", s.Resume(ctx, name)
		}), preview: previewSchedule("Resume", "Times during the pause are not made up for.")},
		{name: "schedule-trigger", may: maySend(runs.StreamScheduleTrigger), do: doSchedule("trigger", func(ctx context.Context, s flow.Schedules, name string, _ *act) (string, error) {
			run, started, err := s.Trigger(ctx, name)
			if !started {
				return "has queued run " + run, err
			}
			return "has started run " + run, err
		}), preview: previewSchedule("Trigger", "A run starts now, as far as the overlap rule permits. The times of the schedule do not change.")},
	}
}

func previewSchedule(verb, text string, ask ...field) func(context.Context, *act) (*preview, error) {
	return func(_ context.Context, a *act) (*preview, error) {
		if err := schedule.CheckName(a.Get("schedule")); err != nil {
			return nil, &missing{err.Error()}
		}
		return &preview{
			Title: fmt.Sprintf("%s schedule %s of space %s", verb, a.Get("schedule"), a.Get("space")), Text: text, Button: verb, Ask: ask,
			Back: "/schedules", CLI: fmt.Sprintf("settle schedule %s %s %s", strings.ToLower(verb), a.Get("space"), a.Get("schedule")),
		}, nil
	}
}

func doSchedule(verb string, f func(context.Context, flow.Schedules, string, *act) (string, error)) func(context.Context, *act) (*done, error) {
	return func(ctx context.Context, a *act) (*done, error) {
		name := a.Get("schedule")
		if err := schedule.CheckName(name); err != nil {
			return nil, &missing{err.Error()}
		}
		client, err := a.client(cmp.Or(a.Visitor.Name(), a.cfg.SendAs, a.Visitor.SendsAs()))
		if err != nil {
			return nil, err
		}
		text, err := f(ctx, flow.SchedulesIn(client.Space(a.Get("space"))), name, a)
		if r, is := errors.AsType[*flow.ScheduleRefusal](err); is {
			return nil, invalidForm("%s", r.Message)
		}
		if err != nil {
			return nil, err
		}
		return &done{Text: name + " " + text, To: "/schedules", Command: fmt.Sprintf("settle schedule %s %s %s", verb, a.Get("space"), name)}, nil
	}
}
