package worker

import (
	"context"

	"github.com/settlehq/settle/port"
)

// loop is what the components of a host need of it to work beside its loop.
type loop struct {
	space string
	ctx   context.Context // ends with the host
	bus   port.Bus
	cfg   *Config
	// beside runs a function beside the loop, which waits for it at the end; call makes the loop run one, and wake
	// makes it look what there is to do.
	beside, call func(func())
	wake         func()
	// report logs an error, and fail ends the host with one.
	report, fail func(what string, err error)
}

// retry runs f until ctx ends or the bus is stopped, and restarts it if it fails.
func (l *loop) retry(ctx context.Context, what string, f func(ctx context.Context) error) {
	retry(ctx, l.cfg, what, l.space, []any{"space", l.space}, f)
}
