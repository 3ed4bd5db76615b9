package main

import (
	"strings"
	"testing"
)

const reportProgram = `
def run(day = "", n = 0):
    wait("end")
    return [day, n]

def short(day = ""):
    return day

workflow("report", run)
workflow("short", short)
schedule("nightly", "short", cron = "0 3 * * *", zone = "Europe/Berlin", time_as = "day")
`

func TestSchedule_FromTheCommandLine(t *testing.T) {
	t.Parallel()
	hosting(t)
	dir := t.TempDir()
	program := file(t, dir, "shop.star", reportProgram)
	want(t, 0, "deployed", "deploy", program, "--space", "*")
	want(t, 0, "", "schedule", "list", "shop") // which does not create the space
	want(t, 1, "there is no such schedule", "schedule", "show", "shop", "nightly")

	eventually(t, "weekly: created", "schedule", "set", "shop", "weekly", "report", `{"n":7}`, "--cron", "0 6 * * MON", "--time-as", "day", "--jitter", "5m", "--overlap", "queue")
	eventually(t, "0 3 * * * Europe/Berlin", "schedule", "list", "shop") // the first event has had the space adopt it
	want(t, 0, "active | nightly  short  0 3 * * * Europe/Berlin | weekly  report  0 6 * * MON UTC", "schedule", "list", "shop")
	want(t, 0, `"cron":"0 3 * * *" | "declared" | "schedule":"nightly" | "started":0`, "schedule", "list", "shop", "--json")
	want(t, 0, "weekly: workflow report, 0 6 * * MON UTC, active | arguments {\"n\":7} | next | started 0, skipped 0, missed 0", "schedule", "show", "shop", "weekly")
	want(t, 0, `"args":{"n":7} | "overlap":"queue"`, "schedule", "show", "shop", "weekly", "--json")
	want(t, 0, "weekly: replaced", "schedule", "set", "shop", "weekly", "report", "--every", "7d", "--overlap", "queue")

	want(t, 0, "weekly: started run weekly-", "schedule", "trigger", "shop", "weekly")
	want(t, 0, "weekly: run weekly- | waits for the end of another one", "schedule", "trigger", "shop", "weekly")
	want(t, 0, "running weekly- | waiting weekly- | triggered 1", "schedule", "show", "shop", "weekly")
	want(t, 0, `"runs":{"running":["weekly-`, "schedule", "show", "shop", "weekly", "--json")
	want(t, 0, "nightly: started run nightly-", "schedule", "trigger", "shop", "nightly")
	want(t, 0, "declared by the program | last run nightly- | done | by trigger", "schedule", "show", "shop", "nightly")
	want(t, 0, "nightly: backfill of 2 times", "schedule", "backfill", "shop", "nightly", "2026-03-28T00:00:00Z", "2026-03-30T00:00:00Z")
	eventually(t, "nightly-20260329T010000", "workflow", "list", "shop")
	want(t, 0, `"2026-03-28T02:00:00Z"`, "workflow", "result", "shop", "nightly-20260328T020000")

	want(t, 0, "timer schedule_nightly | timer schedule_weekly | job workflow-schedules", "timers", "shop")
	want(t, 0, "weekly: paused", "schedule", "pause", "shop", "weekly", "--reason", "holidays")
	want(t, 0, "paused: holidays", "schedule", "show", "shop", "weekly")
	want(t, 0, "weekly: resumed", "schedule", "resume", "shop", "weekly")
	want(t, 0, "weekly: deleted", "schedule", "delete", "shop", "weekly")

	want(t, 1, "the program of space shop declares schedule nightly: pause it", "schedule", "delete", "shop", "nightly")
	want(t, 1, `space shop has no schedule "weekly"; `+"`settle schedule list shop`", "schedule", "pause", "shop", "weekly")
	want(t, 1, `no workflow "x"; it has report, short`, "schedule", "set", "shop", "weekly", "x", "--every", "1h")
	want(t, 2, "there are no times", "schedule", "set", "shop", "weekly", "report")
	want(t, 2, "is not a duration", "schedule", "set", "shop", "weekly", "report", "--every", "often")
	want(t, 2, "at most 24", "schedule", "set", "shop", "a-name-of-more-characters", "report", "--every", "1h")
	file(t, dir, "shop.star", strings.Replace(reportProgram, "0 3 * * *", "0 4 * * *", 1))
	want(t, 0, "deployed", "deploy", program, "--space", "*") // a space in memory adopts it at once
	eventually(t, "0 4 * * * Europe/Berlin", "schedule", "list", "shop")
	want(t, 1, "a backfill is of the past", "schedule", "backfill", "shop", "nightly", "2026-03-28T00:00:00Z", "2126-03-30T00:00:00Z")
}
