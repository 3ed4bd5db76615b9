package flow_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/schedule"
	"github.com/settlehq/settle/settletest"
)

const reportSource = `
def run(day = "", kind = ""):
    return kind + " of " + day

workflow("report", run)
`

// reports returns a program with a schedule.
func reports(t *testing.T) *settle.Program {
	t.Helper()
	p := settle.NewProgram("reports")
	w := flow.New(p)
	w.Starlark("report.star", []byte(reportSource))
	w.Schedule("nightly", flow.Schedule{Workflow: "report", Cron: "0 3 * * *", Zone: "Europe/Berlin", TimeAs: "day"}, map[string]string{"kind": "sales"})
	if err := w.Register(); err != nil {
		t.Fatal(err)
	}
	return p
}

// A schedule that a program in Go declares, in virtual time, through a restart, a crash and an outage.
func TestSchedule_OfAProgramInGo(t *testing.T) {
	t.Parallel()
	world := settletest.New(t, reports(t))
	s := world.Space("s")
	s.Call("workflow-start", map[string]any{"workflow": "report", "run": "first"})
	world.Advance(25 * time.Hour)
	s.Expect("run_nightly-20260101T020000", "sales of 2026-01-01T02:00:00Z", "result")
	world.Restart()
	world.Advance(24 * time.Hour)
	world.Crash()
	world.Outage(72 * time.Hour)
	world.Advance(time.Second)
	s = world.Space("s")
	s.Expect("schedules", 3, "nightly", "started")
	s.Expect("schedules", 2, "nightly", "missed")
	s.Expect("run_nightly-20260105T020000", "done", "state")
}

func TestSchedule_DeclaredWithAMistake(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]flow.Schedule{"no workflow \"x\"": {Workflow: "x", Every: time.Hour}, "there are no times": {Workflow: "report"}} {
		w := flow.New(settle.NewProgram("reports"))
		w.Starlark("report.star", []byte(reportSource))
		w.Schedule("nightly", d, nil)
		if err := w.Register(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// The client of schedules, with an embedded server.
func TestSchedulesIn_IsTheirClient(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d, err := settle.Start(ctx, settle.Config{Programs: settle.Always(reports(t)), Server: embedded.Config{StoreDir: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Stop(context.WithoutCancel(ctx))
	space := d.Client().Space("s")
	s := flow.SchedulesIn(space)
	hourly := flow.Schedule{Workflow: "report", Every: time.Hour, Overlap: schedule.Queue, TimeAs: "day"}
	created, err := s.Set(ctx, "hourly", hourly, map[string]string{"kind": "orders"})
	if err != nil || !created {
		t.Fatal(created, err)
	}
	if created, err = s.Set(ctx, "hourly", hourly, map[string]string{"kind": "returns"}); err != nil || created {
		t.Error(created, err)
	}
	run, started, err := s.Trigger(ctx, "hourly")
	if err != nil || !started {
		t.Fatal(run, started, err)
	}
	if result, err := flow.Result[string](ctx, flow.In(space), run); err != nil || !strings.HasPrefix(result, "returns of 2") {
		t.Error(result, err)
	}
	if n, err := s.Backfill(ctx, "nightly", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC), schedule.Allow); err != nil || n != 2 {
		t.Error(n, err)
	}
	if result, err := flow.Result[string](ctx, flow.In(space), "nightly-20260102T020000"); err != nil || result != "sales of 2026-01-02T02:00:00Z" {
		t.Error(result, err)
	}
	if err := errors.Join(s.Pause(ctx, "hourly", "stocktaking"), s.Resume(ctx, "hourly"), s.Pause(ctx, "hourly", "again")); err != nil {
		t.Error(err)
	}
	x, args, err := s.Get(ctx, "hourly")
	if err != nil || x.Status != schedule.Paused || x.Reason != "again" || x.Triggered != 1 || x.Last.State != "done" || args.String() != `{"kind":"returns"}` {
		t.Errorf("%+v %s %v", x, args, err)
	}
	if list, err := s.List(ctx); err != nil || len(list) != 2 || list[1].Name != "nightly" || list[1].Declared == "" {
		t.Error(list, err)
	}
	if err := s.Delete(ctx, "hourly"); err != nil {
		t.Error(err)
	}
	if _, _, err := s.Get(ctx, "hourly"); !errors.Is(err, flow.ErrNoSchedule) {
		t.Error(err)
	}
	var r *flow.ScheduleRefusal
	if err := s.Delete(ctx, "nightly"); !errors.As(err, &r) || r.Code != schedule.Owned {
		t.Error(err)
	}
	if _, err := s.Set(ctx, "a name", hourly, nil); err == nil {
		t.Error("it has a name with a space")
	}
}

// Schedules over HTTP: each operation is an event, whose answer has its result, and the state is a document.
func TestSchedule_OverHTTP(t *testing.T) {
	t.Parallel()
	ports, err := natstest.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprint("127.0.0.1:", ports[0])
	d, err := settle.Start(t.Context(), settle.Config{Programs: settle.Always(reports(t)), HTTP: gateway.Config{Addr: addr}, Server: embedded.Config{StoreDir: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Stop(context.WithoutCancel(t.Context()))
	client := http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	ask := func(method, path, body string) string {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+"/v1/spaces/shop/"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		a, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		text, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(a.StatusCode, " ", string(text))
	}
	for _, c := range [][4]string{
		{"POST", "streams/workflow-schedule-set?wait=receipt&timeout=1m", `{"schedule":"hourly","workflow":"report","cron":"0 * * * *"}`, `200 {"duplicate":false,`},
		{"POST", "streams/workflow-schedule-set?wait=receipt&timeout=1m", `{"schedule":"hourly","workflow":"report","answer":true}`, `"refused":"invalid"`},
		{"POST", "streams/workflow-schedule-trigger?wait=receipt&timeout=1m", `{"schedule":"hourly"}`, `"run":"hourly-`},
		{"GET", "documents/schedules", "", `"cron":"0 * * * *"`},
	} {
		if got := ask(c[0], c[1], c[2]); !strings.Contains(got, c[3]) || !strings.HasPrefix(got, "200 ") {
			t.Errorf("%s %s: %s, want %s", c[0], c[1], got, c[3])
		}
	}
}
