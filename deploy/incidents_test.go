package deploy_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/bus/roles"
)

// A stopped process keeps its connection and answers nothing: the doctor and the fleet name it, and report that
// another worker has taken over its partitions. After it continues, they report neither.
func TestIncident_AWorkerIsFrozen(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t)
	operator := loginAs(s, roles.Operator)
	if out, code := commandAs(t, s, roles.Administrator, "provision", "--partitions", "2"); code != 0 {
		t.Fatalf("provision: code %d\n%s", code, out)
	}
	var frozen *process
	for _, id := range []string{"w-well", "w-frozen"} {
		env := loginAs(s, roles.Worker)
		env["SETTLE_PROGRAM"], env["SETTLE_ID"] = "counter", id
		frozen = begin(t, env, "spaceworker")
		frozen.says(t, "msg=running")
	}
	looks := func(command string) string {
		out, _ := once(t.Context(), t, operator, "settle", command)
		return strings.Join(strings.Fields(out), " ")
	}
	const hangs, silent = "listens and does not answer: w-frozen", "w-frozen does not answer: it hangs"
	eventually(t, "both workers are well", func() bool { return strings.Contains(looks("doctor"), "2 workers: w-frozen, w-well") })
	if out := looks("fleet"); strings.Contains(out, silent) {
		t.Errorf("a worker that is well is said to hang:\n%s", out)
	}
	if err := frozen.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	soon(t, "the doctor names the one that hangs", func() bool {
		out := looks("doctor")
		return strings.Contains(out, hangs) && strings.Contains(out, "1 worker: w-well")
	})
	soon(t, "the fleet names the one that hangs", func() bool { return strings.Contains(looks("fleet"), silent) })
	soon(t, "the other worker has taken over its partitions, and both commands report that", func() bool {
		fleet, doctor := looks("fleet"), looks("doctor")
		for _, out := range []string{fleet, doctor} {
			if strings.Contains(out, "disagree") || strings.Contains(out, "at once") || strings.Contains(out, "moves to") {
				t.Fatalf("one that hangs is said to serve what it served:\n%s", out)
			}
		}
		const taken = "served by w-well now"
		return strings.Contains(fleet, silent) && strings.Contains(fleet, taken) && strings.Contains(doctor, hangs) && strings.Contains(doctor, taken)
	})
	if err := frozen.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both workers are well again", func() bool { return strings.Contains(looks("doctor"), "2 workers: w-frozen, w-well") })
}

// A worker or a coordinator whose user may not save its progress works otherwise, but is denied repeatedly: the
// doctor and the fleet name the subject. A process that may not announce itself ends, and names the role that
// it needs.
func TestIncident_AWorkerMayDoTooLittle(t *testing.T) {
	t.Parallel()
	conf := filepath.Join(t.TempDir(), "server.conf")
	writeFile(t, conf, `
		accounts {
			APP {
				jetstream: enabled
				users: [
					{user: all, password: p}
					{user: unsaving, password: p, permissions: {publish: {deny: ["$KV.SETTLE_STATE_0.>", "$KV.SETTLE_STATE_1.>"]}}}
					{user: denied, password: p, permissions: {publish: {deny: ["$KV.SETTLE_WORKERS.>"]}}}
				]
			}
		}
		jetstream {}
	`)
	s := natstest.StartServer(t, embedded.Config{Listen: ":0", ConfigFile: conf})
	as := func(user, id string) map[string]string {
		return map[string]string{"NATS_URL": s.ClientURL(), "NATS_USER": user, "NATS_PASSWORD": "p", "SETTLE_PROGRAM": "counter", "SETTLE_ID": id}
	}
	if out, code := once(t.Context(), t, as("all", ""), "settle", "provision", "--partitions", "2"); code != 0 {
		t.Fatalf("provision: code %d\n%s", code, out)
	}
	out, code := once(t.Context(), t, as("denied", "w-denied"), "spaceworker")
	if code == 0 || !strings.Contains(out, "it may not publish to $KV.SETTLE_WORKERS.w-denied, which needs the role worker") {
		t.Errorf("a worker that may not announce itself ends with code %d\n%s", code, out)
	}
	looks := func(command string) string {
		out, _ := once(t.Context(), t, as("all", ""), "settle", command)
		return strings.Join(strings.Fields(out), " ")
	}
	begin(t, as("all", "w-all"), "spaceworker").says(t, "msg=running")
	eventually(t, "the worker is there", func() bool { return strings.Contains(looks("doctor"), "1 worker: w-all") })
	if out := looks("doctor") + looks("fleet"); strings.Contains(out, "denied") {
		t.Errorf("a worker that may do everything is said to be denied something:\n%s", out)
	}
	begin(t, as("unsaving", "c-unsaving"), "coordinator").says(t, "msg=running")
	begin(t, as("unsaving", "w-unsaving"), "spaceworker").says(t, "msg=running")
	for i := range 8 { // of both partitions; each worker has one
		if out, code := once(t.Context(), t, as("all", ""), "settle", "send", fmt.Sprint("s", i), "add", "--wait"); code != 0 {
			t.Fatalf("send: %s", out)
		}
	}
	const subject = `Permissions Violation for Publish to "$KV.SETTLE_STATE_`
	soon(t, "the doctor names what is denied", func() bool {
		out := looks("doctor")
		return strings.Contains(out, "worker w-unsaving was denied within the last ten minutes") && !strings.Contains(out, "worker w-all was denied")
	})
	soon(t, "the fleet names what is denied", func() bool {
		out := looks("fleet")
		return strings.Contains(out, "w-unsaving is denied by the server") && strings.Contains(out, subject)
	})
	// A coordinator may not save its position in the logs.
	eventually(t, "the doctor names what a coordinator is denied", func() bool {
		out := looks("doctor")
		return strings.Contains(out, "coordinator c-unsaving was denied within the last ten minutes") && strings.Contains(out, "permissions of the role coordinator")
	})
	eventually(t, "the fleet names what a coordinator is denied", func() bool {
		out := looks("fleet")
		return strings.Contains(out, "c-unsaving is denied by the server") && strings.Contains(out, "permissions of the role coordinator")
	})
}

// The doctor names the missing permissions of a user that may do less than any role, and none for one with all rights.
func TestIncident_PermissionsAreMissing(t *testing.T) {
	t.Parallel()
	conf := filepath.Join(t.TempDir(), "server.conf")
	writeFile(t, conf, `
		accounts {
			APP {
				jetstream: enabled
				users: [
					{user: all, password: p}
					{user: less, password: p, permissions: {publish: {deny: ["settle.>"]}}}
				]
			}
		}
		jetstream {}
	`)
	s := natstest.StartServer(t, embedded.Config{Listen: ":0", ConfigFile: conf})
	as := func(user string) map[string]string {
		return map[string]string{"NATS_URL": s.ClientURL(), "NATS_USER": user, "NATS_PASSWORD": "p"}
	}
	if out, code := once(t.Context(), t, as("all"), "settle", "provision", "--partitions", "1"); code != 0 {
		t.Fatalf("provision: code %d\n%s", code, out)
	}
	for user, lacks := range map[string]bool{"all": false, "less": true} {
		out, _ := once(t.Context(), t, as(user), "settle", "doctor", "--json")
		said := fmt.Sprintf("user %s of account APP has the rights of no role; the role backup needs besides: ", user)
		if strings.Contains(out, said) != lacks || strings.Contains(out, "publish settle.api.>") != lacks {
			t.Errorf("of user %s the doctor says\n%s", user, out)
		}
	}
}
