package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/internal/process"
	"github.com/settlehq/settle/worker"
)

// ordersOf returns all permutations of a list.
func ordersOf(all []string) (out [][]string) {
	if len(all) == 0 {
		return [][]string{nil}
	}
	for i, first := range all {
		rest := append(append([]string{}, all[:i]...), all[i+1:]...)
		for _, o := range ordersOf(rest) {
			out = append(out, append([]string{first}, o...))
		}
	}
	return out
}

// A server, a deployment, a worker and a coordinator can be started in each of the 24 orders: each waits
// for what it needs, and logs that; once all of them run, events are handled and released.
func TestAServerADeploymentAWorkerAndACoordinatorMayBeStartedInEachOrder(t *testing.T) {
	for _, order := range ordersOf([]string{"server", "deployment", "worker", "coordinator"}) {
		t.Run(strings.Join(order, ","), func(t *testing.T) {
			t.Parallel()
			ports, err := natstest.FreePorts(1)
			if err != nil {
				t.Fatal(err)
			}
			listen := fmt.Sprintf("127.0.0.1:%d", ports[0])
			url := "nats://" + listen
			ctx, end := context.WithCancel(t.Context())
			var running sync.WaitGroup
			defer running.Wait()
			defer end()
			said := map[string]*output{"worker": {}, "coordinator": {}, "deployment": {}}
			there := map[string]bool{}
			for _, what := range order {
				there[what] = true
				switch what {
				case "server":
					s, err := embedded.Start(t.Context(), embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval, Listen: listen})
					if err != nil {
						t.Fatal(err)
					}
					defer s.Shutdown()
					defer running.Wait() // before its server is gone
					defer end()
					continue
				case "deployment":
					running.Go(func() { // ends with ctx
						out := said[what]
						if code := run(ctx, []string{"provision", "--nats", url, "--partitions", "2", "--wait", patience.String()}, out, out); code != 0 && ctx.Err() == nil {
							t.Errorf("provision ends with %d:\n%s", code, out)
						}
					})
					said[what].says(t, map[bool]string{true: "deployment settle: 2 partitions", false: "not yet: "}[there["server"]])
					continue
				}
				running.Go(func() { // ends with ctx
					err := process.Flags{NATS: url, Prefix: "settle", ID: what, Log: "info"}.Run(ctx, what, said[what], func(p process.Process) (func(context.Context) error, error) {
						return beginRole(ctx, what, p, settle.Always(passing()))
					})
					if err != nil && !errors.Is(err, context.Canceled) {
						t.Errorf("%s ends with: %v\n%s", what, err, said[what])
					}
				})
				switch {
				case !there["server"]:
					said[what].says(t, "waiting for a NATS server")
				case !there["deployment"]:
					said[what].says(t, "waiting for a deployment")
				default:
					said[what].says(t, "msg=running")
				}
			}
			said["deployment"].says(t, "deployment settle: 2 partitions")
			said["worker"].says(t, "msg=running")
			said["coordinator"].says(t, "msg=running")
			want(t, 0, "2 events: 2 handled; settled", "send", spaceIn(0), "pass", strconv.Quote(spaceIn(1)), "--nats", url, "--id", "p1", "--wait=tree")
		})
	}
}

// beginRole starts a worker or a coordinator.
func beginRole(ctx context.Context, role string, p process.Process, programs settle.Programs) (stop func(context.Context) error, err error) {
	if role == "coordinator" {
		c := coordinator.New(p.Bus, coordinator.Config{ID: p.ID, Logger: p.Logger})
		c.Start()
		return func(context.Context) error { c.Stop(); return nil }, nil
	}
	w, err := settle.StartWorker(ctx, p.Bus, settle.WorkerConfig{ID: p.ID, Programs: programs, Options: worker.Options{Heartbeat: 100 * time.Millisecond}, Logger: p.Logger})
	if err != nil {
		return nil, err
	}
	return w.Stop, nil
}
