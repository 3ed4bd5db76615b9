// Package buscontract is what a port.Bus has to promise, as one suite of
// tests. The bus over JetStream and the one in memory both pass it, so what was
// found out against the one holds for the other.
//
// No test sleeps. Each waits for what must happen; a deadline that is far longer
// than any of it should take turns a hang into a failure.
package buscontract

import (
	"testing"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// Harness knows how to start the bus that is tested.
type Harness interface {
	// Start starts an empty deployment, which ends with the test.
	Start(t *testing.T, partitions int) Deployment
}

// Virtual is a Harness whose tests run in a world of their own, such as one of virtual
// time.
type Virtual interface {
	// In runs a test there.
	In(t *testing.T, test func(*testing.T))
}

// Deployment is a running server, or a fleet of them.
type Deployment interface {
	// Connect attaches a client, as a process of its own would be.
	Connect(t *testing.T, id string) Client
	// Disconnect cuts all clients off from the server, and returns once no request
	// of theirs can reach it. Reconnect ends that.
	Disconnect(t *testing.T)
	Reconnect(t *testing.T)
	// LimitLanes lets each partition's lane hold n events and no more, 0 any number.
	LimitLanes(t *testing.T, n int)
	// Misplace stores an event in the lane of a partition that need not be its own.
	Misplace(t *testing.T, partition int, m model.Message)
}

// Client is a bus that can be harmed.
type Client interface {
	port.Bus
	port.Records
	// Close ends the client in good order, Kill as the end of its process would.
	// Each may be called after the other, and again.
	Close()
	Kill()
	// Inject lets the fault happen to the client's next request of a kind. then is
	// called when it has happened, before the client sends anything of that request
	// again, and the client waits for it to return. With Duplicate it is never
	// called. The channel is closed when the fault has happened.
	Inject(kind Kind, fault Fault, then func()) (happened <-chan struct{})
}

// Kind is a kind of request.
type Kind string

// The requests that change something, and so the ones that it matters to lose.
const (
	Append Kind = "append"
	Send   Kind = "send"
	Save   Kind = "save" // one document or mark of SaveState
	Bury   Kind = "bury"
	Record Kind = "record"
)

// Fault is what happens to one request.
type Fault int

const (
	// DropRequest: the server never sees it.
	DropRequest Fault = iota
	// DropAck: the server does as it is told, its answer is lost.
	DropAck
	// Duplicate: the server sees it twice.
	Duplicate
)

func (f Fault) String() string {
	return [...]string{"lost request", "lost acknowledgement", "duplicated request"}[f]
}

var faults = []Fault{DropRequest, DropAck, Duplicate}

// check is one promise: what must be true, and the test of it.
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
					test(t)
				})
			}
		})
	}
}
