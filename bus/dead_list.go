package bus

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/model"
)

// ListDead returns the names of the dead letters of a space. See port.DeadLetters. The server
// keeps them as an index, and returns 100,000 at a time.
func (b *Bus) ListDead(ctx context.Context, space string) ([]model.DeadName, error) {
	if err := checkIfAny("space", space); err != nil {
		return nil, err
	}
	subjects, err := b.subjects(ctx, b.names.deadStream(), b.names.dead(space, "", ""))
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	names := make([]model.DeadName, 0, len(subjects))
	for subject := range subjects { // any order: the contract promises none
		if name, is := b.deadName(subject); is {
			names = append(names, name)
		}
	}
	return names, nil
}

// subjects returns the subjects of a stream that match a pattern, in as many pages as necessary. Pages may
// be of different moments, so that a subject that was added meanwhile may be
// missing.
func (b *Bus) subjects(ctx context.Context, stream, pattern string) (map[string]uint64, error) {
	all := map[string]uint64{}
	for {
		var page struct {
			Error *jetstream.APIError   `json:"error"`
			Total int                   `json:"total"`
			State jetstream.StreamState `json:"state"`
		}
		question := struct {
			Filter string `json:"subjects_filter"`
			Offset int    `json:"offset,omitempty"`
		}{pattern, len(all)}
		err := b.persist(ctx, func(ctx context.Context) error {
			page.Error, page.Total, page.State = nil, 0, jetstream.StreamState{}
			if err := b.request(ctx, "STREAM.INFO."+stream, question, &page); err != nil {
				return err
			}
			if page.Error != nil {
				return apiError(page.Error)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("subjects of stream %s: %w", stream, err)
		}
		before := len(all)
		for subject, n := range page.State.Subjects { // any order: into a map
			all[subject] = n
		}
		if len(all) >= page.Total || len(all) == before {
			return all, nil
		}
	}
}

// getDeadAtOnce is how many letters are requested by name at once: the server answers 1024, and
// stops when that is too many bytes.
const getDeadAtOnce = 512

// GetDead returns the letters of those names. See port.DeadLetters.
func (b *Bus) GetDead(ctx context.Context, names []model.DeadName) ([]model.DeadLetter, error) {
	for _, n := range names {
		if err := n.Check(); err != nil {
			return nil, err
		}
	}
	var all []model.DeadLetter
	for part := range slices.Chunk(names, getDeadAtOnce) {
		subjects := make([]string, len(part))
		for i, n := range part {
			subjects[i] = b.names.dead(n.Space, n.Stream, n.Event)
		}
		letters, err := b.letters(b.readNamed(ctx, b.names.deadStream(), subjects))
		if err != nil {
			return nil, err
		}
		all = append(all, letters...)
	}
	return all, nil
}

// readNamed reads the last messages of subjects, in halves if they are too large for one answer.
func (b *Bus) readNamed(ctx context.Context, stream string, subjects []string) ([]storedMsg, error) {
	if room := b.MaxPayload() / 2; len(strings.Join(subjects, `","`)) > room && len(subjects) > 1 {
		return b.readHalves(ctx, stream, subjects)
	}
	found, more, err := b.batchGet(ctx, stream, getRequest{MultiLast: subjects, MaxBytes: stateBytes})
	if err == nil && more && len(subjects) > 1 {
		return b.readHalves(ctx, stream, subjects)
	}
	return found, err
}

func (b *Bus) readHalves(ctx context.Context, stream string, subjects []string) ([]storedMsg, error) {
	half := len(subjects) / 2
	first, err := b.readNamed(ctx, stream, subjects[:half])
	if err != nil {
		return nil, err
	}
	rest, err := b.readNamed(ctx, stream, subjects[half:])
	return append(first, rest...), err
}
