package doctor

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// Every finding that a person can meet is explained, and every cause that a program can.
func TestEveryCheckAndEveryCauseIsExplained(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range []string{
		CheckServers, CheckPayload, CheckJetStream, CheckCluster, CheckDurability, CheckStorage, CheckDeployment, CheckStreams, CheckReplicas,
		CheckReach, CheckConsumers, CheckClock, CheckPermissions, CheckWorkers, CheckCoordinator, CheckVersions, CheckStuck, CheckGivenUp, CheckBacklog, CheckTimers, CheckWaking, CheckWatches, CheckPrograms, CheckDead, CheckBackup,
	} {
		if !strings.Contains(string(text), "\n### "+check+"\n") {
			t.Errorf("check %q has no section", check)
		}
	}
	for _, cause := range []string{
		worker.CauseNoProgram, worker.CauseRunning, worker.CauseQueued, worker.CauseLoading, worker.CauseFailed, worker.CauseUnsaved,
		worker.CauseUncommitted, worker.CauseEarly, worker.CauseBusy,
		space.CauseRetry, space.CauseLost, space.CauseDocument, space.CauseGate, space.CauseComputation, space.CauseTurn,
	} {
		if !strings.Contains(string(text), "`"+cause+"`") {
			t.Errorf("cause %q is not in the table", cause)
		}
	}
}

// A row of the table of incidents is there because a test makes the incident.
func TestEveryIncidentIsATest(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## Incidents")
	var tests strings.Builder
	for _, pattern := range []string{"*_test.go", "../../bus/*_test.go", "../../cmd/settle/*_test.go", "../../worker/*_test.go", "../../deploy/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, name := range files {
			code, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			tests.Write(code)
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
		for _, name := range names {
			if !strings.Contains(tests.String(), "func "+name[1]+"(") {
				t.Errorf("there is no %s", name[1])
			}
			if strings.HasSuffix(name[1], "IsJudged") {
				t.Errorf("%s makes no incident: it judges facts that are made up", name[1])
			}
		}
	}
	if rows < 28 {
		t.Errorf("%d rows", rows)
	}
}
