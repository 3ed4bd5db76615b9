package events

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/settlehq/settle/bench/harness"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(harness.RoleEnv); text != "" { // this process is the worker of an engine
		var r harness.Role
		err := json.Unmarshal([]byte(text), &r)
		if err == nil {
			err = Serve(r)
		}
		if err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// startSite starts a server.
func startSite(t *testing.T) *harness.Site {
	t.Helper()
	dir, err := os.MkdirTemp("", "settle-bench-test-") // PostgreSQL, which runs as another user, cannot enter t.TempDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // best effort: it is a temporary directory
	program := filepath.Join(dir, "nats-server")
	if text, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/nats-io/nats-server/v2").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	s, err := harness.StartServers(t.Context(), program, filepath.Join(dir, "site"), 1, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	at := &harness.Site{Name: "test", Servers: s, Dir: filepath.Join(dir, "site"), Others: &harness.Others{}}
	if len(others) > 0 {
		at.Others = harness.StartOthers(t.Context(), dir, t.Output())
		t.Cleanup(at.Others.Stop)
	}
	return at
}

// tiny are sizes that take moments.
var tiny = map[string]Case{
	"W1": {Size: 3, Flights: 4}, "W1 alone": {Size: 1, Flights: 1}, "W1 pipelined": {Size: 3}, "W2": {Size: 6, Flights: 6}, "W4": {Size: 3, Flights: 1},
	"W5": {Size: 3}, "W6": {Size: 4}, "W7": {Size: 5}, "W8": {Size: 6},
}

// Every engine does every shape that it offers, exactly once and in order, as the shapes verify. One whose server is not
// there refuses all of them.
func TestContract_EveryEngineHandlesEachEventOnceAndInOrder(t *testing.T) {
	at := startSite(t)
	missing := map[string][]string{
		"Settle, embedded": {"W8"}, "ordered": {"W6"}, "go-workflows": {"W1 pipelined", "W4", "W5", "W6", "W7", "W8"},
		"Temporal": {"W1 pipelined", "W5", "W6", "W7", "W8"}, "DBOS": {"W1 pipelined", "W5", "W6", "W7", "W8"}, "River": {"W1 pipelined", "W5", "W6", "W7", "W8"},
	}
	absent := map[string]error{"Temporal": at.Others.NoTemporal, "DBOS": at.Others.NoPostgres, "River": at.Others.NoPostgres}
	run := 0
	for _, e := range Engines() {
		for _, shape := range Shapes() {
			run++
			r, err := measure(t.Context(), e, at, shape, tiny[shape.Name()], &Budget{Run: "t" + string(rune('a'+run/26)) + string(rune('a'+run%26)), Units: 24})
			offered := absent[e.Name()] == nil && !slices.Contains(missing[e.Name()], shape.Name())
			switch {
			case offered && err != nil:
				t.Errorf("%s at %s: %v", e.Name(), shape.Name(), err)
			case !offered && !errors.Is(err, ErrNotRun):
				t.Errorf("%s does %s (%v), and should refuse it", e.Name(), shape.Name(), err)
			case offered && r.Units == 0:
				t.Errorf("%s at %s has measured nothing", e.Name(), shape.Name())
			}
		}
	}
}

// faulty is an engine in memory with a fault.
type faulty struct {
	mu     sync.Mutex
	states map[string]State
	calls  int
	fault  string
}

func (f *faulty) Add(_ context.Context, entity, _ string) (int64, error) {
	return f.apply(entity, 0), nil
}

func (f *faulty) apply(entity string, n int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	st := f.states[entity]
	f.calls++
	st.Apply(n)
	answer := st.Count
	if f.calls == 10 {
		switch f.fault {
		case "lost":
			return answer // answered, and not stored
		case "twice":
			st.Apply(n)
		case "order":
			st.Wrong++
		}
	}
	f.states[entity] = st
	return answer
}

func (f *faulty) Pour(_ context.Context, entities []string, n int) error {
	for i := range n {
		for _, e := range entities {
			f.apply(e, int64(i)+1)
		}
	}
	return nil
}

func (f *faulty) Post(ctx context.Context, entity, id string) error {
	if f.fault == "duplicate" {
		f.apply(entity, 0)
	}
	return nil
}

func (f *faulty) State(_ context.Context, entity string) (State, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.states[entity], nil
}

func (f *faulty) Parts() harness.Parts { return harness.Parts{InClient: true} }
func (f *faulty) Close() error         { return nil }

// A figure of an engine that loses, repeats or reorders an event is an error.
func TestVerify_AFaultIsNoFigure(t *testing.T) {
	at := &harness.Site{Servers: &harness.Servers{}}
	for _, c := range []struct {
		fault string
		shape Shape
	}{{"lost", closedLoop{}}, {"twice", closedLoop{}}, {"lost", pipelined{}}, {"twice", pipelined{}}, {"order", pipelined{}}, {"duplicate", duplicates{}}, {"", closedLoop{}}, {"", pipelined{}}, {"", duplicates{}}} {
		s := &faulty{states: map[string]State{}, fault: c.fault}
		b := &Budget{Run: "v", Units: 40, Time: time.Second, Meter: &harness.Meter{Site: at, Parts: s.Parts()}}
		_, err := c.shape.Run(t.Context(), s, tiny[c.shape.Name()], b)
		if (err != nil) != (c.fault != "") {
			t.Errorf("%s with fault %q: %v", c.shape.Name(), c.fault, err)
		}
	}
}
