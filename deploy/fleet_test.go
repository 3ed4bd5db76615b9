package deploy_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/internal/testpki"
)

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// fleet runs the services of compose.yaml as processes.
type fleet struct {
	t       *testing.T
	nodes   []*process
	envs    []map[string]string
	monitor []string
	urls    []string
	config  string            // of the servers
	ca      string            // certificate of their authority, "" without TLS
	tls     map[string]string // variables of tls.conf
}

// encrypt makes the servers use TLS, as cluster.conf says.
func (f *fleet) encrypt() {
	f.t.Helper()
	dir := f.t.TempDir()
	for _, file := range []string{"cluster.conf", "users.conf", "permissions.conf", "tls.conf"} {
		text := read(f.t, "nats/"+file)
		if file == "cluster.conf" {
			if n := strings.Count(text, "# include ./tls.conf"); n != 2 {
				f.t.Fatalf("cluster.conf names tls.conf %d times", n)
			}
			text = strings.ReplaceAll(text, "# include ./tls.conf", "include ./tls.conf")
		}
		writeFile(f.t, filepath.Join(dir, file), text)
	}
	ca := testpki.NewAuthority(f.t)
	p := ca.Issue(f.t, "server", "127.0.0.1")
	f.config, f.ca = filepath.Join(dir, "cluster.conf"), ca.File
	f.tls = map[string]string{"NATS_TLS_CERT": p.Cert, "NATS_TLS_KEY": p.Key, "NATS_TLS_CA": ca.File}
}

func startFleet(t *testing.T) *fleet {
	f := &fleet{t: t, config: "nats/cluster.conf"}
	f.encrypt()
	ports, err := natstest.FreePorts(9)
	if err != nil {
		t.Fatal(err)
	}
	var routes []string
	for i := range 3 {
		routes = append(routes, fmt.Sprintf(`"nats://route:%s@127.0.0.1:%d"`, secrets["NATS_ROUTE_PASSWORD"], ports[3+i]))
	}
	for i := range 3 {
		env := maps.Clone(secrets)
		maps.Copy(env, f.tls)
		env["NATS_SERVER_NAME"] = fmt.Sprintf("nats-%d", i+1)
		env["NATS_LISTEN"] = fmt.Sprintf("127.0.0.1:%d", ports[i])
		env["NATS_CLUSTER_LISTEN"] = fmt.Sprintf("127.0.0.1:%d", ports[3+i])
		env["NATS_MONITOR"] = fmt.Sprintf("127.0.0.1:%d", ports[6+i])
		env["NATS_ROUTES"] = "[" + strings.Join(routes, ", ") + "]"
		env["NATS_STORE_DIR"], env["NATS_MAX_STORE"] = t.TempDir(), "4GB"
		f.envs = append(f.envs, env)
		f.urls = append(f.urls, "nats://"+env["NATS_LISTEN"])
		f.monitor = append(f.monitor, "http://"+env["NATS_MONITOR"])
		f.nodes = append(f.nodes, nil)
		f.startNode(i)
	}
	return f
}

func (f *fleet) startNode(i int) {
	f.t.Helper()
	f.nodes[i] = begin(f.t, f.envs[i], "nats-server", "-c", f.config)
}

// as returns the environment of a role.
func (f *fleet) as(role string) map[string]string {
	return map[string]string{"NATS_URL": strings.Join(f.urls, ","), "NATS_USER": role, "NATS_PASSWORD": password(role), "NATS_CA": f.ca, "SETTLE_SYSTEM_PASSWORD": password("system")}
}

// run runs a command of settle that must succeed.
func (f *fleet) run(role string, args ...string) string {
	f.t.Helper()
	out, code := once(f.t.Context(), f.t, f.as(role), "settle", args...)
	if code != 0 {
		f.t.Fatalf("settle %s: code %d\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// count sends events to spaces and expects each to be counted once.
func (f *fleet) count(from, to int) {
	f.t.Helper()
	for i := from; i <= to; i++ {
		out := f.run("client", "send", fmt.Sprintf("s%d", i%4), "add", "--id", fmt.Sprintf("e%d", i), "--wait", "--json", "--timeout", patience.String())
		if !strings.Contains(out, `"outcome":"handled"`) {
			f.t.Fatalf("event %d: %s", i, out)
		}
	}
}

// Three servers, three workers and two coordinators run with the files of this directory, each as its own user, with
// TLS between all of them: they work, lose a server and a worker, and the doctor reports that.
func TestFleetOfTheseFilesLosesAServerAndGoesOn(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	f.run("administrator", "provision", "--wait", "2m", "--replicas", "3", "--partitions", "8")
	plain := f.as("reader")
	plain["NATS_CA"] = ""
	if out, code := once(t.Context(), t, plain, "settle", "fleet"); code == 0 || !strings.Contains(out, "NATS_CA") {
		t.Errorf("a client that knows no authority: code %d\n%s", code, out)
	}
	var workers []*process
	for i := range 3 {
		env := f.as("worker")
		env["SETTLE_PROGRAM"], env["SETTLE_ID"] = "counter", fmt.Sprintf("worker-%d", i+1)
		workers = append(workers, begin(t, env, "spaceworker"))
	}
	for i := range 2 {
		env := f.as("coordinator")
		env["SETTLE_ID"] = fmt.Sprintf("coordinator-%d", i+1)
		begin(t, env, "coordinator")
	}
	f.count(1, 4)
	f.wantDoctor(0, "3 servers seen", "3 replicas, a leader", "nats-2 writes to the disk before it acknowledges",
		"3 workers: worker-1, worker-2, worker-3", "✓ coordinators   2", "user operator of account SETTLE has the rights of", "lose power together:\n    Nothing that was acknowledged")

	f.nodes[0].kill()
	workers[0].kill()
	f.count(5, 8)
	f.wantDoctor(1, "does not answer", "nats-1 is not up to date with", "2 workers")

	f.startNode(0)
	eventually(t, "the server that was away has caught up", func() bool {
		_, code := f.doctor()
		return code == 0
	})
	if out := f.run("reader", "receipts", "s1"); strings.Count(out, "handled") != 2 {
		t.Errorf("space s1 has had two events:\n%s", out)
	}
}

func (f *fleet) doctor() (out string, code int) {
	f.t.Helper()
	return once(f.t.Context(), f.t, f.as("operator"), "settle", "doctor", "--system-user", "system")
}

// wantDoctor waits until the doctor ends with a code and reports all parts.
func (f *fleet) wantDoctor(want int, parts ...string) {
	f.t.Helper()
	var out string
	var code int
	defer func() {
		if f.t.Failed() {
			f.t.Logf("doctor, code %d:\n%s", code, out)
		}
	}()
	eventually(f.t, fmt.Sprintf("the doctor ends with %d and says %q", want, parts), func() bool {
		out, code = f.doctor()
		for _, part := range parts {
			if !strings.Contains(out, part) {
				return false
			}
		}
		return code == want
	})
	f.t.Logf("doctor:\n%s", out)
}
