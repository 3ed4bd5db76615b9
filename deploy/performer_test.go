package deploy_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/performer"
	"github.com/settlehq/settle/bus/roles"
	"github.com/settlehq/settle/model"
)

var (
	weigh      = settle.NewAction[int, int]("weigh")
	weighStart = settle.NewStream[string]("weigh-start")
)

// With the permissions of its role, a performer does its work, in Go and with `settle perform`; a raw one gets replies to its answers.
func TestAPerformerNeedsItsRoleAndNoOther(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t)
	connect := func(role string, by func(bus.Config) (*bus.Bus, error)) *bus.Bus {
		t.Helper()
		b, err := by(bus.Config{URL: s.ClientURL(), User: role, Password: password(role), Partitions: 2})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		return b
	}
	fully := func(cfg bus.Config) (*bus.Bus, error) { return bus.Connect(t.Context(), cfg) }
	if err := connect(roles.Administrator, fully).Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := settle.NewProgram("scales")
	weigh.External(p)
	weighStart.Handle(p, func(tx *settle.Tx, key string) error { weigh.Start(tx, key, 20); return nil })
	w, err := settle.StartWorker(t.Context(), connect(roles.Worker, fully), settle.WorkerConfig{ID: "w1", Programs: settle.Always(p)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Kill)
	operator := connect(roles.Operator, fully)
	client, err := settle.NewClient(operator, settle.ClientConfig{ID: "operator"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	ends := func(key, part string) {
		t.Helper()
		if err := weighStart.Call(t.Context(), client.Space("shop"), settle.ID("e-"+key), key); err != nil {
			t.Fatal(err)
		}
		eventually(t, key+" is "+part, func() bool {
			v, _, err := client.Space("shop").Get(t.Context(), "weigh")
			return err == nil && strings.Contains(v.At(model.Path{"tasks", key}).String(), part)
		})
	}
	during := func(f func(ctx context.Context), g func()) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { // ends with ctx
			defer close(ended)
			f(ctx)
		}()
		g()
		cancel()
		<-ended
	}

	during(func(ctx context.Context) {
		err := performer.Serve(ctx, connect(roles.Performer, bus.Dial), performer.Config{Action: "weigh", Do: func(_ context.Context, w *performer.Work, _ func(model.Value)) (model.Value, error) {
			n, _ := w.In.AsInt()
			return model.Int(n + 1), nil
		}})
		if err != nil {
			t.Error(err)
		}
	}, func() { ends("library", `"out":21`) })

	during(func(ctx context.Context) {
		once(ctx, t, loginAs(s, roles.Performer), "settle", "perform", "weigh", "--", "sh", "-c", "echo $(($(cat) + 2))")
	}, func() { ends("command", `"out":22`) })

	raw, err := nats.Connect(s.ClientURL(), nats.UserInfo(roles.Performer, password(roles.Performer)), nats.CustomInboxPrefix("_INBOX_performer"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(raw.Close)
	replied := make(chan struct{})
	end := sync.OnceFunc(func() { close(replied) })
	if _, err := raw.QueueSubscribe("settle.work.>", "performers", func(m *nats.Msg) {
		defer end()
		said, err := raw.Request(m.Reply, []byte(`{"out":23}`), patience)
		if err != nil || string(said.Data) != `{"ok":true}` {
			t.Errorf("the worker says %v: %v", said, err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	ends("raw", `"out":23`)
	<-replied // within patience; a reader may see the end in the log before the performer has the reply
}
