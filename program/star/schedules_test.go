package star_test

import (
	"strings"
	"testing"

	"github.com/settlehq/settle/program/star"
)

const nightlyProgram = `
count = action("count")
total = cell("total", 0)

def run(day, kind = "all"):
    n = count(day = day, kind = kind)
    wait("approve", timeout = "30h")
    return n

workflow("report", run)
schedule("nightly", workflow = "report", cron = "0 3 * * *", zone = "Europe/Berlin", overlap = "skip", time_as = "day", args = {"kind": "sales"})
schedule("often", "report", every = "90m", start = "2026-01-06T00:00:00Z", end = "2026-01-06T03:00:00Z", jitter = "5m", max = 5, queue = 3, overlap = "queue", catch_up = "2d", catch_up_max = 9, time_as = "day")

def touch():
    total.set(1)

handle("touch", touch)

def last_state():
    last = doc("schedules").nightly.get("last")
    return last.state if last else "never"

compute("last-state", last_state)
`

// A declared schedule in virtual time: it begins with the first event of the space, its runs start at their times through
// restarts and outages, and computations see it.
func TestSchedule_InAProgramAndItsTests(t *testing.T) {
	t.Parallel()
	runTests(t, nightlyProgram, `
def counted(day, kind): return day + " " + kind

def test_nights():
    mock("count", counted)
    send("touch", None)
    equal(rfc3339(doc("schedules").nightly.next), "2026-01-01T02:00:00Z")
    expect("last-state", "never")
    restart()
    advance("25h")
    equal(calls("count")[0].kwargs, {"day": "2026-01-01T02:00:00Z", "kind": "sales"})
    equal(doc("run_nightly-20260101T020000").args, {"day": "2026-01-01T02:00:00Z", "kind": "sales"})
    equal(doc("run_nightly-20260101T020000").state, "running")
    expect("last-state", "running")
    send("workflow-signal", {"run": "nightly-20260101T020000", "signal": "approve"})
    expect("last-state", "done")
    restart(after = "73h")
    advance("1s")
    equal(doc("schedules").nightly.missed, 3)
    equal(doc("schedules").nightly.started, 2)
    equal(doc("schedules").nightly.last.run, "nightly-20260105T020000")
    advance("24h")
    equal(doc("schedules").nightly.skipped, 1)
    equal(doc("schedules").nightly.skip.why, "run nightly-20260105T020000 is still running")
    equal(doc("schedules").often.started, 1)
    equal(doc("schedules").often.waiting, 1)

def test_refused():
    send("touch", None)
    advance("1s")
    equal(send("workflow-schedule-delete", {"schedule": "nightly", "answer": True})["refused"], "declared")
    equal(send("workflow-schedule-trigger", {"schedule": "never", "answer": True})["message"], "space test has no schedule \"never\"")
`)
}

func TestSchedule_IsRefusedWithItsPlace(t *testing.T) {
	t.Parallel()
	flow := "def run():\n    return 1\nworkflow('w', run)\n"
	for _, c := range [][2]string{
		{flow + "schedule('n', 'w', every = '1h')\n", ""},
		{"schedule('n', 'w', every = '1h')\n", `p.star:1:9: schedule n: there is no workflow "w"; write workflow("w", run)`},
		{flow + "schedule('n', 'x', every = '1h')\n", `p.star:4:9: schedule n: there is no workflow "x"`},
		{flow + "schedule('n', 'w')\n", "p.star:4:9: schedule n: there are no times"},
		{flow + "schedule('n', 'w', every = 'often')\n", `every: "often" is not a duration`},
		{flow + "schedule('n', 'w', every = '1h', start = 'today')\n", `start: "today" is not a time`},
		{flow + "schedule('n', 'w', cron = '0 3 * * *', zone = 'Mars')\n", `p.star:4:9: schedule n: zone "Mars" is not known`},
		{flow + "schedule('n', 'w', every = '1h', args = [1])\n", "the arguments are [1]; they must be an object"},
		{flow + "schedule('n', 'w', every = '1h')\nschedule('n', 'w', every = '2h')\n", "p.star:5:9: there are two schedules n"},
		{flow + "def h():\n    schedule('n', 'w', every = '1h')\nhandle('h', h)\n", ""},
	} {
		_, err := star.Compile(star.Source{Name: "p", Entry: "p.star", Files: map[string]string{"p.star": c[0]}}, star.Options{})
		if (err == nil) != (c[1] == "") || err != nil && !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v, want %s", c[0], err, c[1])
		}
	}
}
