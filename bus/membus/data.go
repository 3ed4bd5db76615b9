package membus

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/settlehq/settle/model"
)

// Partitions returns the number of partitions of the deployment.
func (s *data) Partitions() int { return len(s.partitions) }

// time returns the time by the server's clock, as a message carries it.
func (s *data) time() time.Time { return time.Unix(0, s.now().UnixNano()).UTC() }

// Horizon is for how long the deployment remembers events.
func (s *data) Horizon() time.Duration { return s.horizon }

// MaxPayload returns the largest message in bytes, headers included.
func (s *data) MaxPayload() int { return s.maxPayload }

// of returns the partition that a space belongs to.
func (s *data) of(space string) *partition {
	return s.partitions[model.PartitionOf(space, len(s.partitions))]
}

// checkPartition keeps a wrong number from becoming a panic deep inside.
func (s *data) checkPartition(p int) error {
	if p < 0 || p >= len(s.partitions) {
		return fmt.Errorf("partition %d: the deployment has %d", p, len(s.partitions))
	}
	return nil
}

// data is what all streams of a deployment share: the partitions, the clock, and the lock that makes a request
// one step.
type data struct {
	maxPayload int
	horizon    time.Duration
	now        func() time.Time

	epoch atomic.Uint64 // how often the store has gone back
	// turning is held while the store goes back, and shared by requests that arrive.
	turning sync.RWMutex

	mu         sync.Mutex
	partitions []*partition
}

// partition is the slice of a deployment that belongs to some of its spaces.
type partition struct {
	log       commits
	lane      lane
	state     state
	positions map[string]position
	ahead     model.Ahead
}

// position is a number that is kept, and when it was.
type position struct {
	seq    uint64
	stored time.Time
}

func newPartition() *partition {
	return &partition{
		log:       newCommits(),
		lane:      newLane(),
		state:     newState(),
		positions: map[string]position{},
	}
}

// Config is what an operator decides about a deployment.
type Config struct {
	// Partitions is fixed for good; at least 1.
	Partitions int
	// MaxPayload is the largest message in bytes, headers included. 0 means the
	// 1 MiB that nats-server takes by default.
	MaxPayload int
	// Horizon is for how long events are remembered; 0 means model.DefaultHorizon.
	Horizon time.Duration
	// Now is the server's clock; nil means time.Now.
	Now func() time.Time
}
