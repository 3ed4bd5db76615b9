package buscontract

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
)

// patience is when a test that hangs is ended. It is no measure of speed: 1,500 appends, one after the other, have taken two minutes
// under the race detector on a busy machine.
const patience = 10 * time.Minute

// partitions is the number of partitions of every deployment: two, so that each test has another.
const partitions = 2

// world is a test and its deployment.
type world struct {
	*testing.T
	Deployment
	ctx context.Context
	// gone receives the names of services whose listeners are gone.
	gone chan string
}

func newWorld(t *testing.T, h Harness) *world {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return &world{T: t, Deployment: h.Start(t, partitions), ctx: ctx, gone: make(chan string, 64)}
}

// connect attaches a client that is closed at the end of the test.
func (w *world) connect(id string) Client {
	w.Helper()
	c := w.Connect(w.T, id)
	w.Cleanup(c.Close)
	return c
}

// space returns the i-th space name that belongs to a partition.
func space(partition, i int) string {
	for n := 0; ; n++ {
		name := fmt.Sprintf("space-%d", n)
		if model.PartitionOf(name, partitions) != partition {
			continue
		}
		if i == 0 {
			return name
		}
		i--
	}
}

// cart is the space that most tests use.
var cart = space(0, 0)

// must ends the test if a step fails that is not its subject.
func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// equal compares a result with the promise.
func (w *world) equal(what string, got, want any) {
	w.Helper()
	if !reflect.DeepEqual(got, want) {
		w.Fatalf("%s\n got: %v\nwant: %v", what, got, want)
	}
}

// await waits until a channel delivers or is closed.
func (w *world) await(what string, c <-chan struct{}) {
	w.Helper()
	select {
	case <-c:
	case <-w.ctx.Done():
		w.Fatalf("timeout: %s", what)
	}
}

// inject applies a fault to the client's next request of a kind, and fails the test at its end if the fault
// never happened: such a test would prove nothing.
func (w *world) inject(c Client, kind Kind, fault Fault) {
	w.Helper()
	happened := c.Inject(kind, fault, nil)
	w.Cleanup(func() { w.mustHave(happened, fault) })
}

func (w *world) mustHave(happened <-chan struct{}, fault Fault) {
	select {
	case <-happened:
	default:
		w.Errorf("the %s was never injected", fault)
	}
}

// moment is the time between a fault and the client's next attempt.
type moment struct {
	w       *world
	reached chan struct{}
	resume  func()
}

// holdAfter injects a fault and then blocks the client until over is called, so that a test can act in between.
func (w *world) holdAfter(c Client, kind Kind, fault Fault) *moment {
	w.Helper()
	reached, resumed := make(chan struct{}), make(chan struct{})
	c.Inject(kind, fault, func() {
		close(reached)
		<-resumed
	})
	m := &moment{w, reached, sync.OnceFunc(func() { close(resumed) })}
	w.Cleanup(m.resume) // before the client is closed, which may wait for it
	return m
}

func (m *moment) await() {
	m.w.Helper()
	m.w.await("the injected fault", m.reached)
}

func (m *moment) over() { m.resume() }
