package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/bus/internal/wire"
)

// Spaces returns the spaces with a commit in the log, sorted. It asks
// the leader of each partition's log, and may miss the newest. If logs are missing, it returns the spaces of the other
// partitions, and the error is model.ErrNoStream and names the missing ones.
func (l *logs) Spaces(ctx context.Context) ([]string, error) {
	var spaces []string
	var missing []error
	for p := range l.Partitions() {
		stream := l.Names.LogStream(p)
		info, err := l.StreamInfo(ctx, stream, jetstream.WithSubjectFilter(l.Names.Logs(p)))
		if errors.Is(err, wire.ErrNoStream) {
			missing = append(missing, fmt.Errorf("the spaces of partition %d are not listed: stream %s: %w", p, stream, err))
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list the spaces of partition %d: %w", p, err)
		}
		for subject := range info.State.Subjects { // any order: sorted below
			spaces = append(spaces, wire.LastToken(subject))
		}
	}
	slices.Sort(spaces)
	return spaces, errors.Join(missing...)
}
