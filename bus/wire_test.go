package bus_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/model"
)

// These tests access a deployment like any other NATS client.

func plain(t *testing.T, server *embedded.Server) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc, err := nats.Connect("", server.ConnOption())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return nc, js
}

// A message that `nats pub` sends to a lane is an event like any other, and is stored once.
func TestPlainPublishIsAnEventAndStoredOnce(t *testing.T) {
	t.Parallel()
	server := natstest.StartServer(t, embedded.Config{})
	b := provisioned(t, bus.Config{Server: server, Partitions: 1})
	nc, _ := plain(t, server)
	m := nats.NewMsg("settle.send.0.cart.add.e1")
	m.Data = []byte("by hand")
	m.Header["TraceParent"] = []string{"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
	for name, value := range map[string]string{ // any order: only the system may say these things
		"Settle-Depth": "3", "Settle-Position": "7", "Settle-Term": "8", "Settle-Prev-Term": "9", "Settle-Replay-Key": "10", "Settle-Invalid": "gone",
	} {
		m.Header[name] = []string{value}
	}
	for i, wantErr := range []bool{false, true} {
		reply, err := nc.RequestMsg(m, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		var ack struct{ Error *jetstream.APIError }
		if err := json.Unmarshal(reply.Data, &ack); err != nil || (ack.Error != nil) != wantErr {
			t.Errorf("publish %d: %s", i, reply.Data)
		}
	}
	answered := make(chan model.SendResult, 1)
	b.Send(model.Message{Space: "cart", Stream: "add", ID: "e1"}, func(r model.SendResult, err error) {
		if err != nil {
			t.Error(err)
		}
		answered <- r
	})
	if r := <-answered; !r.Duplicate {
		t.Errorf("sending the same id: %+v, want a duplicate", r)
	}
	events, err := b.ReadLane(t.Context(), "cart", 0, 10)
	if err != nil || len(events) != 1 {
		t.Fatal(events, err)
	}
	if e := events[0]; string(e.Payload) != "by hand" || e.Trace.Parent == "" || e.Depth != 0 || e.Seq != 1 || e.Position != 0 || e.Term != 0 || e.PrevTerm != 0 || e.ReplayKey != 0 || e.Invalid != "" {
		t.Errorf("event %+v", e)
	}
}

// A subject that is no event's belongs to no stream: the publisher gets an error at once.
func TestMalformedEventSubjectsBelongToNoStream(t *testing.T) {
	t.Parallel()
	server := natstest.StartServer(t, embedded.Config{})
	provisioned(t, bus.Config{Server: server, Partitions: 1})
	nc, _ := plain(t, server)
	for _, subject := range []string{"settle.lane.0.cart", "settle.lane.0.cart.add", "settle.lane.0.cart.add.e.1", "settle.lane.7.cart.add.e1", "settle.send.0.cart.add", "settle.send.0.cart.add.e1.alice.x", "settle.send.7.cart.add.e1", "settle.log.0.cart.add"} {
		if reply, err := nc.Request(subject, nil, time.Minute); err == nil {
			t.Errorf("%s: %s", subject, reply.Data)
		}
	}
}

// A message that is not an event is skipped and does not delay later ones, even with headers that look like
// the server's own.
func TestInvalidEventsAreSkipped(t *testing.T) {
	t.Parallel()
	server := natstest.StartServer(t, embedded.Config{})
	b := provisioned(t, bus.Config{Server: server, Partitions: 1})
	nc, js := plain(t, server)
	mine := "a"
	for _, subject := range []string{"settle.lane.0." + mine + ".add.é", "settle.lane.0." + mine + ".a$b.e1", "settle.send.0." + mine + ".add.shop:7:1:0", "settle.send.0." + mine + ".add.shop:7:1:0.alice", "settle.send.0." + mine + ".add.bob=e1.alice"} {
		if _, err := js.Publish(t.Context(), subject, []byte("strange")); err != nil {
			t.Fatal(err)
		}
	}
	forged := nats.NewMsg("settle.lane.0." + mine + ".add.forged")
	for name, value := range map[string]string{
		"Status": "204", "Description": "EOB", "Nats-Sequence": "99", "Nats-Subject": "settle.lane.0.x.y.z", "Nats-Last-Sequence": "98", "Nats-Num-Pending": "0",
	} {
		forged.Header[name] = []string{value}
	}
	if _, err := nc.RequestMsg(forged, time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "settle.lane.0."+mine+".add.good", nil); err != nil {
		t.Fatal(err)
	}

	read, err := b.ReadLane(t.Context(), mine, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var followed []model.Message
	ctx, cancel := contextOf(t)
	err = b.FollowLane(ctx, 0, 0, func(m model.Message) {
		if followed = append(followed, m); m.ID == "good" {
			cancel()
		}
	})
	for how, events := range map[string][]model.Message{"read": read, "followed": followed} {
		if len(events) != 2 || events[0].ID != "forged" || events[0].Seq != 6 || events[1].ID != "good" || events[1].Seq != 7 {
			t.Errorf("%s: %+v (%v)", how, events, err)
		}
	}
}

// Documents are what `nats kv get` shows, deleted ones are deleted, and the mark and the positions are
// readable.
func TestStateIsAnOrdinaryBucket(t *testing.T) {
	t.Parallel()
	server := natstest.StartServer(t, embedded.Config{})
	b := provisioned(t, bus.Config{Server: server, Partitions: 1})
	docs := []model.StateDoc{{Doc: "total", Data: []byte(`{"n":1}`), Seq: 4}, {Doc: "gone", Data: []byte(`1`), Seq: 4}}
	mark := model.StateDoc{Data: []byte(`{"floor":2}`), Seq: 4}
	if err := b.SaveState(t.Context(), "cart", docs, &mark); err != nil {
		t.Fatal(err)
	}
	docs[1].Data, docs[1].Seq = nil, 5
	if err := b.SaveState(t.Context(), "cart", docs[1:], nil); err != nil {
		t.Fatal(err)
	}
	if err := b.SavePosition(t.Context(), 0, "release", 17); err != nil {
		t.Fatal(err)
	}
	_, js := plain(t, server)
	kv, err := js.KeyValue(t.Context(), "SETTLE_STATE_0")
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"cart.total": `{"n":1}`, "cart.=checkpoint": `{"floor":2}`, "=pos.release": "17"} {
		entry, err := kv.Get(t.Context(), key)
		if err != nil || string(entry.Value()) != want {
			t.Errorf("%s: %v, %v", key, entry, err)
		}
	}
	if _, err := kv.Get(t.Context(), "cart.gone"); !errors.Is(err, jetstream.ErrKeyNotFound) {
		t.Errorf("a deleted document: %v", err)
	}
	keys, err := kv.Keys(t.Context())
	if err != nil || len(keys) != 3 {
		t.Errorf("keys %v, %v", keys, err)
	}
}

func TestCommitsAreOrdinaryMessagesAndFollowedAsSuch(t *testing.T) {
	t.Parallel()
	server := natstest.StartServer(t, embedded.Config{})
	b := provisioned(t, bus.Config{Server: server, Partitions: 1})
	nc, js := plain(t, server)
	feed, err := nc.SubscribeSync("settle.feed.0.cart")
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	trace := model.Trace{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", State: "v=1", Baggage: "user=7"}
	stored := make(chan error, 1)
	b.Append(model.Append{Space: "cart", ID: "w1/0/1", Data: []byte(`{"v":1}`), Trace: trace}, func(_ uint64, err error) { stored <- err })
	if err := <-stored; err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), "SETTLE_LOG_0")
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.GetLastMsgForSubject(t.Context(), "settle.log.0.cart")
	if err != nil || string(m.Data) != `{"v":1}` {
		t.Fatal(m, err)
	}
	published, err := feed.NextMsg(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"Settle-Commit": "w1/0/1", "traceparent": trace.Parent, "tracestate": "v=1", "baggage": "user=7"} {
		if m.Header[name] == nil || m.Header[name][0] != want || published.Header[name] == nil || published.Header[name][0] != want {
			t.Errorf("header %s: %q in the log, %q in the feed", name, m.Header[name], published.Header[name])
		}
	}
	for name, want := range map[string]string{"Nats-Sequence": "1", "Nats-Last-Sequence": "0", "Nats-Subject": "settle.log.0.cart"} {
		if got := published.Header.Get(name); got != want {
			t.Errorf("header %s of the feed: %q, want %q", name, got, want)
		}
	}
	if m.Header["Nats-Msg-Id"] != nil {
		t.Error("the commit has a Nats-Msg-Id")
	}
}

// A server notifies the connection, and not the request, that a user may not publish. The request still fails
// at once, and requests to other subjects do not.
func TestAPublishWithoutPermissionIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	conf := filepath.Join(t.TempDir(), "server.conf")
	if err := os.WriteFile(conf, []byte(`accounts { A: { jetstream: enabled, users: [
		{ user: all, password: x }
		{ user: some, password: x, permissions: { publish: { allow: ">", deny: ["settle.*.*.cart.>", "$KV.SETTLE_PROGRAMS.>"] } } }
	] } }`), 0o600); err != nil {
		t.Fatal(err)
	}
	server := natstest.StartServer(t, embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval, Listen: ":0", ConfigFile: conf})
	as := func(user string) *bus.Bus {
		return connect(t, bus.Config{URL: server.ClientURL(), User: user, Password: "x", Name: user, AckTimeout: 10 * time.Second})
	}
	if err := as("all").Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := as("some")
	ctx, cancel := contextOf(t)
	defer cancel()
	for space, want := range map[string]error{"cart": model.ErrForbidden, "shelf": nil} {
		answered := make(chan error, 1)
		b.Send(model.Message{Space: space, Stream: "add", ID: "e1"}, func(_ model.SendResult, err error) { answered <- err })
		select {
		case err := <-answered:
			if !errors.Is(err, want) {
				t.Errorf("send to %s: %v, want %v", space, err, want)
			}
		case <-ctx.Done():
			t.Errorf("send to %s is not answered", space)
		}
	}
	if _, err := b.SaveRecord(ctx, model.Record{Key: "rule.all", Data: []byte("{}")}); !errors.Is(err, model.ErrForbidden) {
		t.Errorf("save a record: %v", err)
	}
}

// This process may be slow to greet itself, and there is no other server to try.
func TestConnOption_HasATimeoutForSlowMachinesByDefault(t *testing.T) {
	t.Parallel()
	server := natstest.StartServer(t, embedded.Config{})
	for given, want := range map[time.Duration]time.Duration{0: 30 * time.Second, 5 * time.Second: 5 * time.Second} { // any order: each on its own
		o := nats.GetDefaultOptions()
		if given > 0 {
			o.Timeout = given
		}
		if err := server.ConnOption()(&o); err != nil || o.Timeout != want {
			t.Errorf("given %v the timeout is %v, %v; want %v", given, o.Timeout, err, want)
		}
	}
}
