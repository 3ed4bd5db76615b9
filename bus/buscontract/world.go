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

// patience is how long a test waits for what must happen. It only has to be
// longer than the slowest bus on the slowest machine.
const patience = 2 * time.Minute

// partitions is how many every deployment has: two, so that there is another.
const partitions = 2

// world is one deployment and the test that it serves.
type world struct {
	*testing.T
	Deployment
	ctx context.Context
	// gone are those who learned that nobody listens to them.
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

// space is the i-th space name that belongs to a partition.
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

// must ends the test if something went wrong that it is not about.
func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// equal compares what was got with what is promised.
func (w *world) equal(what string, got, want any) {
	w.Helper()
	if !reflect.DeepEqual(got, want) {
		w.Fatalf("%s\n got: %v\nwant: %v", what, got, want)
	}
}

// await waits for a channel to have something to say, or to be closed.
func (w *world) await(what string, c <-chan struct{}) {
	w.Helper()
	select {
	case <-c:
	case <-w.ctx.Done():
		w.Fatalf("waited in vain for %s", what)
	}
}

// inject lets a fault happen to the client's next request of a kind, and fails
// the test at its end if it never did: such a test would prove nothing.
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

// holdAfter injects a fault, after which the client stands still until over is
// called, so that a test can let something happen right then.
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
