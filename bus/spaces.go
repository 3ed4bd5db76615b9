package bus

import (
	"context"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// Spaces lists the spaces that exist, sorted: those of which the log holds a commit. It asks
// the leader of each partition's log, and may miss the newest.
func (b *Bus) Spaces(ctx context.Context) ([]string, error) {
	var spaces []string
	for p := range b.Partitions() {
		info, err := b.streamInfo(ctx, b.names.logStream(p), jetstream.WithSubjectFilter(b.names.logs(p)))
		if err != nil {
			return nil, fmt.Errorf("list the spaces of partition %d: %w", p, err)
		}
		for subject := range info.State.Subjects { // any order: sorted below
			spaces = append(spaces, lastToken(subject))
		}
	}
	slices.Sort(spaces)
	return spaces, nil
}
