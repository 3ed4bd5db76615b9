package flow_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/flow"
)

// meter counts what runs cost: messages in the logs, which are commits, and in the lanes, and allocations of the process, those of the
// server and the client included.
type meter struct {
	t  *testing.T
	js jetstream.JetStream
}

type costs struct{ commits, messages, allocs float64 }

func (m *meter) read() (c costs) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Minute)
	defer cancel()
	streams := m.js.ListStreams(ctx)
	for info := range streams.Info() {
		switch name := info.Config.Name; {
		case strings.HasPrefix(name, "SETTLE_LOG_"):
			c.commits += float64(info.State.LastSeq)
		case strings.HasPrefix(name, "SETTLE_LANE_"):
			c.messages += float64(info.State.LastSeq)
		}
	}
	if err := streams.Err(); err != nil {
		m.t.Fatal(err)
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	c.allocs = float64(mem.Mallocs)
	return c
}

// A step of a sequence is one commit, a call of a fan-out 0.05 on a machine that does nothing else (the test allows 0.1), and none costs a message. (The space is there before; its takeover
// and the start of the run are not counted as steps.)
func TestActions_CostOneCommitAStepAndFewInAFanOut(t *testing.T) {
	p := settle.NewProgram("bench")
	w := flow.New(p)
	for _, shape := range []string{"sequence", "fan"} {
		w.Starlark("noops.star", []byte(strings.ReplaceAll(noops, "NAME", shape)))
	}
	type numbered struct {
		I int `json:"i"`
	}
	flow.Perform(w, "noop", func(context.Context, numbered) (int, error) { return 1, nil })
	if err := w.Register(); err != nil {
		t.Fatal(err)
	}
	d, err := settle.Start(t.Context(), settle.Config{Programs: settle.Always(p), Server: embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Stop(context.Background())
	nc, err := nats.Connect("", nats.InProcessServer(d.Server()), nats.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	m := meter{t, js}
	runs := flow.In(d.Client().Space("s"))
	run := func(shape, id string, n int) {
		t.Helper()
		if _, err := runs.Start(t.Context(), shape, id, map[string]any{"n": n}); err != nil {
			t.Fatal(err)
		}
		if _, err := runs.Wait(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	run("sequence", "first", 1)
	for _, c := range []struct {
		shape           string
		n               int
		commits, allocs float64
	}{
		{"sequence", 300, 1, maxAllocsInSequence}, {"fan", 3000, 0.1, maxAllocsInFan}, // how many ends share a commit depends on how fast the store is
	} {
		before := m.read()
		run(c.shape, "r-"+c.shape, c.n)
		after, n := m.read(), float64(c.n)
		commits, messages, allocs := (after.commits-before.commits-2)/n, (after.messages-before.messages-1)/n, (after.allocs-before.allocs)/n
		t.Logf("%s of %d: %.3f commits, %.3f messages and %.0f allocations per action", c.shape, c.n, commits, messages, allocs)
		if commits > c.commits || messages > 0 {
			t.Errorf("%s: %.3f commits and %.3f messages per action; want at most %g and none", c.shape, commits, messages, c.commits)
		}
		if allocs > c.allocs {
			t.Errorf("%s: %.0f allocations per action, want at most %.0f", c.shape, allocs, c.allocs)
		}
	}
}

// The allocations per action, with a margin of a third: of the worker, the embedded server, the coordinator and the client.
const (
	maxAllocsInSequence = 500
	maxAllocsInFan      = 420
)
