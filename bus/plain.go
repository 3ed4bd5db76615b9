package bus

import "github.com/settlehq/settle/model"

// LaneSubject is the subject that an event has in the LANE stream, for those who
// speak to a deployment as plain NATS clients.
func (b *Bus) LaneSubject(space, stream, id string) string {
	m := model.Message{Space: space, Stream: stream, ID: id}
	return b.names.event(model.PartitionOf(space, b.Partitions()), &m)
}
