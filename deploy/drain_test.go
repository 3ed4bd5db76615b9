package deploy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/settlehq/settle/bus/roles"
)

// An operator drains a worker from another machine: its process hands its partitions over and ends with status 0, and stays out until it is
// started again, under the same id. Other roles may not, the last worker only by force, and the audit trail has the operator.
func TestDrain_AWorkerLeavesAndStaysOut(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t)
	run := func(role string, code int, parts string, args ...string) {
		t.Helper()
		out, got := commandAs(t, s, role, args...)
		for part := range strings.SplitSeq(parts, " | ") {
			if got != code || !strings.Contains(out, part) {
				t.Fatalf("%s: settle %s: code %d, not %d with %q\n%s", role, strings.Join(args, " "), got, code, part, out)
			}
		}
	}
	worker := func(id string) *process {
		t.Helper()
		env := loginAs(s, roles.Worker)
		env["SETTLE_PROGRAM"], env["SETTLE_ID"] = "counter", id
		p := begin(t, env, "spaceworker")
		p.says(t, "msg=running")
		return p
	}
	send := func(id string) {
		t.Helper()
		run(roles.Client, 0, id+": handled", "send", "s1", "add", "--id", id, "--wait", "--timeout", patience.String())
	}
	run(roles.Administrator, 0, "", "provision", "--partitions", "8")
	w1 := worker("w1")
	run(roles.Operator, 1, "worker w1 is the only one | use --force", "drain", "w1")
	w2 := worker("w2")
	send("e1")
	for _, role := range letters {
		if !slices.Contains([]string{roles.Operator, roles.Administrator}, role) {
			run(role, 1, "the role operator", "drain", "w1")
		}
	}
	run(roles.Operator, 1, `there is no worker "w3"; there are: w1, w2`, "drain", "w3")
	run(roles.Operator, 2, "", "drain", "a.b")

	run(roles.Operator, 0, "worker w1 has left; its  | served by w2", "drain", "w1")
	if _ = w1.cmd.Wait(); w1.cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("the process of w1 ends with %v", w1.cmd.ProcessState)
	}
	w1.says(t, "an operator has asked this worker to stop")
	send("e2")
	run(roles.Operator, 1, `there is no worker "w1"; there are: w2`, "drain", "w1")

	w1 = worker("w1") // the same id: what was asked of the process before does not concern this one
	run(roles.Operator, 0, `"worker":"w2" | "left":true | "served_by":["w1"]`, "drain", "w2", "--json")
	if _ = w2.cmd.Wait(); w2.cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("the process of w2 ends with %v", w2.cmd.ProcessState)
	}
	send("e3")
	run(roles.Operator, 0, "worker w1 has left; no worker serves its 8 partitions", "drain", "w1", "--force")
	if _ = w1.cmd.Wait(); w1.cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("the process of w1 ends with %v", w1.cmd.ProcessState)
	}
	run(roles.Operator, 0, "operator of  | settle drain w1 | settle drain w2 --json | settle drain w1 --force", "audit")
}
