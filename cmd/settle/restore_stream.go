package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/internal/backup"
	"github.com/settlehq/settle/internal/loss"
	"github.com/settlehq/settle/model"
)

// restoreStream restores one stream, and says what is lost relative to the others.
func (c *restoreCmd) restoreStream(ctx context.Context, io streams, cfg bus.Config, bars *bars) error {
	m, f, err := backup.RestoreStream(ctx, cfg, c.Dir, c.Stream, bars.progress())
	bars.end()
	if err != nil {
		return err
	}
	fmt.Fprintf(io.out, "%s: restored with %s up to %d, as of %s\n", f.Stream, count(int(f.Messages), "message"), f.Last, m.AsOf.Format(time.RFC3339Nano))
	fmt.Fprintf(io.out, "  lost: %s\n", lostSince[f.Component])
	if f.Partition < 0 {
		return nil
	}
	b, err := bus.Connect(ctx, cfg)
	if err != nil {
		return fmt.Errorf("the stream is restored, and the deployment cannot be connected to: %w", err)
	}
	defer b.Close()
	refused, err := loss.InPartition(ctx, b, f.Partition)
	switch {
	case errors.Is(err, model.ErrNoStream):
		fmt.Fprintf(io.out, "another stream of partition %d is missing, and nothing of it is served until that is there (%v): restore it too\n", f.Partition, err)
		return nil
	case err != nil:
		return fmt.Errorf("the stream is restored, and what workers refuse of it cannot be told: %w; see `settle accept-loss`", err)
	case len(refused) == 0:
		fmt.Fprintf(io.out, "nothing of partition %d is refused: workers and coordinators go on\n", f.Partition)
		return nil
	}
	for _, l := range refused {
		printLoss(io, l)
	}
	fmt.Fprintf(io.out, "workers refuse that, and keep its events; everything else goes on. To go on without what is lost: settle accept-loss --partition %d --yes\n", f.Partition)
	return nil
}

// lostSince is what a deployment has lost of a stream that was restored alone, by what the stream is for.
var lostSince = map[string]string{
	bus.ComponentLog:      "what spaces of the partition have committed since: their receipts, and what was not saved of their documents yet",
	bus.ComponentLane:     "events that have come since and were not handled. Workers tell those that were by their receipts, and coordinators release again what spaces have sent; clients can send again what they have",
	bus.ComponentState:    "nothing of spaces whose log reaches back to then: workers read what has changed since from it",
	bus.ComponentDead:     "the dead letters of events that have failed since, and notes of those that were redriven or dismissed since. Receipts are in the logs",
	bus.ComponentPrograms: "what was deployed, rolled back, pinned and unpinned since: do that again, in the same order",
}
