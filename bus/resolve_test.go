package bus_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/model"
)

// Flags take precedence over the environment, and both over the context, whose other values stay.
func TestResolveConnection(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		flag bus.Config
		env  map[string]string
		want bus.Connection
	}{
		{"nothing", bus.Config{}, nil, bus.Connection{}},
		{"environment", bus.Config{}, map[string]string{
			"NATS_URL": "nats://env", "NATS_CONTEXT": "ctx", "NATS_CREDS": "creds", "NATS_NKEY": "nkey", "NATS_USER": "user",
			"NATS_PASSWORD": "password", "NATS_TOKEN": "token", "NATS_CA": "ca", "NATS_CERT": "cert", "NATS_KEY": "key",
		}, bus.Connection{
			URL: "nats://env", Context: "ctx", Creds: "creds", NKey: "nkey", User: "user",
			Password: "password", Token: "token", CA: "ca", Cert: "cert", Key: "key",
		}},
		{
			"a flag takes precedence over the environment",
			bus.Config{URL: "nats://flag", Context: "flag"},
			map[string]string{"NATS_URL": "nats://env", "NATS_CONTEXT": "env", "NATS_CREDS": "creds"},
			bus.Connection{URL: "nats://flag", Context: "flag", Creds: "creds"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := bus.ResolveConnection(test.flag, func(name string) string { return test.env[name] })
			if err != nil || got != test.want {
				t.Errorf("got %+v, %v\nwant %+v", got, err, test.want)
			}
		})
	}
}

func TestResolveConnectionRefusesHalves(t *testing.T) {
	t.Parallel()
	for _, half := range []bus.Config{{Cert: "c"}, {Key: "k"}, {Password: "p"}} {
		if _, err := bus.ResolveConnection(half, func(string) string { return "" }); err == nil {
			t.Errorf("%+v was accepted", half)
		}
	}
}

// writeContext creates and selects a context of the nats command line tool.
func writeContext(t *testing.T, name string, settings map[string]string) {
	t.Helper()
	home := os.Getenv("XDG_CONFIG_HOME")
	dir := filepath.Join(home, "nats", "context")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	for file, data := range map[string][]byte{
		filepath.Join(dir, name+".json"):           text,
		filepath.Join(home, "nats", "context.txt"): []byte(name),
	} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// clearEnvironment hides the settings of the environment from the tests.
func clearEnvironment(t *testing.T) {
	t.Helper()
	for _, name := range []string{"URL", "CONTEXT", "CREDS", "NKEY", "USER", "PASSWORD", "TOKEN", "CA", "CERT", "KEY"} {
		t.Setenv("NATS_"+name, "")
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
}

// The context has the right password of the account, which flags can replace and the environment overrides
// with a wrong one.
func TestConnectByContext(t *testing.T) {
	clearEnvironment(t)
	server := natstest.StartServer(t, embedded.Config{ConfigFile: configFile(t, `
		listen: "127.0.0.1:-1"
		accounts { A { jetstream: enabled, users: [{user: ann, password: secret}, {user: bob, password: other}] } }
	`)})
	tries := []struct {
		name string
		cfg  bus.Config
		env  map[string]string
		ok   bool
	}{
		{"the selected context", bus.Config{}, nil, true},
		{"a context by its name", bus.Config{Context: "prod"}, nil, true},
		{"a context that there is not", bus.Config{Context: "missing"}, nil, false},
		{"a context named by the environment", bus.Config{}, map[string]string{"NATS_CONTEXT": "prod"}, true},
		{"another user by flag", bus.Config{User: "bob", Password: "other"}, nil, true},
		{"a wrong password by environment", bus.Config{}, map[string]string{"NATS_USER": "ann", "NATS_PASSWORD": "wrong"}, false},
		{"a flag over that", bus.Config{User: "ann", Password: "secret"}, map[string]string{"NATS_USER": "ann", "NATS_PASSWORD": "wrong"}, true},
		{"another server by environment", bus.Config{}, map[string]string{"NATS_URL": "nats://127.0.0.1:1"}, false},
		{"one of several servers", bus.Config{URL: "nats://127.0.0.1:1, " + server.ClientURL()}, nil, true},
	}
	for _, try := range tries {
		t.Run(try.name, func(t *testing.T) {
			clearEnvironment(t)
			writeContext(t, "prod", map[string]string{"url": server.ClientURL(), "user": "ann", "password": "secret"})
			for name, value := range try.env {
				t.Setenv(name, value)
			}
			b, err := bus.Connect(t.Context(), try.cfg)
			if (err == nil) != try.ok {
				t.Errorf("connect: %v", err)
			}
			if err == nil {
				b.Close()
			}
		})
	}
}

func TestConnectIsNamed(t *testing.T) {
	t.Parallel()
	server := natstest.StartServer(t, embedded.Config{})
	b := connect(t, bus.Config{Server: server, Name: "worker/w1"})
	if name := b.Conn().Opts.Name; name != "settle/worker/w1" {
		t.Errorf("the connection is called %q", name)
	}
}

// Everything works in another JetStream domain, where the API and the buckets have
// other subjects.
func TestDomainOfTheContext(t *testing.T) {
	for name, settings := range map[string]map[string]string{
		"domain":     {"jetstream_domain": "hub"},
		"API prefix": {"jetstream_api_prefix": "$JS.hub.API"},
	} {
		t.Run(name, func(t *testing.T) {
			clearEnvironment(t)
			server := natstest.StartServer(t, embedded.Config{ConfigFile: configFile(t, `
				listen: "127.0.0.1:-1"
				jetstream { domain: hub }
			`)})
			settings["url"] = server.ClientURL()
			writeContext(t, "hub", settings)
			b := connect(t, bus.Config{Partitions: 1})
			if err := b.Provision(t.Context()); err != nil {
				t.Fatal(err)
			}
			useEverything(t, b)
		})
	}
}

// useEverything uses every kind of subject once.
func useEverything(t *testing.T, b *bus.Bus) {
	t.Helper()
	entries, log, members := followSpace(t, b, "cart"), followLog(t, b, b.PartitionOf("cart")), followMembers(t, b)
	members.want("ready")
	head := mustAppend(t, b, "cart", "a/0/1", 0)
	entries.want("a/0/1")
	log.want("a/0/1")
	if h, err := b.Head(t.Context(), "cart"); h != head || err != nil {
		t.Errorf("head %d, %v", h, err)
	}
	sent := make(chan error, 1)
	b.Send(model.Message{Space: "cart", Stream: "add", ID: "e1"}, func(_ model.SendResult, err error) { sent <- err })
	if err := <-sent; err != nil {
		t.Error(err)
	}
	eventually(t, "the replica that answers shows the event", func() bool {
		events, err := b.ReadLane(t.Context(), "cart", 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		return len(events) == 1
	})
	mark := model.StateDoc{Data: []byte("1"), Seq: head}
	if err := b.SaveState(t.Context(), "cart", []model.StateDoc{{Doc: "d", Data: []byte("1"), Seq: head}}, &mark); err != nil {
		t.Error(err)
	}
	if s, err := b.LoadState(t.Context(), "cart"); len(s.Docs) != 1 || s.Mark.Seq != head || err != nil {
		t.Errorf("state %+v, %v", s, err)
	}
	if err := b.Announce(t.Context(), model.Member{ID: "w", Beat: 1}); err != nil {
		t.Error(err)
	}
	members.want("w1")
	if err := b.AnswerPings(t.Context(), "w"); err != nil {
		t.Error(err)
	}
	if there, err := b.Ping(t.Context(), "w"); !there || err != nil {
		t.Errorf("ping %v, %v", there, err)
	}
}

func configFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(name, []byte(strings.TrimSpace(text)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
