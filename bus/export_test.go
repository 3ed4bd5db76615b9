package bus

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// HurryUp makes a bus impatient, for tests that wait for what it does only after a
// while.
func (b *Bus) HurryUp() {
	b.timing = timing{
		pastLimit: 20 * time.Millisecond, headCheck: 20 * time.Millisecond,
		heartbeat: 200 * time.Millisecond, goneAfter: 50 * time.Millisecond,
		placement: 50 * time.Millisecond, pastCheck: 50 * time.Millisecond,
	}
}

// Wanted are the configurations of all assets, as Provision creates them.
func (b *Bus) Wanted() []jetstream.StreamConfig {
	var all []jetstream.StreamConfig
	for _, a := range b.assets(b.Partitions()) {
		all = append(all, a.config)
	}
	return all
}

// PartitionOf is the partition of a space.
func (b *Bus) PartitionOf(space string) int { return b.partitionOf(space) }
