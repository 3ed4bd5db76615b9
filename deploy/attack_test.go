package deploy_test

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"

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
	{"a question whose answer would purge a log", "settle.api.echo", "$JS.API.STREAM.PURGE.SETTLE_LOG_0", nil, false},
	{"a question whose answer would be a commit", "settle.api.echo", "settle.log.0.victim", nil, false},
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
	c.must(worker.Serve(t.Context(), model.Service{Name: "echo", Endpoints: []model.Endpoint{{Name: "echo", Answer: echo}}}))
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
	if _, err := client.nc.Request("settle.api.echo", []byte("{}"), patience); err != nil { // it has answered what came before
		t.Fatal(err)
	}
	if _, err := worker.Conn().Request("settle.api.echo", nil, patience); err != nil { // what it has published before is stored
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
