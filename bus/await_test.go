package bus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
)

// notes is a logger that signals its first line.
type notes struct {
	mu   sync.Mutex
	text bytes.Buffer
	came chan struct{}
	once sync.Once
}

func newNotes() *notes { return &notes{came: make(chan struct{})} }

func (n *notes) Write(line []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	defer n.once.Do(func() { close(n.came) })
	return n.text.Write(line)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

func (n *notes) logger() *slog.Logger { return slog.New(slog.NewTextHandler(n, nil)) }

// nowhere returns the address of a server that has not started yet.
func nowhere(t *testing.T) string {
	t.Helper()
	clearEnvironment(t)
	ports, err := natstest.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0])
}

func TestConnect_WaitsForAServerThatComesLater(t *testing.T) {
	at, log := nowhere(t), newNotes()
	connected := make(chan error, 1)
	var b *bus.Bus
	go func() { // ends when the server is there
		var err error
		b, err = bus.Connect(t.Context(), bus.Config{URL: "nats://" + at, AwaitServer: true, Logger: log.logger()})
		connected <- err
	}()
	<-log.came
	natstest.StartServer(t, embedded.Config{Listen: at})
	if err := <-connected; err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if text := log.String(); !strings.Contains(text, "waiting for a NATS server") || !strings.Contains(text, at) {
		t.Errorf("the logger wrote\n%s", text)
	}
}

// The end of the context ends the wait, and the error names what was missing.
func TestConnect_ItsWaitEndsWithTheContext(t *testing.T) {
	at, log := nowhere(t), newNotes()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // ends when the wait has begun
		<-log.came
		cancel()
	}()
	_, err := bus.Connect(ctx, bus.Config{URL: "nats://" + at, AwaitServer: true, Logger: log.logger()})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "waited for a NATS server") || !strings.Contains(err.Error(), at) {
		t.Errorf("got %v", err)
	}
}

func TestConnect_DoesNotWaitForAServerByDefault(t *testing.T) {
	at := nowhere(t)
	if _, err := bus.Connect(t.Context(), bus.Config{URL: "nats://" + at}); !errors.Is(err, nats.ErrNoServers) || !strings.Contains(err.Error(), at) {
		t.Errorf("got %v", err)
	}
}

// Waiting solves neither a wrong password nor a missing file.
func TestConnect_APermanentErrorEndsTheWait(t *testing.T) {
	clearEnvironment(t)
	s := natstest.StartServer(t, embedded.Config{ConfigFile: configFile(t, `
		listen: "127.0.0.1:-1"
		jetstream {}
		authorization { user: a, password: right }
	`)})
	for name, cfg := range map[string]bus.Config{
		"a wrong password": {User: "a", Password: "wrong"},
		"no login":         {},
		"a missing file":   {Creds: "/nowhere/x.creds"},
	} {
		cfg.URL, cfg.AwaitServer = s.ClientURL(), true
		log := newNotes()
		cfg.Logger = log.logger()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		b, err := bus.Connect(ctx, cfg)
		cancel()
		if err == nil {
			b.Close()
		}
		if err == nil || errors.Is(err, context.DeadlineExceeded) || log.String() != "" {
			t.Errorf("%s: %v; the logger wrote %q", name, err, log)
		}
		if name == "a wrong password" && (!errors.Is(err, nats.ErrAuthorization) || !strings.Contains(err.Error(), "Authorization")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A wait is logged at once, then at growing intervals, without end.
func TestVigil_LogsAtOnceThenAtGrowingIntervals(t *testing.T) {
	t.Parallel()
	var logged []int
	bus.Vigil(200, func(try int) { logged = append(logged, try) })
	if want := []int{1, 2, 4, 8, 16, 32, 64, 96, 128, 160, 192}; fmt.Sprint(logged) != fmt.Sprint(want) {
		t.Errorf("logged at tries %v, want %v", logged, want)
	}
}

// A user that may not create a missing stream waits until it exists, and reports which one.
func TestAwaitProvision_WaitsForWhatIsMissing(t *testing.T) {
	t.Parallel()
	s, log := natstest.StartServer(t, embedded.Config{}), newNotes()
	operator := connect(t, bus.Config{Server: s, Partitions: 2})
	if err := operator.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := connect(t, bus.Config{Server: s, Logger: log.logger()})
	if err := b.AwaitProvision(t.Context()); err != nil || log.String() != "" {
		t.Errorf("complete partitions: %v; the logger wrote %q", err, log)
	}
	if err := operator.JetStream().DeleteStream(t.Context(), "SETTLE_LOG_1"); err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() { waited <- b.AwaitProvision(t.Context()) }() // ends when the stream is there
	<-log.came
	if err := operator.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
	if text := log.String(); !strings.Contains(text, "settle provision") || !strings.Contains(text, "SETTLE_LOG_1") {
		t.Errorf("the logger wrote\n%s", text)
	}
}
