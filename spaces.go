package settle

import (
	"context"
	"errors"

	"github.com/settlehq/settle/port"
)

// spaceLister is the part of a bus that lists the spaces of a deployment.
type spaceLister interface {
	Spaces(ctx context.Context) ([]string, error)
}

// Spaces returns the spaces that have a commit in the log, sorted. It may miss the newest. If the logs of partitions are missing,
// it returns the spaces of the others, and the error is model.ErrNoStream.
func (c *Client) Spaces(ctx context.Context) ([]string, error) {
	if err := c.deployed(ctx); err != nil {
		return nil, err
	}
	return spacesOf(ctx, c.bus)
}

func spacesOf(ctx context.Context, bus port.Client) ([]string, error) {
	l, can := bus.(spaceLister)
	if !can {
		return nil, errors.New("this bus does not list spaces")
	}
	return l.Spaces(ctx)
}
