package membus_test

import (
	"hash/fnv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/buscontract"
	"github.com/settlehq/settle/bus/membus"
)

// The contract holds however long messages take and in whatever order they arrive.
func TestContractThroughANetwork(t *testing.T) { buscontract.Run(t, networkHarness{}) }

type networkHarness struct{}

func (networkHarness) In(t *testing.T, test func(*testing.T)) { synctest.Test(t, test) }

func (networkHarness) Start(_ *testing.T, partitions int) buscontract.Deployment {
	return networked{deployment{membus.NewServer(membus.Config{Partitions: partitions})}}
}

type networked struct{ deployment }

func (d networked) Connect(_ *testing.T, id string) buscontract.Client {
	n := &jittery{}
	return &networkClient{d.server.Dial(id, n), n}
}

// jittery is a network on which everything takes up to a third of a millisecond.
type jittery struct {
	mu   sync.Mutex
	hook func(membus.Op, *membus.Trip)
}

func jitter(parts ...any) time.Duration {
	h := fnv.New64a()
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			_, _ = h.Write([]byte(p))
		case uint64:
			_, _ = h.Write([]byte{byte(p), byte(p >> 8), byte(p >> 16)})
		}
	}
	return time.Duration(h.Sum64()%300_000) + 1
}

func (n *jittery) Request(op membus.Op) membus.Trip {
	trip := membus.Trip{
		There: jitter("there", op.Client, op.Label, op.Space, op.Key, op.Nth), Back: jitter("back", op.Client, op.Label, op.Space, op.Nth),
		Patience: 5 * time.Millisecond,
	}
	n.mu.Lock()
	hook := n.hook
	n.mu.Unlock()
	if hook != nil {
		hook(op, &trip)
	}
	return trip
}

func (n *jittery) Delivery(d membus.Delivery) time.Duration {
	return jitter("delivery", d.Client, d.Label, d.Space, d.Nth, d.Seq)
}
func (n *jittery) Waking(op membus.Op) time.Duration { return jitter("waking", op.Client, op.Nth) }
func (n *jittery) Step(membus.Step)                  {}

type networkClient struct {
	*membus.Bus
	net *jittery
}

// Inject decides the fate of the first try of the next request of a kind, and blocks the retry until then
// returns.
func (c *networkClient) Inject(kind buscontract.Kind, fault buscontract.Fault, then func()) <-chan struct{} {
	happened := make(chan struct{})
	var mu sync.Mutex
	var hit membus.Op // the request that was hit
	hook := func(op membus.Op, trip *membus.Trip) {
		mu.Lock()
		first := hit.Label == "" && op.Label == string(kind)
		if first {
			hit = op
		}
		second := !first && op.Try == 2 && op.Label == hit.Label && op.Space == hit.Space && op.Nth == hit.Nth
		mu.Unlock()
		switch {
		case first:
			switch fault {
			case buscontract.DropRequest:
				trip.There = membus.Lost
			case buscontract.DropAck:
				trip.Back = membus.Lost
			case buscontract.Duplicate:
				trip.Copy = trip.There + 100*time.Microsecond
				trip.Patience = time.Minute // so that the request is not retried, which is a fault of its own
			}
			close(happened)
		case second && then != nil:
			then()
		}
	}
	c.net.mu.Lock()
	c.net.hook = hook
	c.net.mu.Unlock()
	return happened
}
