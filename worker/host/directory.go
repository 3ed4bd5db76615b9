package host

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// spacesEvery is how often a process that serves readers of lists of spaces asks which spaces there are. One answer serves all of its
// readers, and answers that take long are asked for less often, so that they take no more than a twentieth of the time.
const (
	spacesEvery  = time.Second
	spacesAtMost = 20
)

// directory knows which spaces there are, as of a moment ago.
type directory struct {
	turn  chan struct{} // holds an element while one of the readers asks; it guards what follows
	names []string
	next  time.Time // when to ask again
	epoch uint64    // of the store
}

func newDirectory() *directory { return &directory{turn: make(chan struct{}, 1)} }

// spaces returns the spaces, sorted. They must not be modified.
func (d *directory) spaces(ctx context.Context, bus port.Bus) ([]string, error) {
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if epoch := bus.Epoch(); epoch != d.epoch {
		d.next, d.epoch = time.Time{}, epoch
	}
	begun := time.Now()
	if begun.Before(d.next) {
		return d.names, nil
	}
	names, err := bus.Spaces(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the spaces: %w", err)
	}
	d.names = names
	d.next = time.Now().Add(max(spacesEvery, spacesAtMost*time.Since(begun)))
	return names, nil
}

// followSpaces delivers the spaces that match a pattern, then again whenever there are others.
func (d *directory) followSpaces(ctx context.Context, bus port.Bus, pattern string, deliver func(model.Value)) error {
	var known []string
	for begun := false; ; begun = true {
		all, err := d.spaces(ctx, bus)
		if err != nil {
			return err
		}
		now := matching(all, pattern)
		if !begun || !slices.Equal(now, known) {
			known = now
			deliver(listingOf(now))
		}
		if err := pause.For(ctx, spacesEvery); err != nil {
			return err
		}
	}
}

func matching(names []string, pattern string) (some []string) {
	for _, name := range names {
		if model.MatchesPattern(pattern, name) {
			some = append(some, name)
		}
	}
	return some
}

// listingOf returns the document model.SpacesDoc of spaces.
func listingOf(spaces []string) model.Value {
	fields := make([]model.Field, len(spaces))
	for i, name := range spaces {
		fields[i] = model.Field{Key: name, Value: model.Bool(true)}
	}
	return model.Object(fields...)
}
