package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
)

// observers carries leases from the observers of documents to the owners of their spaces.
type observers struct{ *wire.Streams }

// Observe notifies the owner of a space that one of its documents is watched.
// See port.Observers. An error means that nothing was sent.
func (o *observers) Observe(l model.Lease) error {
	if err := l.Check(); err != nil {
		return err
	}
	body, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("observe %s of space %s: %w", l.Doc, l.Space, err)
	}
	p := o.PartitionOf(l.Space)
	if l.Doc == "" {
		return o.Publish(o.Names.Attached(p), body)
	}
	return o.Publish(o.Names.Demand(p), body)
}

// CallRoll asks the observers of spaces of a partition to repeat their leases.
func (o *observers) CallRoll(partition int) error {
	if err := o.CheckPartition(partition); err != nil {
		return err
	}
	return o.Publish(o.Names.RollCall(partition), nil)
}

// FollowLeases delivers the leases of a partition. See port.Observers. Those of attached runtimes, which name no document and create the
// space that they attach to, have a subject that only users of the account of the streams publish to.
func (o *observers) FollowLeases(ctx context.Context, partition int, deliver func(model.Lease)) error {
	if err := o.CheckPartition(partition); err != nil {
		return err
	}
	attached := o.Names.Attached(partition)
	return o.Listen(ctx, func(m *nats.Msg) {
		var l model.Lease
		err := json.Unmarshal(m.Data, &l)
		if err == nil {
			err = l.Check()
		}
		if err != nil || o.PartitionOf(l.Space) != partition || (m.Subject == attached) != (l.Doc == "") {
			o.Faults.Warn("lease passed over: it is not the JSON of a lease of this partition", m.Subject, "subject", m.Subject, "error", err)
			return
		}
		deliver(l)
	}, o.Names.Demand(partition), attached)
}

// FollowRollCalls delivers the numbers of partitions whose roll is called. See
// port.Observers.
func (o *observers) FollowRollCalls(ctx context.Context, deliver func(partition int)) error {
	return o.Listen(ctx, func(m *nats.Msg) {
		p, err := strconv.Atoi(wire.LastToken(m.Subject))
		if err != nil || o.CheckPartition(p) != nil {
			o.Log.Warn("roll call passed over: there is no such partition", "subject", m.Subject)
			return
		}
		deliver(p)
	}, o.Names.RollCalls())
}
