package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/spaces"
)

// places checks what the arguments name. With --all, the first one is the stream and the second one the payload.
func (c *sendCmd) places() error {
	if c.All == "" {
		if c.Stream == "" {
			return errors.New("name the stream of the event: settle send SPACE STREAM [JSON]")
		}
		return nil
	}
	switch {
	case c.Payload != "":
		return errors.New("--all takes the place of the space: settle send --all PATTERN STREAM [JSON]")
	case c.Wait == "tree":
		return errors.New("--all waits for receipts only: use --wait")
	}
	c.Space, c.Stream, c.Payload = "", c.Space, c.Stream
	if !model.IsPattern(c.All) {
		return fmt.Errorf("--all %s is no pattern; use one such as 'lot-*', or '*' for all spaces", c.All)
	}
	return model.CheckPattern("spaces", c.All)
}

// sendAll sends the event to all spaces that match.
func (c *sendCmd) sendAll(ctx context.Context, io streams, client *settle.Client, e settle.Outgoing) error {
	to := settle.All(c.All)
	if c.ID == "" {
		fmt.Fprintf(io.err, "the id is %s: repeat the command with --id %s to go on after an error\n", e.ID, e.ID)
	}
	last := 0
	sent, err := spaces.Send(ctx, client, to, e, func(p spaces.Sent) {
		if p.Sent/spacesPerLine > last/spacesPerLine {
			last = p.Sent
			fmt.Fprintf(io.err, "%d of %d\n", p.Sent, p.Spaces)
		}
	})
	if err != nil {
		return usageIfName(err)
	}
	if c.JSON && c.Wait == "none" {
		return printLine(io.out, map[string]any{"event": e.ID.String(), "spaces": sent.Spaces, "before": sent.Before})
	}
	if !c.JSON {
		fmt.Fprintln(io.out, reachedText(c.All, e.ID, sent))
	}
	if c.Wait == "none" || sent.Spaces == 0 {
		return nil
	}
	return c.awaitAll(ctx, io, client, to, e.ID)
}

// reachedText says in how many spaces the event is.
func reachedText(pattern string, id settle.EventID, sent spaces.Sent) string {
	switch {
	case sent.Spaces == 0:
		return fmt.Sprintf("no space matches %s, and nothing is sent; settle ls lists the spaces", pattern)
	case sent.Before == 0:
		return fmt.Sprintf("%s: stored for %s", id, display.Count(sent.Spaces, "space"))
	}
	return fmt.Sprintf("%s: stored for %s, %d of which had it before", id, display.Count(sent.Spaces, "space"), sent.Before)
}

// spacesPerLine is how many spaces a line of progress is about.
const spacesPerLine = 1000

func (c *sendCmd) awaitAll(ctx context.Context, io streams, client *settle.Client, to model.Spaces, id settle.EventID) error {
	ended, err := spaces.Await(ctx, client, to, c.Stream, id, nil)
	if c.JSON {
		if err := printLine(io.out, map[string]any{"event": id.String(), "spaces": ended.Spaces, "outcomes": ended.Outcomes}); err != nil {
			return err
		}
	} else {
		var parts []string
		for _, outcome := range slices.Sorted(maps.Keys(ended.Outcomes)) {
			parts = append(parts, fmt.Sprint(ended.Outcomes[outcome], " ", outcome))
		}
		fmt.Fprintf(io.out, "%s: %s\n", display.Count(ended.Spaces, "space"), strings.Join(parts, ", "))
	}
	for _, bad := range ended.Failures {
		fmt.Fprintf(io.err, "%s: %s\n", bad.Space, bad.Reason)
	}
	switch bad := ended.Spaces - ended.Outcomes[model.Handled]; {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("not all events have ended within %v; they are stored and will be handled; the same command with --id %s waits again", c.Timeout, id)
	case err != nil:
		return err
	case bad > 0:
		return fmt.Errorf("%d of %s did not handle the event", bad, display.Count(ended.Spaces, "space"))
	}
	return nil
}
