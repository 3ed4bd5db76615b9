package runs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/internal/simkit"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/schedule"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/workflow/compile"
)

// timed is a workflow that waits to be ended by a signal, and one that ends at once.
const timed = `
def run(n = 0, at = ""):
    wait("end")
    return [n, at]

def short(n = 0, at = ""):
    return [n, at]

workflow("w", run)
workflow("short", short)
`

// daily is a declaration of tests.
var daily = schedule.Definition{Workflow: "short", Cron: "0 3 * * *"}

// timetable is a world whose program can be replaced.
type timetable struct {
	*world
	program *space.Program
}

// declared returns a program with schedules.
func declared(t *testing.T, version string, all map[string]schedule.Definition) *space.Program {
	t.Helper()
	set := New()
	for _, name := range []string{"w", "short"} {
		entry := map[string]string{"w": "run", "short": "short"}[name]
		g, err := compile.Compile("w.star", []byte(strings.Replace(timed, map[string]string{"run": `workflow("short", short)`, "short": `workflow("w", run)`}[entry], "", 1)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := set.Add(g, nil); err != nil {
			t.Fatal(err)
		}
	}
	for name, d := range all {
		if err := set.Declare(name, d, model.Value{}); err != nil {
			t.Fatal(err)
		}
	}
	p := space.NewProgram("p")
	p.Version = version
	if err := set.Register(p); err != nil {
		t.Fatal(err)
	}
	return p
}

// newTimetable returns a world at midnight, 2026-01-01.
func newTimetable(t *testing.T, p *space.Program) *timetable {
	t.Helper()
	x := &timetable{program: p}
	w := simkit.New(func(string) (*space.Program, error) { return x.program, nil }, simkit.Options{Blocking: true})
	x.world = &world{T: t, World: w}
	x.space()
	return x
}

func (x *timetable) space() {
	x.Helper()
	var err error
	if x.s, err = x.Space("s"); err != nil {
		x.Fatal(err)
	}
}

// replace has all processes run another program.
func (x *timetable) replace(p *space.Program) {
	x.Helper()
	x.program = p
	x.restart()
}

func (x *timetable) restart() {
	x.Helper()
	if err := x.Restart(); err != nil {
		x.Fatal(err)
	}
	x.space()
}

func (x *timetable) set(fields string) model.Value {
	x.Helper()
	return x.send(StreamScheduleSet, "", `{"schedule":"n",`+fields+`}`)
}

// refuses sends an event that must be refused with a code and words.
func (x *timetable) refuses(stream, payload, code, words string) {
	x.Helper()
	result := x.send(stream, "", strings.TrimSuffix(payload, "}")+`,"answer":true}`)
	c, _ := result.Get("refused").AsString()
	if text, _ := result.Get("message").AsString(); c != code || !strings.Contains(text, words) {
		x.Errorf("%s %s: %s, want %s: %s", stream, payload, result, code, words)
	}
}

// state returns fields of the schedule n.
func (x *timetable) state(fields ...string) string {
	var list []string
	for _, f := range fields {
		v := x.s.Value(Schedules).Get("n")
		for step := range strings.SplitSeq(f, ".") {
			v = v.Get(step)
		}
		if n, is := v.AsInt(); is && n > 1e9 {
			list = append(list, time.UnixMilli(n).UTC().Format("15:04:05"))
			continue
		}
		if v.IsAbsent() {
			v = model.String("-")
		}
		list = append(list, v.String())
	}
	return strings.ReplaceAll(strings.Join(list, " "), `"-"`, "-")
}

func (x *timetable) expect(fields, want string) {
	x.Helper()
	if have := x.state(strings.Fields(fields)...); have != want {
		x.Errorf("%s: %s, want %s", fields, have, want)
	}
}

// runs lists the runs, with their states, without the name of the schedule.
func (x *timetable) runs() string {
	var list []string
	for id, entry := range x.s.Value(Index).All() {
		state, _ := entry.Get("state").AsString()
		list = append(list, strings.TrimPrefix(id, "n-20260101T")+" "+state)
	}
	return strings.Join(list, ", ")
}

func (x *timetable) expectRuns(want string) {
	x.Helper()
	if have := x.runs(); have != want {
		x.Errorf("runs: %s, want %s", have, want)
	}
}

// expectWaits expects that the space does nothing until a time, "" if it waits for no time.
func (x *timetable) expectWaits(want string) {
	x.Helper()
	have := ""
	if at, waits := x.s.NextDue(); waits {
		have = at.UTC().Format(time.RFC3339)
	}
	if have != want {
		x.Errorf("the space waits until %q, want %q", have, want)
	}
}

func (x *timetable) end(run string) {
	x.Helper()
	x.send(StreamSignal, "", fmt.Sprintf(`{"run":"n-20260101T%s","signal":"end"}`, run))
}

// A schedule starts a run at each of its times, under an ID that follows from the time. Processes end before each of
// them, and it makes no difference: each time starts one run.
func TestSchedule_StartsOneRunForEachTime(t *testing.T) {
	t.Parallel()
	for _, crash := range []bool{false, true} {
		x := newTimetable(t, declared(t, "1", nil))
		x.set(`"workflow":"short","cron":"0 3 * * *","zone":"Europe/Berlin","args":{"n":5},"time_as":"at"`)
		x.expect("next state", "02:00:00 \"active\"")
		for range 10 {
			if crash {
				x.crash()
			}
			x.advance(8 * time.Hour)
		}
		if want := "020000 done, n-20260102T020000 done, n-20260103T020000 done, n-20260104T020000 done"; x.runs() != want {
			t.Errorf("runs: %s, want %s", x.runs(), want)
		}
		if got := x.outcome("n-20260102T020000"); got != `[5,"2026-01-02T02:00:00Z"]` {
			t.Error(got)
		}
		x.expect("started skipped missed last.run last.state", `4 0 0 "n-20260104T020000" "done"`)
		x.expectWaits("2026-01-05T02:00:00Z")
		x.clean()
	}
}

// While a run is running, the overlap rule decides about the next times.
func TestSchedule_OverlapRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, during, after, counts, skipped string }{
		{`"skip"`, "010000 running", "010000 done, 050000 running", "2 3 0", `"run n-20260101T010000 is still running"`},
		{`"queue"`, "010000 running", "010000 done, 020000 running", "2 2 0", `"run n-20260101T010000 is still running, and the queue is full: 1 wait"`},
		{`"queue","queue":2`, "010000 running", "010000 done, 020000 running", "2 1 0", `"run n-20260101T010000 is still running, and the queue is full: 2 wait"`},
		{`"cancel"`, "010000 cancelled, 020000 cancelled, 030000 cancelled, 040000 running", "010000 cancelled, 020000 cancelled, 030000 cancelled, 040000 cancelled, 050000 running", "5 0 0", `-`},
		{`"allow"`, "010000 running, 020000 running, 030000 running, 040000 running", "010000 done, 020000 running, 030000 running, 040000 running, 050000 running", "5 0 0", `-`},
	} {
		x := newTimetable(t, declared(t, "1", nil))
		x.set(`"workflow":"w","every":"1h","overlap":` + c.rule)
		x.advance(4*time.Hour + time.Minute)
		x.expectRuns(c.during)
		if c.rule != `"cancel"` {
			x.end("010000")
		}
		x.restart()
		x.advance(time.Hour)
		if c.rule == `"queue"` { // the fifth waits, in place of the second
			c.skipped = `"run n-20260101T010000 is still running, and the queue is full: 1 wait"`
		}
		x.expectRuns(c.after)
		x.expect("started skipped missed", c.counts)
		x.expect("skip.why", c.skipped)
		for _, p := range x.TakeProblems() {
			t.Errorf("a problem: %s", p)
		}
	}
}

// What was due while no process ran is started within the window, the last ones, and counted as missed beyond it.
func TestSchedule_CatchUpAfterAnOutage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ fields, runs, counts, next string }{
		{``, "050000 done", "1 0 4", "06:00:00"},
		{`,"catch_up_max":100`, "010000 done, 020000 done, 030000 done, 040000 done, 050000 done", "5 0 0", "06:00:00"},
		{`,"catch_up_max":100,"catch_up":"150m"`, "030000 done, 040000 done, 050000 done", "3 0 2", "06:00:00"},
		{`,"catch_up":"20m"`, "", "0 0 5", "06:00:00"},
		{`,"catch_up_max":100,"end":"2026-01-01T03:00:00Z"`, "010000 done, 020000 done", "2 0 0", "-"},
		{`,"catch_up_max":100,"max":3`, "010000 done, 020000 done, 030000 done", "3 0 0", "-"},
	} {
		x := newTimetable(t, declared(t, "1", nil))
		x.set(`"workflow":"short","every":"1h"` + c.fields)
		if err := x.Outage(5*time.Hour + 30*time.Minute); err != nil {
			t.Fatal(err)
		}
		x.space()
		x.advance(time.Second)
		x.expectRuns(c.runs)
		x.expect("started skipped missed", c.counts)
		x.expect("next", c.next)
		x.clean()
	}
}

// Rows 92 to 96 of workflow engines: a schedule that is set again with the same times keeps its next one; another timing
// replaces it, and an interval counts from the last run; paused and not yet due, it starts nothing.
func TestSchedule_SetAgainAndPaused(t *testing.T) {
	t.Parallel()
	x := newTimetable(t, declared(t, "1", nil))
	x.set(`"workflow":"short","cron":"0 * * * *"`)
	x.advance(90 * time.Minute)
	x.expect("next started", "02:00:00 1")
	if r := x.set(`"workflow":"short","cron":"0 * * * *","args":{"n":2}`); r.Get("created").String() != "false" {
		t.Error(r)
	}
	x.expect("next started", "02:00:00 1")
	x.set(`"workflow":"short","every":"1h"`) // the last run was at 01:00
	x.expect("next cron every", "02:00:00 - \"1h\"")
	x.set(`"workflow":"short","every":"5m"`)
	x.expect("next", "01:35:00")

	x.send(StreamSchedulePause, "", `{"schedule":"n","why":"holidays"}`)
	x.expect("state why next", `"paused" "holidays" -`)
	x.expectWaits("")
	x.advance(time.Hour)
	x.set(`"workflow":"short","every":"10m"`)
	x.expect("state next started", `"paused" - 1`)
	x.send(StreamScheduleResume, "", `{"schedule":"n"}`)
	x.expect("state why next missed", `"active" - 02:40:00 0`)
	x.advance(10 * time.Minute)
	x.expect("started last.run", `2 "n-20260101T024000"`)
	x.clean()
}

// A run of a schedule that is tried again counts as running again.
func TestSchedule_ARetriedRunIsRunningAgain(t *testing.T) {
	t.Parallel()
	x := newTimetable(t, declared(t, "1", nil))
	x.set(`"workflow":"w","every":"1h","overlap":"skip"`)
	x.advance(time.Hour)
	var id string
	for name := range x.s.Value(Index).All() {
		id = name
	}
	x.send(StreamCancel, "", fmt.Sprintf(`{"run":%q}`, id))
	if got := x.state("last.state"); got != `"cancelled"` {
		t.Fatal(got)
	}
	x.send(StreamRetry, "", fmt.Sprintf(`{"run":%q}`, id))
	if got := x.state("last.state"); got != `"running"` {
		t.Error(got)
	}
	before := x.s.Value(Index).Len()
	x.advance(time.Hour)
	if n := x.s.Value(Index).Len(); n != before {
		t.Errorf("%d runs, want %d: the occurrence is skipped while the run goes on", n, before)
	}
	x.send(StreamSignal, "", fmt.Sprintf(`{"run":%q,"signal":"end"}`, id))
	x.advance(time.Hour)
	if n := x.s.Value(Index).Len(); n != before+1 {
		t.Errorf("%d runs, want %d", n, before+1)
	}
}

func TestSchedule_TriggerBackfillAndDelete(t *testing.T) {
	t.Parallel()
	x := newTimetable(t, declared(t, "1", nil))
	x.set(`"workflow":"w","every":"1h","time_as":"at"`)
	x.advance(90 * time.Minute)
	x.refuses(StreamScheduleTrigger, `{"schedule":"n"}`, schedule.Overlaps, "run n-20260101T010000 is still running")
	x.end("010000")
	if r := x.send(StreamScheduleTrigger, "", `{"schedule":"n"}`); r.String() != `{"run":"n-20260101t013000","schedule":"n","started":true}` {
		t.Error(r)
	}
	x.set(`"workflow":"w","every":"1h","time_as":"at","overlap":"queue"`)
	for range 2 { // of which one waits
		x.sent(StreamScheduleTrigger, "", `{"schedule":"n"}`)
	}
	x.expect("triggered running waiting", "1 1 1")
	if lists := x.s.Value("schedule_n").Get("runs").String(); lists != `{"running":["n-20260101t013000"],"waiting":[{"at":1767231000000,"by":"trigger","run":"n-20260101t013001"}]}` {
		t.Error(lists)
	}
	x.send(StreamCancel, "", `{"run":"n-20260101t013000"}`)
	x.advance(time.Second)
	x.send(StreamCancel, "", `{"run":"n-20260101t013001"}`)
	x.expect("triggered last.state", `2 "cancelled"`)

	for _, c := range [][3]string{
		{`"from":"2026-01-01T00:00:00Z","to":"2026-01-01T09:00:00Z"`, schedule.Invalid, "its end is 2026-01-01T09:00:00Z, and it is 2026-01-01T01:30:01Z now"},
		{`"from":"2025-12-31T00:10:00Z","to":"2025-12-31T00:20:00Z"`, schedule.Invalid, "there are no occurrences"},
		{`"from":"2025-01-01T00:00:00Z","to":"2025-12-31T00:20:00Z"`, schedule.TooMany, "more than 1000 occurrences"},
		{`"from":"now","to":"2025-12-31T00:20:00Z"`, schedule.Invalid, `from is "now"; write a time`},
		{`"to":"2025-12-31T00:20:00Z"`, schedule.Invalid, "a backfill has a first time"},
		{`"from":"2025-12-31T00:00:00Z","to":"2025-12-31T09:00:00Z","overlap":"x"`, schedule.Invalid, `overlap is "x"`},
	} {
		x.refuses(StreamScheduleBackfill, `{"schedule":"n",`+c[0]+`}`, c[1], c[2])
	}
	r := x.send(StreamScheduleBackfill, "", `{"schedule":"n","from":"2025-12-31T22:00:00Z","to":"2026-01-01T01:00:00Z"}`)
	if n, _ := r.Get("occurrences").AsInt(); n != 3 {
		t.Error(r)
	}
	x.refuses(StreamScheduleBackfill, `{"schedule":"n","from":"2025-12-31T22:00:00Z","to":"2026-01-01T01:00:00Z"}`, schedule.Busy, "until 2026-01-01T01:00:00Z")
	for _, at := range []string{"20251231T220000", "20251231T230000", "20260101T000000"} { // one after the other
		x.restart()
		x.advance(time.Second)
		x.expect("last.run last.by last.state", fmt.Sprintf(`"n-%s" "backfill" "running"`, at))
		x.send(StreamSignal, "", fmt.Sprintf(`{"run":"n-%s","signal":"end"}`, at))
	}
	if got := x.outcome("n-20251231T220000"); got != `[0,"2025-12-31T22:00:00Z"]` {
		t.Error(got)
	}
	x.expect("backfill backfilled started triggered skipped", "- 3 1 2 0")

	x.send(StreamScheduleDelete, "", `{"schedule":"n"}`)
	x.refuses(StreamScheduleDelete, `{"schedule":"n"}`, schedule.Unknown, `space s has no schedule "n"`)
	if v := x.s.Value("schedule_n"); !v.IsAbsent() {
		t.Errorf("%s is left", v)
	}
	x.expectWaits("")
	x.clean()
}

// What a client sends is refused with the reason, as the result of its event.
func TestSchedule_SetIsRefused(t *testing.T) {
	t.Parallel()
	x := newTimetable(t, declared(t, "1", nil))
	for _, c := range [][3]string{
		{`"schedule":"n","workflow":"x","every":"1h"`, schedule.Unknown, `no workflow "x"; it has short, w`},
		{`"schedule":"n","workflow":"w"`, schedule.Invalid, "there are no times"},
		{`"schedule":"n","workflow":"w","cron":"0 3 * *"`, schedule.Invalid, "it has 4 fields; write five"},
		{`"schedule":"n","workflow":"w","cron":"0 3 * * *","zone":"Mars/Olympus"`, schedule.Invalid, "is not known"},
		{`"schedule":"n","workflow":"w","cron":"0 3 * * *","zone":"Local"`, schedule.Invalid, "write a name"},
		{`"schedule":"n","workflow":"w","every":"1h","often":1`, schedule.Invalid, "there is no field often"},
		{`"schedule":"n","workflow":"w","every":"1h","start":"yesterday"`, schedule.Invalid, `start must be a time, such as "2026-11-27T03:00:00Z"`},
		{`"schedule":"n","workflow":"w","every":"90"`, schedule.Invalid, `every: "90" is not a duration; write a text such as "90s"`},
		{`"schedule":"n","workflow":"w","every":5`, schedule.Invalid, "5 is not a duration"},
		{`"schedule":"n","workflow":"w","every":"1h","args":[1]`, schedule.Invalid, "the arguments are [1]; they must be an object"},
		{`"schedule":"n","workflow":"short","every":"1h","args":{"bad":1}`, schedule.Invalid, `workflow short has no argument "bad"; it has`},
		{`"schedule":"a name","workflow":"w","every":"1h"`, schedule.Invalid, "a name"},
		{`"schedule":"n234567890123456789012345","workflow":"w","every":"1h"`, schedule.Invalid, "at most 24"},
		{`"workflow":"w","every":"1h"`, schedule.Invalid, "schedule"},
	} {
		x.refuses(StreamScheduleSet, "{"+c[0]+"}", c[1], c[2])
	}
	if rc := x.sent(StreamScheduleSet, "", "[]"); rc.Outcome != model.Failed || !strings.Contains(rc.Error, "no object") {
		t.Errorf("%s %s", rc.Outcome, rc.Error)
	}
	if v := x.s.Value(Schedules); !v.IsAbsent() {
		t.Error(v)
	}
	x.send(StreamScheduleSet, "", `{"schedule":"far","workflow":"w","cron":"0 0 1 1 *","start":"2050-01-01T00:00:00Z"}`)
	x.expectWaits("2035-12-30T00:00:00Z") // the longest timer
	x.send(StreamScheduleDelete, "", `{"schedule":"far"}`)
	for n := range maxSchedules {
		x.send(StreamScheduleSet, "", fmt.Sprintf(`{"schedule":"n%d","workflow":"w","every":"100h"}`, n))
	}
	x.refuses(StreamScheduleSet, `{"schedule":"n","workflow":"w","every":"1h"}`, schedule.TooMany, "100 schedules")
	x.clean()
}

// A space adopts the schedules that its program declares. A client may change one, and that holds until the declaration
// changes; one that is no longer declared is removed. Counts, and a pause, remain.
func TestDeclared_FollowsTheProgram(t *testing.T) {
	t.Parallel()
	first := declared(t, "1", map[string]schedule.Definition{"n": daily, "other": daily})
	x := newTimetable(t, first)
	x.set(`"workflow":"short","every":"1h"`) // its first event
	x.advance(time.Hour)
	x.expect("changed every started", `true "1h" 1`)
	if v := x.s.Value(Schedules).Get("other").Get("cron").String(); v != `"0 3 * * *"` {
		t.Error(v)
	}
	x.refuses(StreamScheduleDelete, `{"schedule":"n"}`, schedule.Owned, "pause it, or remove it from the program")
	later := daily
	later.Cron = "0 4 * * *"
	x.replace(declared(t, "2", map[string]schedule.Definition{"n": daily, "other": later}))
	x.advance(time.Second)
	x.expect("changed every", `true "1h"`) // its own declaration is the same
	if v := x.s.Value(Schedules).Get("other").Get("next").String(); v != fmt.Sprint(time.Date(2026, 1, 1, 4, 0, 0, 0, time.UTC).UnixMilli()) {
		t.Error(v)
	}
	x.send(StreamSchedulePause, "", `{"schedule":"n"}`)
	x.replace(declared(t, "3", map[string]schedule.Definition{"n": later}))
	x.advance(time.Second)
	x.expect("changed every cron state started", `- - "0 4 * * *" "paused" 1`)
	if v := x.s.Value(Schedules).Get("other"); !v.IsAbsent() {
		t.Errorf("other is left: %s", v)
	}
	x.send(StreamScheduleResume, "", `{"schedule":"n"}`)
	x.send(StreamScheduleSet, "", `{"schedule":"mine","workflow":"short","every":"100h"}`)
	x.replace(declared(t, "4", nil)) // without any, at its next time
	x.advance(24 * time.Hour)
	x.expect("started", "-")
	x.expectRuns("010000 done")
	if n := x.s.Value(Schedules).Len(); n != 1 {
		t.Errorf("%d schedules are left, want the one that a client has set", n)
	}
	x.clean()
}

// A schedule whose workflow the program does not have any more skips its occurrences, with the reason.
func TestSchedule_WithoutItsWorkflow(t *testing.T) {
	t.Parallel()
	x := newTimetable(t, declared(t, "1", nil))
	x.set(`"workflow":"short","every":"1h"`)
	p, _ := program(t, "def run():\n    return 1\nworkflow(\"other\", run)\n")
	x.replace(p)
	x.advance(2 * time.Hour)
	x.expect("started skipped skip.why next", `0 2 "this program has no workflow \"short\"; it has other" 03:00:00`)
	x.clean()
}

func TestDeclared_IsRefusedWithWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		d          schedule.Definition
		args       model.Value
	}{
		{"a name", "a name", daily, model.Value{}},
		{"n", "there are no times", schedule.Definition{Workflow: "w"}, model.Value{}},
		{"n", "no workflow \"x\"", schedule.Definition{Workflow: "x", Every: time.Hour}, model.Value{}},
		{"n", "an object", daily, model.Int(1)},
		{"n", `schedule n: workflow short has no argument "y"; it has x (optional)`, daily, model.Object(model.F("y", 1))},
		{"n", "the arguments of the schedules have", daily, model.Object(model.F("x", strings.Repeat("x", maxDeclared)))},
	} {
		set := New()
		g, err := compile.Compile("w.star", []byte("def run(x = 1):\n    return 1\nworkflow(\"short\", run)\n"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = set.Add(g, nil); err != nil {
			t.Fatal(err)
		}
		if err = set.Declare(c.name, c.d, c.args); err == nil {
			err = set.Register(space.NewProgram("p"))
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// The ID of a run is valid for each valid name of a schedule.
func TestSchedule_IDsOfRunsAreValid(t *testing.T) {
	t.Parallel()
	name := "n"
	for schedule.CheckName(name+"n") == nil {
		name += "n"
	}
	if err := CheckID(schedule.RunID(name, 0)); err != nil || len(schedule.RunID(name, 0)) != maxRunID {
		t.Errorf("%d characters: %v", len(name), err)
	}
}

// What a client sets under the name of a schedule that the program no longer declares is the client's.
func TestDeclared_BecomesOneOfAClient(t *testing.T) {
	t.Parallel()
	x := newTimetable(t, declared(t, "1", map[string]schedule.Definition{"n": daily}))
	x.advance(time.Hour)
	x.replace(declared(t, "2", nil))
	x.set(`"workflow":"short","cron":"0 3 * * *"`)
	x.advance(24 * time.Hour)
	x.expect("declared changed started", "- - 1")
	x.clean()
}

// The document of all schedules of a space fits into a commit, whatever they are.
func TestSchedule_TheLongestEntriesFitIntoADocument(t *testing.T) {
	t.Parallel()
	long, at := strings.Repeat("n", 64), time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	n := int64(1_000_000_000_000)
	o := schedule.Occurrence{Run: long[:maxRunID], At: n, By: schedule.ByBackfill}
	x := schedule.Schedule{Name: long[:24], Declared: long[:16], Changed: true, Definition: schedule.Definition{
		Workflow: long, Cron: strings.Repeat("0", 100), Zone: strings.Repeat("0", 100), Every: 1111 * time.Hour, Jitter: 1111 * time.Millisecond, Start: at, End: at,
		Max: n, Overlap: schedule.Cancel, Queue: 100, CatchUp: 1111 * time.Minute, CatchUpMax: 100, TimeAs: long,
	}}
	x.Position = schedule.Position{Status: schedule.Paused, Reason: strings.Repeat("x", 300), Next: n, Due: n, Anchor: n, Prev: n, Taken: n}
	x.Counts = schedule.Counts{Started: n, Skipped: n, Missed: n, Triggered: n, Backfilled: n, Running: 100, Waiting: 100}
	x.Backfill = &schedule.Backfill{Next: n, To: n, Overlap: schedule.Cancel}
	x.Last = &schedule.Last{Occurrence: o, Started: n, State: string(Cancelled), Ended: n}
	x.Skip = &schedule.Skipped{Occurrence: o, Why: strings.Repeat("x", 300)}
	v, err := x.Value()
	if err != nil {
		t.Fatal(err)
	}
	if size := 2 * maxSchedules * len(v.String()); size > 450<<10 {
		t.Errorf("%d schedules may have %d bytes", 2*maxSchedules, size)
	}
}

// A program without workflows refuses what is due, as a dead letter. When the space has its program again, its schedules go
// on: those of a program that declares some by themselves, others when the dead letter is sent again, or they are set again.
func TestDeclared_SetsTimersThatAnotherProgramHasLost(t *testing.T) {
	t.Parallel()
	other := map[string]schedule.Definition{"other": daily}
	for again, all := range map[string]map[string]schedule.Definition{"": other, "sent": nil, "set": nil} { // any order: the cases are independent
		p := declared(t, "1", all)
		x := newTimetable(t, p)
		x.set(`"workflow":"short","every":"1h"`)
		x.replace(space.NewProgram("none"))
		x.advance(150 * time.Minute)
		if letters := x.Letters(); len(letters) != 1 || letters[0].Stream != StreamScheduleTimer {
			t.Fatalf("%v", letters)
		}
		x.TakeProblems()
		x.replace(p)
		switch again {
		case "sent":
			x.expect("started", "0")
			x.send(StreamScheduleTimer, "again", `{"schedule":"n"}`)
		case "set":
			x.set(`"workflow":"short","every":"1h"`)
		}
		x.advance(time.Hour)
		x.expect("started missed next", "2 1 04:00:00")
		x.clean()
	}
}

// A crash before each event makes no difference to the schedules, the runs, and their states.
func TestSchedule_ACrashBeforeEachEventMakesNoDifference(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		rule := rapid.SampledFrom([]string{"skip", "queue", "cancel", "allow"}).Draw(r, "rule")
		name := rapid.SampledFrom([]string{"w", "short"}).Draw(r, "workflow")
		steps := rapid.SliceOfN(rapid.SampledFrom([]string{"time", "time", "end", "pause", "resume", "trigger", "backfill", "outage", "set"}), 1, 20).Draw(r, "steps")
		var states [2]string
		for i, crash := range []bool{false, true} {
			x := newTimetable(t, declared(t, "1", nil))
			x.set(fmt.Sprintf(`"workflow":%q,"every":"10m","overlap":%q,"jitter":"5m","catch_up_max":3`, name, rule))
			for _, step := range steps {
				if crash {
					x.crash()
				}
				x.do(step)
			}
			states[i] = x.s.Value(Schedules).String() + x.runs() + x.s.Value("schedule_n").String()
			if problems := x.TakeProblems(); len(problems) > 0 {
				r.Fatalf("%v: %v", steps, problems)
			}
		}
		if states[0] != states[1] {
			r.Fatalf("%v\n%s\nwith crashes %s", steps, states[0], states[1])
		}
	})
}

func (x *timetable) crash() {
	x.Helper()
	if err := x.Crash(); err != nil {
		x.Fatal(err)
	}
	x.space()
}

// do makes a step of a random test.
func (x *timetable) do(step string) {
	x.Helper()
	switch step {
	case "time":
		x.advance(7 * time.Minute)
	case "outage":
		if err := x.Outage(45 * time.Minute); err != nil {
			x.Fatal(err)
		}
		x.space()
	case "end":
		for id, entry := range x.s.Value(Index).All() {
			if state, _ := entry.Get("state").AsString(); state == string(Running) {
				x.send(StreamSignal, "", fmt.Sprintf(`{"run":%q,"signal":"end"}`, id))
				break
			}
		}
	case "backfill":
		x.send(StreamScheduleBackfill, "", `{"schedule":"n","from":"2025-12-31T23:00:00Z","to":"2025-12-31T23:30:00Z","answer":true}`)
	case "set":
		x.set(`"workflow":"w","every":"15m"`)
	default:
		x.send("workflow-schedule-"+step, "", `{"schedule":"n","answer":true}`)
	}
}
