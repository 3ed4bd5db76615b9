package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/space/inspect"
	"github.com/settlehq/settle/status"
	"github.com/settlehq/settle/worker"
)

// The page explains every finding that people can see, and every cause in the JSON output.
func TestEveryCheckAndEveryCauseIsExplained(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range []string{
		CheckServers, CheckPayload, CheckJetStream, CheckCluster, CheckDurability, CheckStorage, CheckDeployment, CheckStreams, CheckReplicas,
		CheckReach, CheckConsumers, CheckClock, CheckPermissions, CheckBorders, CheckUnreadable, CheckWorkers, CheckCoordinator, CheckVersions, CheckStuck, CheckGivenUp, CheckComputing, CheckConvergence, CheckIdempotency, CheckBacklog, CheckTimers, CheckTasks, CheckWaking, CheckWatches, CheckPerformers, CheckPrograms, CheckDead, CheckBackup,
	} {
		if !strings.Contains(string(text), "\n### "+check+"\n") {
			t.Errorf("check %q has no section", check)
		}
	}
	for _, cause := range []string{
		status.CauseNoProgram, status.CauseRunning, status.CauseQueued, status.CauseLoading, status.CauseFailed, status.CauseUnsaved,
		status.CauseUncommitted, status.CauseEarly, status.CauseBusy,
		inspect.CauseRetry, inspect.CauseLost, inspect.CauseDocument, inspect.CauseGate, inspect.CauseComputation, inspect.CauseTurn,
	} {
		if !strings.Contains(string(text), "`"+cause+"`") {
			t.Errorf("cause %q is not in the table", cause)
		}
	}
}

// For each row of the table of incidents, a test causes the incident with servers and workers, and
// checks the output of the commands in the columns.
func TestEveryIncidentIsATest(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## Incidents")
	tests := map[string]string{} // their code, by name: those with servers, workers and the commands
	function := regexp.MustCompile(`(?ms)^func (Test\w+)\(.*?^}$`)
	for _, pattern := range []string{"../../cmd/settle/*_test.go", "../../deploy/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, name := range files {
			code, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range function.FindAllStringSubmatch(string(code), -1) {
				tests[f[1]] = f[0]
			}
		}
	}
	rows := 0
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| incident") {
			continue
		}
		rows++
		names := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`").FindAllStringSubmatch(line, -1)
		if len(names) == 0 {
			t.Errorf("no test: %s", line)
		}
		code := ""
		for _, name := range names {
			if tests[name[1]] == "" {
				t.Errorf("there is no %s in cmd/settle or deploy", name[1])
			}
			code += tests[name[1]]
		}
		for i, looks := range map[int]*regexp.Regexp{2: regexp.MustCompile(`"fleet"`), 3: regexp.MustCompile(`"doctor"|[dD]octor\(|judged`)} {
			command := map[int]string{2: "fleet", 3: "doctor"}[i]
			column := strings.TrimSpace(strings.Split(line, "|")[i])
			if column != "" && !looks.MatchString(code) {
				t.Errorf("what settle %s shows is not looked at in the test of: %s", command, line)
			}
		}
	}
	if rows < 28 {
		t.Errorf("%d rows", rows)
	}
}

// Findings with a threshold are reported within a minute, also if all waits came one after the
// other; and the table names the thresholds.
func TestThresholds_ASumOfAllIsBelowAMinute(t *testing.T) {
	const looks = 2 * time.Second // a worker notes a standstill once per checkpoint, and a command takes a while
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## Incidents")
	for what, after := range map[string]time.Duration{CheckStuck: stuckWarning, CheckBacklog: oldBacklog, CheckTimers: lateTimers} {
		if after+worker.StuckAfter+looks >= time.Minute {
			t.Errorf("%s is reported after %v", what, after+worker.StuckAfter+looks)
		}
		if said := fmt.Sprintf("late timers after %d s", after/time.Second); !strings.Contains(table, said) {
			t.Errorf("the text above the table does not say of %s: %s", what, said)
		}
	}
	for _, said := range []string{"a stuck space after five to\nseven", "within a minute"} {
		if !strings.Contains(table, said) {
			t.Errorf("the text above the table does not say %q", said)
		}
	}
	if worker.StuckAfter != 5*time.Second {
		t.Errorf("a worker names a space after %v, and the text says five seconds", worker.StuckAfter)
	}
}
