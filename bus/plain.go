package bus

import "github.com/settlehq/settle/model"

// LaneSubject returns the subject of an event in the LANE stream, for
// plain NATS clients of a deployment.
func (b *Bus) LaneSubject(space, stream, id string) string {
	m := model.Message{Space: space, Stream: stream, ID: id}
	return b.streams.Names.Event(model.PartitionOf(space, b.Partitions()), &m)
}

// StateBucket returns the name of the KV bucket that holds the documents of a space,
// under keys "<space>.<document>".
func (b *Bus) StateBucket(space string) string {
	return b.streams.Names.StateBucket(model.PartitionOf(space, b.Partitions()))
}
