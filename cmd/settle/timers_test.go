package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
)

const alarm = `
def arm():
    set_timer("lock", "ring", after = "30m", payload = {"loud": True})

handle("arm", arm)
handle("ring", lambda: None)
handle("nightly", lambda: None)
cron("nightly", "30 2 1 1 *")
`

func TestTimers_ListsTimersJobsAndDelayedEventsByTheirTime(t *testing.T) {
	t.Parallel()
	hosting(t)
	want(t, 0, "deployed", "deploy", file(t, t.TempDir(), "alarm.star", alarm), "--space", "*")
	want(t, 1, "there is no space home", "timers", "home")
	want(t, 2, `space "a.b"`, "timers", "a.b")
	eventually(t, ": handled", "send", "home", "arm", "--wait")
	want(t, 0, "stored", "send", "home", "ring", "--after", "36h", "--id", "later")
	want(t, 0, "stored", "send", "home", "ring", "--after", "10m", "--id", "sooner")
	eventually(t, "event        ring     later", "timers", "home")

	out := want(t, 0, "", "timers", "home")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for i, part := range []string{"IN AT WHAT STREAM EVENT", "event ring sooner", "timer lock ring home:", "event ring later", "job nightly nightly home:"} {
		if len(lines) != 5 || !strings.Contains(unbroken(lines[i]), part) {
			t.Fatalf("line %d is not %q:\n%s", i, part, out)
		}
	}
	var got []waitingLine
	for line := range strings.Lines(want(t, 0, "", "timers", "home", "--json")) {
		var l waitingLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		got = append(got, l)
	}
	if len(got) != 4 || got[0].Event != "sooner" || got[1].Timer != "lock" || got[1].Payload.String() != `{"loud":true}` || got[3].Job != "nightly" || got[3].Timer != "" || got[2].InLane ||
		got[2].At.Sub(got[0].At) < 35*time.Hour {
		t.Errorf("as JSON: %+v", got)
	}
}

func TestTimers_SaysWhenNothingWaits(t *testing.T) {
	t.Parallel()
	counting(t, 1)
	want(t, 0, "handled", "send", "alice", "add", "--wait")
	want(t, 0, "nothing waits for its time in space alice", "timers", "alice")
}

// A delayed event is listed even while it is still in the lane, before a worker has read it.
func TestTimers_WithoutAWorkerTheLaneIsLookedThrough(t *testing.T) {
	t.Parallel()
	d, err := settle.Start(t.Context(), settle.Config{
		Programs: settle.Always(counter()), Workers: -1,
		Server: embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval, Listen: ":0"}, Bus: bus.Config{Partitions: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	pointAt(t, d.Server().ClientURL())
	want(t, 0, "stored", "send", "alice", "add", "--id", "now")
	want(t, 0, "stored", "send", "alice", "add", "--after", "2h", "--id", "later")
	out := want(t, 0, "later | no worker has read them yet: no worker serves space alice", "timers", "alice")
	if strings.Contains(out, "now\n") {
		t.Errorf("what waits for no time is listed:\n%s", out)
	}
	want(t, 0, `"in_lane":true`, "timers", "alice", "--json")
}

func TestTimers_TimesAreToldAsPeopleSayThem(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.Local)
	for d, wanted := range map[time.Duration]string{
		1234 * time.Millisecond: "1.2s 10:00:01", 90 * time.Second: "1m 30s 10:01:30", 36 * time.Hour: "36h 0m 2026-11-23 22:00:00",
		0: "now 10:00:00", -300 * time.Millisecond: "now 09:59:59", -90 * time.Second: "1m 30s ago 09:58:30",
	} {
		if got := until(now, now.Add(d)) + " " + at(now, now.Add(d)); got != wanted {
			t.Errorf("in %v: %q, want %q", d, got, wanted)
		}
	}
}
