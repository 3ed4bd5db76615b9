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

// time returns the server's clock, in the precision of message timestamps.
func (s *data) time() time.Time { return time.Unix(0, s.now().UnixNano()).UTC() }

// Horizon returns how long the deployment remembers events.
func (s *data) Horizon() time.Duration { return s.horizon }

// MaxPayload returns the largest message in bytes, headers included.
func (s *data) MaxPayload() int { return s.maxPayload }

// of returns the partition that a space belongs to.
func (s *data) of(space string) *partition {
	return s.partitions[model.PartitionOf(space, len(s.partitions))]
}

// checkPartition panics early for an invalid partition number.
func (s *data) checkPartition(p int) error {
	if p < 0 || p >= len(s.partitions) {
		return fmt.Errorf("partition %d: the deployment has %d", p, len(s.partitions))
	}
	return nil
}

// data is the state that all streams of a deployment share: the partitions, the clock, and the lock that
// makes a request one atomic step.
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

// partition is the part of a deployment that holds some of the spaces.
type partition struct {
	log       commits
	lane      lane
	state     state
	positions map[string]position
	ahead     model.Ahead
}

// position is a stored number, and when it was stored.
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

// Config configures a deployment as its operator would.
type Config struct {
	// Partitions is the number of partitions, fixed for good; at least 1.
	Partitions int
	// MaxPayload is the largest message in bytes, headers included; 0 for nats-server's default of 1 MiB.
	MaxPayload int
	// Horizon is how long events are remembered; 0 for model.DefaultHorizon.
	Horizon time.Duration
	// Now is the server's clock; nil means time.Now.
	Now func() time.Time
}
