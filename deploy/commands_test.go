package deploy_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/roles"
)

// commandAs runs a command of settle as the user of a role.
func commandAs(t *testing.T, s *embedded.Server, role string, args ...string) (out string, code int) {
	t.Helper()
	return once(t.Context(), t, loginAs(s, role), "settle", args...)
}

func loginAs(s *embedded.Server, role string) map[string]string {
	return map[string]string{"NATS_URL": s.ClientURL(), "NATS_USER": role, "NATS_PASSWORD": password(role)}
}

// Backup, restore and cancel work with the roles in README.md's table. With any other role they end with an
// error that names the role that they need.
func TestCommandsTakeTheRolesThatTheTableNames(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t)
	must := func(role string, args ...string) string {
		t.Helper()
		out, code := commandAs(t, s, role, args...)
		if code != 0 {
			t.Fatalf("%s: settle %s: code %d\n%s", role, strings.Join(args, " "), code, out)
		}
		return out
	}
	must(roles.Administrator, "provision", "--partitions", "8")
	env := loginAs(s, roles.Worker)
	env["SETTLE_PROGRAM"], env["SETTLE_ID"] = "counter", "worker-1"
	begin(t, env, "spaceworker")
	env = loginAs(s, roles.Coordinator)
	env["SETTLE_ID"] = "coordinator-1"
	begin(t, env, "coordinator")
	must(roles.Client, "send", "s1", "add", "--id", "e1", "--wait", "--timeout", patience.String())

	var dirs []string
	for _, role := range letters {
		id := "later-" + role
		must(roles.Client, "send", "s1", "add", "--id", id, "--at", time.Now().Add(365*24*time.Hour).Format(time.RFC3339))
		out, code := commandAs(t, s, role, "cancel", id, "--space", "s1", "--stream", "add", "--timeout", "2m")
		may := slices.Contains([]string{roles.Worker, roles.Operator, roles.Administrator}, role)
		if want := map[bool]string{true: id + ": cancelled", false: "`settle permissions`"}[may]; (code == 0) != may || !strings.Contains(out, want) {
			t.Errorf("%s cancels: code %d, want %q in\n%s", role, code, want, out)
		}
		dir := filepath.Join(t.TempDir(), "b")
		out, code = commandAs(t, s, role, "backup", dir)
		if slices.Contains(outside, role) {
			if code == 0 || !strings.Contains(out, "the role backup") {
				t.Errorf("%s makes a backup: code %d\n%s", role, code, out)
			}
			continue
		}
		if code != 0 || !strings.Contains(out, "everything that was acknowledged before is in it") {
			t.Errorf("%s makes a backup: code %d\n%s", role, code, out)
		}
		notes := slices.Contains([]string{roles.Backup, roles.Operator, roles.Administrator}, role)
		if notes == strings.Contains(out, "use the role backup") {
			t.Errorf("%s notes its backup: %v\n%s", role, notes, out)
		}
		dirs = append(dirs, dir)
	}
	for _, role := range letters {
		space := "deleted-" + role
		must(roles.Client, "send", space, "add", "--wait", "--timeout", patience.String())
		out, code := commandAs(t, s, role, "delete", space, "--yes", "--timeout", "2m")
		may := role == roles.Administrator
		if want := map[bool]string{true: "is deleted", false: "the role administrator"}[may]; (code == 0) != may || !strings.Contains(out, want) {
			t.Errorf("%s deletes a space: code %d, want %q in\n%s", role, code, want, out)
		}
	}
	if out := must(roles.Reader, "audit"); !strings.Contains(out, "operator of SETTLE") || !strings.Contains(out, "settle cancel later-operator") {
		t.Errorf("the audit trail is\n%s", out)
	}
	out, _ := commandAs(t, s, roles.Backup, "doctor")
	if !strings.Contains(out, "the newest was made") {
		t.Errorf("the doctor says\n%s", out)
	}

	for _, role := range letters {
		other := startWithUsers(t)
		out, code := commandAs(t, other, role, "restore", dirs[0])
		if may := role == roles.Administrator; (code == 0) != may || !strings.Contains(out, map[bool]string{true: "restored", false: "the role administrator"}[may]) {
			t.Errorf("%s restores: code %d\n%s", role, code, out)
		}
		if role == roles.Administrator {
			if out, code := commandAs(t, other, roles.Reader, "receipts", "s1"); code != 0 || !strings.Contains(out, "handled") {
				t.Errorf("of what was restored: code %d\n%s", code, out)
			}
			restoreOneStream(t, other, dirs[0])
		}
		other.Shutdown()
	}
}

// restoreOneStream has each role restore a lost stream.
func restoreOneStream(t *testing.T, s *embedded.Server, dir string) {
	t.Helper()
	login := loginAs(s, roles.Administrator)
	b, err := bus.Connect(t.Context(), bus.Config{URL: login["NATS_URL"], User: login["NATS_USER"], Password: login["NATS_PASSWORD"]})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	const stream = "KV_SETTLE_STATE_0"
	if err := b.JetStream().DeleteStream(t.Context(), stream); err != nil {
		t.Fatal(err)
	}
	others := slices.DeleteFunc(slices.Clone(letters), func(role string) bool { return role == roles.Administrator })
	for _, role := range others {
		if out, code := commandAs(t, s, role, "restore", dir, "--stream", stream); code == 0 || !strings.Contains(out, "administrator") {
			t.Errorf("%s restores one stream: code %d\n%s", role, code, out)
		}
	}
	if out, code := commandAs(t, s, roles.Administrator, "restore", dir, "--stream", stream); code != 0 || !strings.Contains(out, "nothing of partition 0 is refused") {
		t.Errorf("one stream is restored: code %d\n%s", code, out)
	}
}

// The user of a principal sends, gets and watches with the command, and nothing else: what would read the streams ends at once, with the role that it needs. Rules
// say what the principal may.
func TestCommandsOfAPrincipal(t *testing.T) {
	t.Parallel()
	const client = "      { user: client, password: $SETTLE_CLIENT_PASSWORD, permissions: $SETTLE_CLIENT }\n"
	quoted := func(subjects []string) string { return `["` + strings.Join(subjects, `", "`) + `"]` }
	users := client
	for _, name := range []string{"alice", "bob"} {
		r := roles.Principal("settle", name)
		users += fmt.Sprintf("{ user: %s, password: %s, permissions: { publish: { allow: %s }, subscribe: { allow: %s } } }\n", name, password(name), quoted(r.Publish), quoted(r.Subscribe))
	}
	c := &cast{t: t, server: startChanged(t, client, users)}
	c.must(c.as(roles.Administrator, "provision").Provision(t.Context()))
	counter := settle.NewProgram("counter").Handle("add", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
		n, _ := tx.Get("n").AsInt()
		tx.Set("n", n+1)
		return tx.Get("n"), nil
	})
	w, err := settle.StartWorker(t.Context(), c.as(roles.Worker, "w1"), settle.WorkerConfig{ID: "w1", Programs: settle.Always(counter)})
	c.must(err)
	t.Cleanup(w.Kill)
	want := func(code int, part, user string, args ...string) {
		t.Helper()
		out, got := commandAs(t, c.server, user, args...)
		if got != code || !strings.Contains(out, part) {
			t.Errorf("settle %s as %s: code %d, want %d with %q:\n%s", strings.Join(args, " "), user, got, code, part, out)
		}
	}
	want(0, "handled", roles.Client, "send", "cart-1", "add", "1", "--id", "e1", "--wait")
	want(0, "may send cart-*/add", roles.Operator, "allow", "alice", "--send", "cart-*/add", "--read", "cart-*/*")
	want(0, "e2", "alice", "send", "cart-1", "add", "1", "--id", "e2", "--principal", "alice")
	want(1, "needs the role reader", "alice", "send", "cart-1", "add", "1", "--id", "e3", "--principal", "alice", "--wait")
	want(1, "the event was not sent", "alice", "send", "cart-1", "add", "1", "--id", "e3", "--principal", "alice", "--wait")
	eventually(t, "what alice has sent is handled", func() bool {
		out, code := commandAs(t, c.server, "alice", "get", "cart-1", "n", "--principal", "alice")
		return code == 0 && strings.TrimSpace(out) == "2"
	})
	want(0, "2", roles.Operator, "get", "cart-1", "n", "--principal", "operator")
	want(1, "principal bob may not read document n of space cart-1", "bob", "get", "cart-1", "n", "--principal", "bob")
	want(1, "principal bob may not read document n of space cart-1", "bob", "watch", "cart-1", "n", "--principal", "bob")
	want(1, "needs the role reader", "alice", "get", "cart-1", "--principal", "alice")
	want(1, "needs the role reader", "alice", "workflow", "list", "cart-1", "--principal", "alice")
}
