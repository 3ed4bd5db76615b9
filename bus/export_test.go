package bus

import (
	"context"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/bus/internal/wire"
)

// HurryUp shortens the timeouts of a bus, for tests that would have to wait for them.
func (b *Bus) HurryUp() {
	b.streams.Timing = wire.Timing{
		PastLimit: 20 * time.Millisecond, HeadCheck: 20 * time.Millisecond,
		Heartbeat: 200 * time.Millisecond, GoneAfter: 50 * time.Millisecond,
		Placement: 50 * time.Millisecond, Absent: 50 * time.Millisecond, PastCheck: 50 * time.Millisecond,
		Silent: 200 * time.Millisecond,
	}
}

// unconnected returns a bus that has no connection.
func unconnected(cfg Config) *Bus {
	if err := cfg.Fill(); err != nil {
		panic(err)
	}
	return newBus(cfg)
}

// Wanted returns the configurations of all assets, as Provision creates them.
func (b *Bus) Wanted() []jetstream.StreamConfig {
	var all []jetstream.StreamConfig
	for _, a := range b.Specs(b.Partitions()) {
		all = append(all, a.Config)
	}
	return all
}

// PartitionOf returns the partition of a space.
func (b *Bus) PartitionOf(space string) int { return b.streams.PartitionOf(space) }

// Vigil makes a wait fail a number of times, and calls logged for each failure that is logged.
func Vigil(tries int, logged func(try int)) {
	try := 0
	v := wire.Waiter{Log: slog.New(counting{func() { logged(try) }})}
	for try = 1; try <= tries; try++ {
		v.Failed("without success")
	}
}

// counting is a logger that calls line for each line.
type counting struct{ line func() }

func (counting) Enabled(context.Context, slog.Level) bool    { return true }
func (c counting) Handle(context.Context, slog.Record) error { c.line(); return nil }
func (c counting) WithAttrs([]slog.Attr) slog.Handler        { return c }
func (c counting) WithGroup(string) slog.Handler             { return c }

// Traffic returns what the connection has sent and received so far.
func (b *Bus) Traffic() nats.Statistics { return b.streams.NC.Stats() }
