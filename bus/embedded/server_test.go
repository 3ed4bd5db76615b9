package embedded_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
)

func TestServerDoesNotListenByDefault(t *testing.T) {
	if url := natstest.StartServer(t, embedded.Config{}).ClientURL(); url != "" {
		t.Errorf("it listens at %s", url)
	}
}

func TestServerListensOnLoopbackByDefault(t *testing.T) {
	server := natstest.StartServer(t, embedded.Config{Listen: ":0"})
	host, _, err := net.SplitHostPort(strings.TrimPrefix(server.ClientURL(), "nats://"))
	if err != nil || !net.ParseIP(host).IsLoopback() {
		t.Fatalf("it listens at %s", server.ClientURL())
	}
	nc, err := nats.Connect(server.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
}

func TestServerNeedsADirectory(t *testing.T) {
	if _, err := embedded.Start(t.Context(), embedded.Config{}); err == nil {
		t.Error("a server without a directory started")
	}
	for _, listen := range []string{"nonsense", "127.0.0.1:http"} {
		if _, err := embedded.Start(t.Context(), embedded.Config{StoreDir: t.TempDir(), Listen: listen}); err == nil {
			t.Errorf("a server that listens on %q started", listen)
		}
	}
}

// Two servers that write to one directory would destroy it.
func TestServersDoNotShareADirectory(t *testing.T) {
	dir := t.TempDir()
	first := natstest.StartServer(t, embedded.Config{StoreDir: dir})
	if _, err := embedded.Start(t.Context(), embedded.Config{StoreDir: dir}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("got %v", err)
	}
	first.Shutdown()
	natstest.StartServer(t, embedded.Config{StoreDir: dir}).Shutdown()
}

func TestServerTakesAConfigurationFile(t *testing.T) {
	server := natstest.StartServer(t, embedded.Config{ConfigFile: configFile(t, `
		listen: "127.0.0.1:-1"
		accounts { A { jetstream: enabled, users: [{user: ann, password: secret}] } }
	`)})
	if _, err := bus.Connect(t.Context(), bus.Config{URL: server.ClientURL()}); err == nil {
		t.Error("connected without a password")
	}
	b, err := bus.Connect(t.Context(), bus.Config{URL: server.ClientURL(), User: "ann", Password: "secret", Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Provision(t.Context()); err != nil {
		t.Error(err)
	}
}

// taken returns an address that is in use.
func taken(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// Otherwise the server would keep retrying without its address.
func TestServerFailsAtOnceIfItsAddressIsTaken(t *testing.T) {
	address := taken(t)
	_, err := embedded.Start(t.Context(), embedded.Config{StoreDir: t.TempDir(), Listen: address})
	want := address + " is in use by another process; choose another Listen, or connect to the server there with Bus.URL"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
}

// The server itself reports errors that are not checked before its start.
func TestServerThatDoesNotStartReportsTheServersErrors(t *testing.T) {
	address := taken(t)
	_, err := embedded.Start(t.Context(), embedded.Config{StoreDir: t.TempDir(), ConfigFile: configFile(t, `listen: "`+address+`"`)})
	if err == nil || !strings.Contains(err.Error(), "did not start; the server says: ") || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("got %v", err)
	}
}

func TestServerStartEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	if _, err := embedded.Start(ctx, embedded.Config{StoreDir: dir}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	natstest.StartServer(t, embedded.Config{StoreDir: dir}).Shutdown() // so that the directory is free
}

func configFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
