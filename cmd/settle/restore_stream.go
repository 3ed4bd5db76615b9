package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/internal/backup"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/loss"
	"github.com/settlehq/settle/model"
)

// restoreStream restores one stream, and prints what is lost relative to the others.
func (c *restoreCmd) restoreStream(ctx context.Context, io streams, cfg bus.Config, bars *bars) error {
	m, f, err := backup.RestoreStream(ctx, cfg, c.Dir, c.Stream, bars.progress())
	bars.end()
	if err != nil {
		return err
	}
	fmt.Fprintf(io.out, "%s: restored with %s up to %d, as of %s\n", f.Stream, display.Count(int(f.Messages), "message"), f.Last, m.AsOf.Format(time.RFC3339Nano))
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
		fmt.Fprintf(io.out, "another stream of partition %d is missing, and the partition is not served until that is restored (%v): restore it too\n", f.Partition, err)
		return nil
	case err != nil:
		return fmt.Errorf("the stream is restored, but its losses could not be determined: %w; see `settle accept-loss`", err)
	case len(refused) == 0:
		fmt.Fprintf(io.out, "nothing of partition %d is refused: workers and coordinators continue\n", f.Partition)
		return nil
	}
	for _, l := range refused {
		printLoss(io, l)
	}
	fmt.Fprintf(io.out, "workers refuse that, and keep its events; everything else continues. To continue without the lost data: settle accept-loss --partition %d --yes\n", f.Partition)
	return nil
}

// lostSince describes what a deployment has lost with a stream that was restored alone, by the kind of stream.
var lostSince = map[string]string{
	provision.ComponentLog:      "commits of the partition since then: their receipts, and document changes that were not saved yet",
	provision.ComponentLane:     "events that arrived since then and were not handled. Workers recognise handled events by their receipts, and coordinators release the events of other spaces again; clients can send theirs again",
	provision.ComponentState:    "nothing of spaces whose log reaches back to then: workers read later changes from it",
	provision.ComponentDead:     "the dead letters of events that have failed since then, and the records of redrives and dismissals since then. Receipts are in the logs",
	provision.ComponentPrograms: "deployments, rollbacks, pins and unpins since then: repeat them in the same order",
}
