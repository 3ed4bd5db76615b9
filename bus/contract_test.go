package bus_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/buscontract"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/faults"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/internal/leaks"
	"github.com/settlehq/settle/internal/parallel"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

var _ port.Bus = (*bus.Bus)(nil)

func TestMain(m *testing.M) {
	parallel.Allow()
	leaks.VerifyTestMain(m)
}

func TestContract(t *testing.T) { buscontract.Run(t, harness{}) }

type harness struct{}

// Start starts an embedded server. Its promises do not depend on fsync, and without it the suite takes
// seconds.
func (harness) Start(t *testing.T, partitions int) buscontract.Deployment {
	return deploy(t, natstest.StartServer(t, embedded.Config{}), bus.DefaultPrefix, partitions)
}

// deploy creates a deployment on a running server.
func deploy(t *testing.T, server nats.InProcessConnProvider, prefix string, partitions int) *deployment {
	d := &deployment{prefix: prefix, partitions: partitions, cable: cable{server: server}}
	d.admin = connect(t, bus.Config{
		Name: "admin", Prefix: prefix, Partitions: partitions, Options: []nats.Option{nats.InProcessServer(server)},
	})
	if err := d.admin.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d
}

type deployment struct {
	prefix     string
	partitions int
	cable      cable
	admin      *bus.Bus
}

// ackTimeout is short, so that lost acknowledgements do not delay the tests. A late acknowledgement causes a
// harmless retry.
const ackTimeout = 100 * time.Millisecond

func (d *deployment) Connect(t *testing.T, id string) buscontract.Client {
	c := &client{}
	c.Bus = connect(t, bus.Config{
		Name: "test/" + id, Prefix: d.prefix, Partitions: d.partitions, Faults: c.fate, AckTimeout: ackTimeout,
		Options: []nats.Option{nats.InProcessServer(&d.cable), nats.ReconnectWait(5 * time.Millisecond), nats.ReconnectJitter(0, 0), nats.Timeout(time.Minute)},
	})
	c.HurryUp()
	return c
}

func (d *deployment) Disconnect(*testing.T) { d.cable.cut() }

func (d *deployment) Reconnect(*testing.T) { d.cable.mend() }

func (d *deployment) LimitLanes(t *testing.T, n int) {
	for p := range d.partitions {
		cfg := stream(t, d.admin, fmt.Sprintf("%s_LANE_%d", strings.ToUpper(d.prefix), p)).CachedInfo().Config
		cfg.MaxMsgs = int64(n)
		if n == 0 {
			cfg.MaxMsgs = -1
		}
		update(t, d.admin, cfg)
	}
}

func (d *deployment) Misplace(t *testing.T, partition int, m model.Message) {
	nc, err := nats.Connect("", nats.InProcessServer(d.cable.server))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	subject := fmt.Sprintf("%s.lane.%d.%s.%s.%s", d.prefix, partition, m.Space, m.Stream, m.ID)
	if reply, err := nc.Request(subject, m.Payload, time.Minute); err != nil || strings.Contains(string(reply.Data), "error") {
		t.Fatalf("%s: %v %v", subject, reply, err)
	}
}

// cable connects clients to a server until it is cut.
type cable struct {
	server nats.InProcessConnProvider
	mu     sync.Mutex
	isCut  bool
	plugs  []net.Conn
}

var errCut = errors.New("the cable is cut")

// InProcessConn makes a connection, for nats.InProcessServer.
func (c *cable) InProcessConn() (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isCut {
		return nil, errCut
	}
	conn, err := c.server.InProcessConn()
	if err != nil {
		return nil, err
	}
	c.plugs = append(c.plugs, conn)
	return conn, nil
}

func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isCut = true
	for _, p := range c.plugs {
		_ = p.Close()
	}
	c.plugs = nil
}

func (c *cable) mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isCut = false
}

type client struct {
	*bus.Bus

	mu     sync.Mutex
	faults []*injection
}

// injection is a fault that waits for its request, or for that request's second
// attempt.
type injection struct {
	op       faults.Op
	fault    faults.Fault
	subject  string // of the request that it happened to
	happened chan struct{}
	then     func()
}

var faultOf = map[buscontract.Fault]faults.Fault{
	buscontract.DropRequest: faults.DropRequest,
	buscontract.DropAck:     faults.DropAck,
	buscontract.Duplicate:   faults.Duplicate,
}

// Inject decides the fate of the first try of the next request of a kind, and blocks the retry until then
// returns.
func (c *client) Inject(kind buscontract.Kind, fault buscontract.Fault, then func()) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := &injection{op: faults.Op(kind), fault: faultOf[fault], happened: make(chan struct{}), then: then}
	c.faults = append(c.faults, i)
	return i.happened
}

func (c *client) fate(a faults.Attempt) faults.Fault {
	fault, then := c.choose(a)
	if then != nil {
		then()
	}
	return fault
}

func (c *client) choose(a faults.Attempt) (fault faults.Fault, then func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range c.faults {
		switch {
		case i.op != a.Op:
		case i.subject == "" && a.Try == 1:
			i.subject = a.Subject
			close(i.happened)
			return i.fault, nil
		case i.subject == a.Subject && a.Try == 2:
			then, i.then = i.then, nil
			if then != nil {
				return faults.Deliver, then
			}
		}
	}
	return faults.Deliver, nil
}

// connect attaches a bus that is closed at the end of the test.
func connect(t testing.TB, cfg bus.Config) *bus.Bus {
	t.Helper()
	b, err := bus.Connect(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}
