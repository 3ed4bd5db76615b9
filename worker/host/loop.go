package host

import (
	"context"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// loop is what the components of a host use to work beside its loop.
type loop struct {
	space string
	ctx   context.Context // ends with the host
	done  <-chan struct{} // closed when the host has ended
	bus   port.Bus
	cfg   *Config
	// beside runs a function beside the loop, which waits for it at the end; call makes the loop run one, and
	// wake makes it check for work.
	beside, call func(func())
	wake         func()
	// report logs an error, and fail ends the host with one.
	report, fail func(what string, err error)
}

// send stores an event in a lane.
func (l *loop) send(m model.Message) error {
	answer := make(chan error, 1)
	l.bus.Send(m, func(_ model.SendResult, err error) { answer <- err })
	return <-answer
}

// retry runs f until ctx ends or the bus is stopped, and restarts it if it fails.
func (l *loop) retry(ctx context.Context, what string, f func(ctx context.Context) error) {
	retry(ctx, l.cfg, what, l.space, []any{"space", l.space}, f)
}

// readPage is how many log or lane entries are read at a time.
const readPage = 512

// askPause is the pause before a host retries a store that has failed.
const askPause = 200 * time.Millisecond
