package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/model"
)

// Spaces returns the spaces with a commit in the log, sorted. It asks
// the leader of each partition's log, and may miss the newest. If logs are missing, it returns the spaces of the other
// partitions, and the error is model.ErrNoStream and names the missing ones.
func (b *Bus) Spaces(ctx context.Context) ([]string, error) {
	var spaces []string
	var missing []error
	for p := range b.Partitions() {
		stream := b.names.logStream(p)
		info, err := b.streamInfo(ctx, stream, jetstream.WithSubjectFilter(b.names.logs(p)))
		if errors.Is(err, errNoStream) {
			missing = append(missing, fmt.Errorf("the spaces of partition %d are not listed: stream %s: %w", p, stream, err))
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list the spaces of partition %d: %w", p, err)
		}
		for subject := range info.State.Subjects { // any order: sorted below
			spaces = append(spaces, lastToken(subject))
		}
	}
	slices.Sort(spaces)
	return spaces, errors.Join(missing...)
}

// SavedSpaces returns the spaces of a partition that have a mark. See port.State.
func (b *Bus) SavedSpaces(ctx context.Context, partition int) ([]string, error) {
	if err := b.checkPartition(partition); err != nil {
		return nil, err
	}
	bucket := b.names.stateBucket(partition)
	info, err := b.streamInfo(ctx, bucketStream(bucket), jetstream.WithSubjectFilter(bucketSubject(bucket, "*."+markKey)))
	if err != nil {
		return nil, fmt.Errorf("list the spaces that are saved in partition %d: %w", partition, err)
	}
	var spaces []string
	for subject := range info.State.Subjects { // any order: sorted below
		space := strings.TrimSuffix(strings.TrimPrefix(subject, bucketSubject(bucket, "")), "."+markKey)
		if model.CheckName("space", space) == nil {
			spaces = append(spaces, space)
		}
	}
	slices.Sort(spaces)
	return spaces, nil
}
