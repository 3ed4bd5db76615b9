package settle_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/worker"
)

// broken has two handlers for one stream.
func broken() *settle.Program {
	h := func(*settle.Tx, *settle.Event) (settle.Value, error) { return settle.Value{}, nil }
	return settle.NewProgram("broken").Handle("sign", h).Handle("sign", h)
}

// Its events would wait for a handler forever.
func TestStart_RefusesAProgramThatIsBroken(t *testing.T) {
	_, err := settle.Start(t.Context(), settle.Config{
		Programs: settle.Always(broken()), Server: embedded.Config{StoreDir: t.TempDir()},
	})
	if err == nil || !strings.Contains(err.Error(), "program broken: stream sign") {
		t.Errorf("got %v", err)
	}
	if _, err := settle.StartWorker(t.Context(), nil, settle.WorkerConfig{ID: "w1", Programs: settle.Always(broken())}); err == nil {
		t.Error("a worker of a broken program started")
	}
}

// A worker of three times the weight gets three quarters of the partitions.
func TestStartWorker_TakesItsShareByWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := membus.NewServer(membus.Config{Partitions: 8})
		for id, weight := range map[string]float64{"small": 1, "large": 3} {
			b := server.Connect(id)
			w, err := settle.StartWorker(t.Context(), b, settle.WorkerConfig{ID: id, Programs: settle.Always(counter()), Options: worker.Options{Weight: weight}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { w.Kill(); b.Kill() })
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		owned := map[string]int{}
		found, _ := server.FollowMembers(0)
		for _, a := range found {
			owned[a.ID] = len(a.Holds)
		}
		if owned["small"] != 2 || owned["large"] != 6 {
			t.Errorf("the partitions are divided %v, want 2 and 6", owned)
		}
	})
}

// A program that gives no logger sees warnings and errors, and nothing else.
func TestStart_LogsWarningsToTheDefaultLogger(t *testing.T) {
	var out bytes.Buffer
	former := slog.Default()
	t.Cleanup(func() { slog.SetDefault(former) })
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	log := settle.DefaultLog().With("a", 1).WithGroup("g")
	log.Info("started")
	log.Warn("event failed", "b", 2)
	if got := out.String(); strings.Contains(got, "started") || !strings.Contains(got, `"event failed" a=1 g.b=2`) {
		t.Errorf("logged %s", got)
	}
}
