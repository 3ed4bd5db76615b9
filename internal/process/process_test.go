package process

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/internal/optionflags"
	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/internal/telemetry/export"
	"github.com/settlehq/settle/model"
)

func parse(t *testing.T, args ...string) Flags {
	t.Helper()
	var f Flags
	parser, err := kong.New(&f, kong.Vars{"version": "dev"}, optionflags.OfBus())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFlags_AreThoseOfTheConnection(t *testing.T) {
	check := func(f Flags) {
		t.Helper()
		if c := f.bus(); c.Partitions != 3 || c.Horizon != 48*time.Hour || c.AckTimeout != 7*time.Second || f.Stop != 9*time.Second {
			t.Errorf("the bus has %+v, and the program %v to stop", c, f.Stop)
		}
	}
	check(parse(t, "--partitions", "3", "--horizon", "48h", "--ack-timeout", "7s", "--stop-timeout", "9s"))
	t.Setenv("SETTLE_PARTITIONS", "3")
	t.Setenv("SETTLE_HORIZON", "48h")
	t.Setenv("SETTLE_ACK_TIMEOUT", "7s")
	t.Setenv("SETTLE_STOP_TIMEOUT", "9s")
	check(parse(t))
	t.Setenv("SETTLE_ACK_TIMEOUT", "1s")
	check(parse(t, "--ack-timeout", "7s"))
}

// A program's work gets the time of --stop-timeout to end.
func TestRun_StopHasSoMuchTime(t *testing.T) {
	s := natstest.StartServer(t, embedded.Config{Listen: ":0"})
	ctx, end := context.WithCancel(t.Context())
	defer end()
	f := parse(t, "--nats", s.ClientURL(), "--partitions", "1", "--id", "p1", "--stop-timeout", "1h")
	err := f.Run(ctx, "worker", io.Discard, func(Process) (func(context.Context) error, error) {
		end()
		return func(last context.Context) error {
			if until, limited := last.Deadline(); !limited || time.Until(until) < 30*time.Minute {
				t.Errorf("it has until %v", until)
			}
			return nil
		}, nil
	})
	if err != nil {
		t.Error(err)
	}
}

// --log-format json has one object a line, with the ids of the trace that a line belongs to.
func TestLog_JSON(t *testing.T) {
	var out bytes.Buffer
	f := parse(t, "--log", "warn", "--log-format", "json")
	lines, _, err := export.Logs(t.Context(), export.Logging{Local: f.logTo(&out), Level: f.level()})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(lines)
	ctx := telemetry.Context(t.Context(), model.Trace{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"})
	log.InfoContext(ctx, "running")
	log.WarnContext(ctx, "event failed", "space", "s", "error", errors.New("no such order"))
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	delete(line, "time")
	if want := map[string]any{
		"level": "WARN", "msg": "event failed", "space": "s", "error": "no such order",
		"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "span_id": "00f067aa0ba902b7",
	}; !maps.Equal(line, want) {
		t.Errorf("logged %v, not %v", line, want)
	}
}
