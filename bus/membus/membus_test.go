package membus_test

import (
	"testing"

	"github.com/settlehq/settle/bus/buscontract"
	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/leaks"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

var _ port.Bus = (*membus.Bus)(nil)

func TestMain(m *testing.M) { leaks.VerifyTestMain(m) }

func TestContract(t *testing.T) { buscontract.Run(t, harness{}) }

type harness struct{}

func (harness) Start(_ *testing.T, partitions int) buscontract.Deployment {
	return deployment{membus.NewServer(membus.Config{Partitions: partitions})}
}

type deployment struct{ server *membus.Server }

func (d deployment) Connect(_ *testing.T, id string) buscontract.Client {
	return client{d.server.Connect(id)}
}

func (d deployment) Disconnect(*testing.T) { d.server.Disconnect() }

func (d deployment) Reconnect(*testing.T) { d.server.Reconnect() }

func (d deployment) LimitLanes(_ *testing.T, n int) { d.server.LimitLanes(n) }

func (d deployment) Misplace(t *testing.T, partition int, m model.Message) {
	if _, err := d.server.SendTo(partition, m); err != nil {
		t.Fatal(err)
	}
}

type client struct{ *membus.Bus }

var fates = map[buscontract.Fault]membus.Fate{
	buscontract.DropRequest: membus.DropRequest,
	buscontract.DropAck:     membus.DropAck,
	buscontract.Duplicate:   membus.Duplicate,
}

// Inject decides the fate of the first try of the next request of a kind, and blocks the retry until then
// returns.
func (c client) Inject(kind buscontract.Kind, fault buscontract.Fault, then func()) <-chan struct{} {
	happened := make(chan struct{})
	var hit uint64 // number of the request that was hit
	c.Bus.Inject(func(op membus.Op) membus.Fate {
		switch {
		case hit == 0 && op.Label == string(kind):
			hit = op.N
			close(happened)
			return fates[fault]
		case hit == op.N && op.Try == 2 && then != nil:
			then()
		}
		return membus.Deliver
	})
	return happened
}
