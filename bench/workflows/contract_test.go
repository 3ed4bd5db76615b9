package workflows

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/settlehq/settle/bench/harness"
)

// Every engine whose server is there gives the results of the oracle, with the actions of the oracle.
func TestContract_EveryEngineGivesTheResultsOfTheOracle(t *testing.T) {
	dir, err := os.MkdirTemp("", "settle-bench-test-") // PostgreSQL, which runs as another user, cannot enter t.TempDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // best effort: it is a temporary directory
	program := filepath.Join(dir, "nats-server")
	if text, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/nats-io/nats-server/v2").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	servers, err := harness.StartServers(t.Context(), program, filepath.Join(dir, "site"), 1, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(servers.Stop)
	at := &harness.Site{Servers: servers, Dir: filepath.Join(dir, "site"), Others: &harness.Others{}}
	if len(others) > 0 {
		at.Others = harness.StartOthers(t.Context(), dir, t.Output())
		t.Cleanup(at.Others.Stop)
	}
	absent := map[string]error{"Temporal": at.Others.NoTemporal, "DBOS": at.Others.NoPostgres}
	for _, e := range Engines() {
		a := &Actions{}
		s, err := e.Start(t.Context(), at, a)
		if why := absent[e.Name()]; why != nil {
			if !errors.Is(err, ErrNotRun) {
				t.Errorf("%s starts (%v), and its server does not: %v", e.Name(), err, why)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", e.Name(), err)
		}
		for i, p := range programs {
			n := int64(4)
			if p.name == "sleeper" {
				n = 1
			}
			want, actions := p.expect(n)
			a.calls.Store(0)
			id := "c" + strconv.Itoa(i)
			if err := s.Start(t.Context(), p.name, id, n); err != nil {
				t.Fatalf("%s: %v", e.Name(), err)
			}
			got, err := s.Result(t.Context(), id)
			if err != nil || got != want || a.calls.Load() != actions {
				t.Errorf("%s: %s(%d) gives %d with %d actions (%v) instead of %d with %d", e.Name(), p.name, n, got, a.calls.Load(), err, want, actions)
			}
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", e.Name(), err)
		}
	}
}

// The programs have the numbers of actions that the systems which they come from have published.
func TestPrograms_HaveTheirNumbersOfActions(t *testing.T) {
	for _, c := range []struct {
		program    string
		n, actions int64
	}{{"sequence", 1, 10}, {"loop", 7, 7}, {"fan", 7, 7}, {"stress", 3, 43}, {"forloop", 16, 49}, {"smoke", 5, 6}, {"control", 2, 1}, {"spread", 3, 6}, {"caught", 4, 0}, {"count", 6, 0}} {
		if _, actions := programNamed(c.program).expect(c.n); actions != c.actions {
			t.Errorf("%s(%d) has %d actions instead of %d", c.program, c.n, actions, c.actions)
		}
	}
}
