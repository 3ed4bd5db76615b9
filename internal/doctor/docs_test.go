package doctor

import (
	"os"
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
		CheckReach, CheckConsumers, CheckClock, CheckPermissions, CheckWorkers, CheckCoordinator, CheckVersions, CheckStuck, CheckBacklog, CheckDead,
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
