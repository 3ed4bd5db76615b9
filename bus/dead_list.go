package bus

import (
	"context"
	"fmt"
	"slices"

	"github.com/settlehq/settle/model"
)

// ListDead returns the names of the dead letters of a space. See port.DeadLetters. The server
// keeps them as an index, and returns 100,000 at a time.
func (dl *deadLetters) ListDead(ctx context.Context, space string) ([]model.DeadName, error) {
	if err := checkIfAny("space", space); err != nil {
		return nil, err
	}
	subjects, err := dl.Subjects(ctx, dl.Names.DeadStream(), dl.Names.Dead(space, "", ""))
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	names := make([]model.DeadName, 0, len(subjects))
	for subject := range subjects { // any order: the contract promises none
		if name, is := dl.deadName(subject); is {
			names = append(names, name)
		}
	}
	return names, nil
}

// getDeadAtOnce is how many letters are requested by name at once: the server answers 1024, and
// stops when that is too many bytes.
const getDeadAtOnce = 512

// GetDead returns the letters of those names. See port.DeadLetters.
func (dl *deadLetters) GetDead(ctx context.Context, names []model.DeadName) ([]model.DeadLetter, error) {
	for _, n := range names {
		if err := n.Check(); err != nil {
			return nil, err
		}
	}
	var all []model.DeadLetter
	for part := range slices.Chunk(names, getDeadAtOnce) {
		subjects := make([]string, len(part))
		for i, n := range part {
			subjects[i] = dl.Names.Dead(n.Space, n.Stream, n.Event)
		}
		letters, err := dl.letters(dl.ReadNamed(ctx, dl.Names.DeadStream(), subjects))
		if err != nil {
			return nil, err
		}
		all = append(all, letters...)
	}
	return all, nil
}
