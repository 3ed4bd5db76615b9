package bus

import "github.com/settlehq/settle/model"

// LaneSubject is the subject that an event has in the LANE stream, for those who
// speak to a deployment as plain NATS clients.
func (b *Bus) LaneSubject(space, stream, id string) string {
	m := model.Message{Space: space, Stream: stream, ID: id}
	return b.names.event(model.PartitionOf(space, b.Partitions()), &m)
}

// StateBucket is the name of the KV bucket that holds the documents of a space,
// under keys "<space>.<document>".
func (b *Bus) StateBucket(space string) string {
	return b.names.stateBucket(model.PartitionOf(space, b.Partitions()))
}
