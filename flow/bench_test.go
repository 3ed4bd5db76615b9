package flow_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/flow"
)

const noops = `
load("actions", "noop")

def sequence(n):
    for i in range(n):
        noop(i = i)

def fan(n):
    all = parallel([noop(i = i) for i in range(n)])
    return len(all)

workflow("NAME", NAME)
`

// BenchmarkActions runs workflows with actions that do nothing, on an embedded server.
func BenchmarkActions(b *testing.B) {
	for _, c := range []struct {
		shape             string
		spaces, runs, per int
	}{
		{"sequence", 1, 1, 100}, {"sequence", 64, 1, 10}, {"sequence", 100, 1, 100}, {"fan", 1, 1, 1000}, {"fan", 100, 1, 100}, {"fan", 64, 1, 20}, {"fan", 8, 1, 1000},
	} {
		b.Run(fmt.Sprintf("%s/spaces=%d/each=%d", c.shape, c.spaces, c.per), func(b *testing.B) {
			benchmarkActions(b, c.shape, c.spaces, c.per)
		})
	}
}

func benchmarkActions(b *testing.B, shape string, spaces, per int) {
	ctx := b.Context()
	p := settle.NewProgram("bench")
	w := flow.New(p)
	w.Starlark("noops.star", []byte(strings.ReplaceAll(noops, "NAME", shape)))
	type numbered struct {
		I int `json:"i"`
	}
	flow.Perform(w, "noop", func(context.Context, numbered) (int, error) { return 1, nil })
	if err := w.Register(); err != nil {
		b.Fatal(err)
	}
	d, err := settle.Start(ctx, settle.Config{Programs: settle.Always(p), Server: embedded.Config{StoreDir: b.TempDir(), Fsync: embedded.FsyncInterval}})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Stop(context.Background())
	round := 0
	actions := 0
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	for b.Loop() {
		round++
		var g errgroup.Group
		for s := range spaces {
			runs := flow.In(d.Client().Space(fmt.Sprintf("s%d", s)))
			id := fmt.Sprintf("r%d", round)
			g.Go(func() error {
				if _, err := runs.Start(ctx, shape, id, map[string]any{"n": per}); err != nil {
					return err
				}
				_, err := runs.Wait(ctx, id)
				return err
			})
		}
		if err := g.Wait(); err != nil {
			b.Fatal(err)
		}
		actions += spaces * per
	}
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	per1 := func(n uint64) float64 { return float64(n) / float64(actions) }
	b.ReportMetric(float64(actions)/b.Elapsed().Seconds(), "actions/s")
	b.ReportMetric(per1(after.Mallocs-before.Mallocs), "allocs/action")
	b.ReportMetric(per1(after.TotalAlloc-before.TotalAlloc), "B/action")
}
