package deploy_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/bus/roles"
	"github.com/settlehq/settle/model"
)

// What a client attempts, and whether the server refuses it.
var attacks = []struct {
	what           string
	subject, reply string
	header         nats.Header
	refused        bool // by the server; otherwise the message arrives, and changes no log
}{
	{"a question whose answer would purge a log", "settle.api.get", "$JS.API.STREAM.PURGE.SETTLE_LOG_0", nil, false},
	{"a question whose answer would be a commit", "settle.api.get", "settle.log.0.victim", nil, false},
	{"a search for services whose answer would be a commit", "$SRV.PING", "settle.log.0.victim", nil, true},
	{"a search for one service whose answer would be an event of a space", "$SRV.INFO.echo", "settle.lane.0.victim.add.other:1:1:0", nil, true},
	{"an event in the place of another space's send", "settle.lane.0.victim.add.other:1:1:0", "", nats.Header{"Settle-Position": {"1"}}, true},
	{"an event in the name of a principal", "settle.send.0.victim.add.e1.alice", "", nil, true},
}

// No role of a client reaches a stream through a process that has more rights, and what only the system says of an event is not
// believed of a client's.
func TestAttack_AClientHasNoDeputy(t *testing.T) {
	t.Parallel()
	c := &cast{t: t, server: startWithUsers(t)}
	c.must(c.as(roles.Administrator, "provision").Provision(t.Context()))
	worker := c.as(roles.Worker, "w")
	echo := func(q []byte) ([]byte, error) { return q, nil }
	c.must(worker.Serve(t.Context(), model.Service{Name: "echo", Endpoints: []model.Endpoint{{Name: "get", Answer: echo}}}))
	seq := appendCommit(t, worker, "first")

	client := connectAs(t, c.server, roles.Client)
	for _, a := range attacks {
		may := client.may(func() {
			m := &nats.Msg{Subject: a.subject, Reply: a.reply, Header: a.header, Data: []byte("{}")}
			c.must(client.nc.PublishMsg(m))
		})
		if may == a.refused {
			t.Errorf("%s: the server allows it: %v", a.what, may)
		}
	}
	if _, err := client.nc.Request("settle.api.get", []byte("{}"), patience); err != nil { // it has answered what came before
		t.Fatal(err)
	}
	if _, err := worker.Conn().Request("settle.api.get", nil, patience); err != nil { // what it has published before is stored
		t.Fatal(err)
	}
	for p := range provision.DefaultPartitions {
		s, err := worker.LogState(t.Context(), p, 0)
		c.must(err)
		if p == partitionOf("first") && (s.First != seq || s.Last != seq) || p != partitionOf("first") && s.Last != 0 {
			t.Errorf("log %d has %d to %d", p, s.First, s.Last)
		}
		if end, err := worker.LaneEnd(t.Context(), p); err != nil || end != 0 {
			t.Errorf("lane %d has %d messages, %v", p, end, err)
		}
	}

	for name, value := range map[string]string{"Settle-Position": "7", "Settle-Invalid": "gone", "Settle-Depth": "9"} { // any order: each alone
		m := &nats.Msg{Subject: "settle.send.0." + spaceOf(0) + ".add." + name, Header: nats.Header{name: {value}}, Data: []byte("1")}
		if _, err := client.nc.RequestMsg(m, patience); err != nil {
			t.Fatal(err)
		}
		found, is, err := worker.FindEvent(t.Context(), spaceOf(0), "add", name)
		if !is || err != nil || found.Position != 0 || found.Invalid != "" || found.Depth != 0 {
			t.Errorf("a client's %s is believed: %+v, %v", name, found, err)
		}
	}
}

func partitionOf(space string) int { return model.PartitionOf(space, provision.DefaultPartitions) }

// spaceOf returns a space of a partition.
func spaceOf(partition int) string {
	for name := "s"; ; name += "s" {
		if partitionOf(name) == partition {
			return name
		}
	}
}

func appendCommit(t *testing.T, b interface {
	Append(a model.Append, done func(uint64, error))
}, space string,
) uint64 {
	t.Helper()
	type answer struct {
		seq uint64
		err error
	}
	done := make(chan answer, 1)
	b.Append(model.Append{Space: space, ID: "w/1/1/n", Data: []byte("{}")}, func(seq uint64, err error) { done <- answer{seq, err} })
	a := <-done
	if err := errors.Join(a.err, t.Context().Err()); err != nil {
		t.Fatal(err)
	}
	return a.seq
}

// startChanged is startWithUsers with a change to the files of deploy/nats.
func startChanged(t *testing.T, from, to string) *embedded.Server {
	t.Helper()
	dir := t.TempDir()
	changed := false
	for _, name := range []string{"users.conf", "permissions.conf"} {
		text := read(t, "nats/"+name)
		changed = changed || strings.Contains(text, from)
		writeFile(t, filepath.Join(dir, name), strings.Replace(text, from, to, 1))
	}
	if !changed {
		t.Fatalf("the files have no %q", from)
	}
	conf := filepath.Join(dir, "server.conf")
	writeFile(t, conf, "include ./users.conf\n")
	return natstest.StartServer(t, embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval, Listen: ":0", ConfigFile: conf})
}

// The doctor attacks a deployment as a user that is not trusted, and reports a border that is missing; and it sees without an
// attack, from the system account, that the border is missing.
func TestDoctor_ReportsABorderThatIsMissing(t *testing.T) {
	t.Parallel()
	const operator = "      { user: operator, password: $SETTLE_OPERATOR_PASSWORD, permissions: $SETTLE_OPERATOR }\n"
	const export = `{ service: "settle.demand.*", accounts: [SETTLE_CLIENTS] }`
	for name, c := range map[string]struct {
		from, to string
		user     string // that attacks
		breach   bool
		says     string // the doctor, of borders
	}{
		"as the files are": {operator, operator, "client", false, "no client in account SETTLE, and it exports no more than clients need"},
		"a user of the other account": {
			operator, operator + `{ user: guest, password: guest1, permissions: { publish: ["$JS.API.STREAM.INFO.*", "settle.send.*.*.*.*"], subscribe: ["_INBOX.>"] } }` + "\n", "guest", true,
			"clients in account SETTLE, which has the streams: user guest as",
		},
		"an export too many": {export, export + `, { service: "$JS.API.CONSUMER.>", accounts: [SETTLE_CLIENTS] }`, "client", false, "exports what no client needs: $JS.API.CONSUMER.>"},
		"an export to all":   {export, `{ service: "settle.demand.*" }`, "client", false, "every account may import from account SETTLE: settle.demand.*"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startChanged(t, c.from, c.to)
			if out, code := commandAs(t, s, roles.Administrator, "provision", "--partitions", "2"); code != 0 {
				t.Fatalf("provision: code %d\n%s", code, out)
			}
			env := loginAs(s, roles.Administrator)
			env["SETTLE_ATTACK_PASSWORD"] = password(c.user)
			out, code := once(t.Context(), t, env, "settle", "doctor", "--attack", "--attack-user", c.user)
			if want := map[bool]int{false: 0, true: 2}[c.breach]; code != want || strings.Contains(out, "breach: "+c.user) != c.breach {
				t.Errorf("the attack ends with code %d, want %d:\n%s", code, want, out)
			}
			if c.user == "guest" {
				nc, err := nats.Connect(s.ClientURL(), nats.UserInfo(c.user, password(c.user)), nats.Name("shop"))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(nc.Close)
			}
			env = loginAs(s, roles.Operator)
			env["SETTLE_SYSTEM_PASSWORD"] = password("system")
			out, _ = once(t.Context(), t, env, "settle", "doctor", "--system-user", "system")
			if !strings.Contains(strings.Join(strings.Fields(out), " "), c.says) {
				t.Errorf("the doctor does not say %q:\n%s", c.says, out)
			}
		})
	}
}
