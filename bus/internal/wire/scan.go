package wire

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// Scan reads the last message of every subject of a pattern by a consumer, which
// has flow control and no limit on their number.
func (s *Streams) Scan(ctx context.Context, stream, pattern string) ([]StoredMsg, error) {
	if s.Imported() {
		return s.scanByName(ctx, stream, pattern)
	}
	within, end := context.WithCancel(ctx)
	defer end()
	var found []StoredMsg
	complete := false
	t := Tail{Stream: stream, Pattern: pattern, Latest: true, Reached: func() { complete = true; end() }}
	err := s.Follow(within, t, func(d Delivery) {
		found = append(found, StoredMsg{Subject: d.Subject, Seq: d.Seq, Header: d.Header, Data: d.Data})
	})
	if !complete {
		return nil, err
	}
	found = Latest(found)
	return found, s.checkComplete(ctx, stream, pattern, found)
}

// scanAtOnce is how many subjects are read at once: the server answers 1024, and stops when that is too many bytes.
const scanAtOnce = 512

// scanByName is Scan for a user that may create no consumer: it lists the subjects, and reads them by their names.
func (s *Streams) scanByName(ctx context.Context, stream, pattern string) (found []StoredMsg, err error) {
	subjects, err := s.Subjects(ctx, stream, pattern)
	if err != nil {
		return nil, err
	}
	for part := range slices.Chunk(slices.Sorted(maps.Keys(subjects)), scanAtOnce) {
		some, err := s.ReadNamed(ctx, stream, part)
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	return found, s.checkComplete(ctx, stream, pattern, found)
}

// checkComplete compares the result with the subjects that the leader lists. A
// document that was being replaced while it was read could be missing.
func (s *Streams) checkComplete(ctx context.Context, stream, pattern string, found []StoredMsg) error {
	there := make(map[string]bool, len(found))
	for _, m := range found {
		there[m.Subject] = true
	}
	info, err := s.StreamInfo(ctx, stream, jetstream.WithSubjectFilter(pattern))
	if err != nil {
		return err
	}
	for subject := range info.State.Subjects { // any order: one that is missing is enough
		if !there[subject] {
			return fmt.Errorf("%w: %s was not among what was read", ErrTransient, subject)
		}
	}
	return nil
}

// Latest drops items that were replaced while the scan ran.
func Latest(found []StoredMsg) []StoredMsg {
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
