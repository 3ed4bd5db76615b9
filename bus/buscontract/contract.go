// Package buscontract tests what a port.Bus has to promise. The bus over JetStream and the one in memory pass
// the same suite, so that what tests show over the one holds over the other.
//
// No test sleeps: each waits for a condition, and a deadline far beyond its usual time turns a hang into a
// failure.
package buscontract

import (
	"context"
	"testing"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// Harness starts the bus under test.
type Harness interface {
	// Start starts an empty deployment, which ends with the test.
	Start(t *testing.T, partitions int) Deployment
}

// Virtual is a Harness whose tests need a special environment, such as virtual time.
type Virtual interface {
	// In runs a test in that environment.
	In(t *testing.T, test func(*testing.T))
}

// Deployment is a running server, or a fleet of them.
type Deployment interface {
	// Connect attaches a client as a process of its own would.
	Connect(t *testing.T, id string) Client
	// Disconnect cuts all clients off from the server. When it returns, no request of theirs can reach the
	// server until Reconnect.
	Disconnect(t *testing.T)
	Reconnect(t *testing.T)
	// LimitLanes bounds each partition's lane to n events; 0 means no bound.
	LimitLanes(t *testing.T, n int)
	// Misplace stores an event in the lane of a partition, even of one that is not its own.
	Misplace(t *testing.T, partition int, m model.Message)
}

// Client is a bus that faults can be injected into.
type Client interface {
	port.Bus
	port.Records
	// Spaces returns the spaces with a commit in the log, sorted.
	Spaces(ctx context.Context) ([]string, error)
	// Close ends the client in good order, Kill as a crash would. Both may be called in any order, and
	// repeatedly.
	Close()
	Kill()
	// Inject applies the fault to the client's next request of a kind. It calls then after the fault, before
	// the client repeats any of that request, and the client waits until then returns. With Duplicate, then is
	// not called. The channel is closed after the fault.
	Inject(kind Kind, fault Fault, then func()) (happened <-chan struct{})
}

// Kind is a kind of request.
type Kind string

// Requests that have an effect, and that must therefore survive a fault.
const (
	Append    Kind = "append"
	Send      Kind = "send"
	Save      Kind = "save" // one document or mark of SaveState
	StoreDead Kind = "bury"
	Record    Kind = "record"
)

// Fault is what happens to one request.
type Fault int

const (
	// DropRequest: the request does not reach the server.
	DropRequest Fault = iota
	// DropAck: the server performs the request, and its answer is lost.
	DropAck
	// Duplicate: the server receives the request twice.
	Duplicate
)

func (f Fault) String() string {
	return [...]string{"lost request", "lost acknowledgement", "duplicated request"}[f]
}

var faults = []Fault{DropRequest, DropAck, Duplicate}

// check is one promise: a sentence and its test.
type check struct {
	name string
	test func(*world)
}

// Run tests the bus of a harness against the whole contract.
func Run(t *testing.T, h Harness) {
	groups := []struct {
		name   string
		checks []check
	}{
		{"Log", logChecks},
		{"Doubt", doubtChecks},
		{"Lane", laneChecks},
		{"Fill", fillChecks},
		{"Purge", purgeChecks},
		{"PurgeLog", purgeLogChecks},
		{"Follow", followChecks},
		{"State", stateChecks},
		{"Position", positionChecks},
		{"Ahead", aheadChecks},
		{"Due", dueChecks},
		{"Observers", observerChecks},
		{"Members", memberChecks},
		{"Dead", deadChecks},
		{"Records", recordChecks},
		{"Services", serviceChecks},
		{"Listen", listenChecks},
		{"Limits", limitChecks},
		{"Stop", stopChecks},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.checks {
				test := func(t *testing.T) { c.test(newWorld(t, h)) }
				t.Run(c.name, func(t *testing.T) {
					if v, ok := h.(Virtual); ok {
						v.In(t, test)
						return
					}
					t.Parallel() // each has a deployment of its own
					test(t)
				})
			}
		})
	}
}
