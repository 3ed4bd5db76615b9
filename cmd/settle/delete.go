package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/internal/erase"
	"github.com/settlehq/settle/model"
)

// deleteCmd is `settle delete`.
type deleteCmd struct {
	connection
	Space   string        `arg:"" help:"The space."`
	Force   bool          `help:"First cancel the events that wait in it, each with a receipt."`
	Yes     bool          `help:"Delete. Default: print what would be deleted, and change nothing."`
	Timeout time.Duration `help:"How long the command may take." default:"1m"`
}

// Help returns the long help.
func (deleteCmd) Help() string {
	return "Deletes all documents of the space by a commit, and removes what its streams have from before: commits with their receipts, events, dead letters. Ids of events that were handled stay occupied until the horizon has passed, and what other spaces have sent once is not handled again. The next event begins the space anew. The servers remove messages from streams at once, and may keep their bytes in files until they rewrite those (docs/adr/0050). It can be repeated. Needs the role administrator, a worker and a coordinator."
}

// Run deletes a space.
func (c *deleteCmd) Run(ctx context.Context, io streams) error {
	if err := model.CheckName("space", c.Space); err != nil {
		return usage(err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	return c.use(ctx, io, ofSpaces(c.Space).patient(c.Timeout), func(b *bus.Bus, client *settle.Client) error {
		if err := b.MayErase(ctx, c.Space); err != nil {
			return err
		}
		found, err := erase.Look(ctx, b, c.Space)
		if err != nil {
			return err
		}
		if n := len(found.Waiting); n > 0 && !c.Force {
			return fmt.Errorf("%d events wait in space %s, the first is %s/%s: let them be handled, or cancel them with --force; nothing was changed", n, c.Space, found.Waiting[0].Stream, found.Waiting[0].Event)
		}
		if !c.Yes {
			fmt.Fprintf(io.out, "space %s has %d documents, and %d events that wait\n", c.Space, found.Documents, len(found.Waiting))
			return errors.New("nothing was changed; to delete it, add --yes")
		}
		if len(found.Waiting) > 0 {
			all, err := client.CancelAll(ctx, found.Waiting, "the space is deleted")
			if err != nil {
				return err
			}
			var end endedAs
			for i := range all {
				end.note(io, &all[i])
			}
			if end.pending+end.failed > 0 {
				return fmt.Errorf("%d events have not ended; the documents of space %s are not deleted", end.pending+end.failed, c.Space)
			}
		}
		if err := erase.Space(ctx, b, c.Space); err != nil {
			return err
		}
		fmt.Fprintf(io.out, "space %s is deleted: %d documents\n", c.Space, found.Documents)
		return nil
	})
}
