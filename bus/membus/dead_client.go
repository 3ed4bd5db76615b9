package membus

import (
	"context"
	"fmt"
	"slices"

	"github.com/settlehq/settle/model"
)

// deadClient stores and reads dead letters.
type deadClient struct{ *client }

// StoreDead stores a dead letter unless the event has one.
func (c *deadClient) StoreDead(ctx context.Context, d *model.DeadLetter) error {
	if err := d.Check(); err != nil {
		return err
	}
	letter, err := d.Encode()
	if err != nil {
		return err
	}
	refused, err := ask(ctx, c.client, Op{Label: "bury", Space: d.Space, Key: d.Event}, func(int) error {
		return c.server.StoreDead(d.Space, d.Stream, d.Event, letter)
	})
	if err == nil {
		err = refused
	}
	if err != nil {
		return fmt.Errorf("bury event %s of space %s: %w", d.Event, d.Space, err)
	}
	return nil
}

// ReadDead returns up to limit letters of a space, or of all if it is "".
func (c *deadClient) ReadDead(ctx context.Context, space string, after uint64, limit int) ([]model.DeadLetter, error) {
	if err := checkIfAny("space", space); err != nil {
		return nil, err
	}
	return ask(ctx, c.client, Op{Label: "read-dead", Space: space}, func(int) []model.DeadLetter {
		return c.server.ReadDead(space, after, limit)
	})
}

// FindDead returns the letters about an event.
func (c *deadClient) FindDead(ctx context.Context, space, id string) ([]model.DeadLetter, error) {
	if err := model.CheckName("space", space); err != nil {
		return nil, err
	}
	if err := model.CheckAnyEventID(id); err != nil {
		return nil, err
	}
	return ask(ctx, c.client, Op{Label: "find-dead", Space: space, Key: id}, func(int) []model.DeadLetter {
		return c.server.FindDead(space, id)
	})
}

// ListDead returns the names of the letters of a space, or of all if it is "".
func (c *deadClient) ListDead(ctx context.Context, space string) ([]model.DeadName, error) {
	if err := checkIfAny("space", space); err != nil {
		return nil, err
	}
	return ask(ctx, c.client, Op{Label: "list-dead", Space: space}, func(int) []model.DeadName {
		return c.server.ListDead(space)
	})
}

// GetDead returns those of the named letters that exist.
func (c *deadClient) GetDead(ctx context.Context, names []model.DeadName) ([]model.DeadLetter, error) {
	for _, n := range names {
		if err := n.Check(); err != nil {
			return nil, err
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	return ask(ctx, c.client, Op{Label: "get-dead"}, func(int) []model.DeadLetter {
		return c.server.letters(0, 1<<30, func(d *model.DeadLetter) bool { return slices.Contains(names, d.Name()) })
	})
}
