package bus

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// scan reads the last message of every subject of a pattern by a consumer, which
// has flow control and no limit on their number.
func (s *streams) scan(ctx context.Context, stream, pattern string) ([]storedMsg, error) {
	within, end := context.WithCancel(ctx)
	defer end()
	var found []storedMsg
	complete := false
	t := tail{stream: stream, pattern: pattern, latest: true, reached: func() { complete = true; end() }}
	err := s.follow(within, t, func(d delivery) {
		found = append(found, storedMsg{Subject: d.Subject, Seq: d.seq, Header: d.Header, Data: d.Data})
	})
	if !complete {
		return nil, err
	}
	found = latest(found)
	return found, s.checkComplete(ctx, stream, pattern, found)
}

// checkComplete compares the result with the subjects that the leader lists. A
// document that was being replaced while it was read could be missing.
func (s *streams) checkComplete(ctx context.Context, stream, pattern string, found []storedMsg) error {
	there := make(map[string]bool, len(found))
	for _, m := range found {
		there[m.Subject] = true
	}
	info, err := s.streamInfo(ctx, stream, jetstream.WithSubjectFilter(pattern))
	if err != nil {
		return err
	}
	for subject := range info.State.Subjects { // any order: one that is missing is enough
		if !there[subject] {
			return fmt.Errorf("%w: %s was not among what was read", errTransient, subject)
		}
	}
	return nil
}

// latest drops items that were replaced while the scan ran.
func latest(found []storedMsg) []storedMsg {
	at := make(map[string]int, len(found))
	kept := found[:0]
	for _, m := range found {
		if i, ok := at[m.Subject]; ok {
			kept[i] = m
			continue
		}
		at[m.Subject] = len(kept)
		kept = append(kept, m)
	}
	return kept
}
