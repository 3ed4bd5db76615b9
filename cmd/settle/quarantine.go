package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/loss"
	"github.com/settlehq/settle/model"
)

// quarantineCmd is `settle quarantine`.
type quarantineCmd struct {
	List    quarantineListCmd    `cmd:"" default:"1" help:"List the spaces that are set aside because a stored message cannot be read."`
	Show    quarantineShowCmd    `cmd:"" help:"Print the unreadable commit of a space."`
	Skip    quarantineSkipCmd    `cmd:"" help:"Let a space continue after an unreadable commit, without its contents."`
	Restore quarantineRestoreCmd `cmd:"" help:"Let a space continue with a copy of an unreadable commit."`
}

// quarantineListCmd is `settle quarantine list`.
type quarantineListCmd struct{ connection }

// Help returns the long help.
func (quarantineListCmd) Help() string {
	return "Reads the log of every space after its checkpoint. `settle fleet` and `settle doctor` list what workers have encountered. Exit status: 0 if nothing is in quarantine, 1 otherwise. Needs the role reader."
}

// Run lists the commits in quarantine.
func (c *quarantineListCmd) Run(ctx context.Context, io streams) error {
	return c.use(ctx, io, need{}, func(b *bus.Bus, _ *settle.Client) error {
		count := 0
		var missing []error
		for p := range b.Partitions() {
			list, err := loss.Quarantine(ctx, b, p)
			if errors.Is(err, model.ErrNoStream) {
				missing = append(missing, fmt.Errorf("partition %d: %w", p, err))
				continue
			}
			if err != nil {
				return err
			}
			for _, q := range list {
				count++
				fmt.Fprintf(io.out, "space %s (partition %d): %s\n", q.Space, p, q.Reason)
			}
		}
		switch {
		case len(missing) > 0:
			return errors.Join(missing...)
		case count > 0:
			return fmt.Errorf("in quarantine: %s; settle quarantine show SPACE", display.Count(count, "message"))
		}
		fmt.Fprintln(io.out, "nothing is in quarantine")
		return nil
	})
}

// quarantineShowCmd is `settle quarantine show`.
type quarantineShowCmd struct {
	connection
	Space string `arg:"" help:"The space that is set aside."`
	Raw   bool   `help:"Print only the bytes of the commit."`
}

// shownBytes is the number of bytes of a commit that are printed for people.
const shownBytes = 400

// Run prints a commit in quarantine.
func (c *quarantineShowCmd) Run(ctx context.Context, io streams) error {
	return c.use(ctx, io, ofSpaces(c.Space), func(b *bus.Bus, _ *settle.Client) error {
		q, err := inQuarantine(ctx, b, c.Space)
		if err != nil {
			return err
		}
		if c.Raw {
			_, err := io.out.Write(q.Data)
			return err
		}
		say := func(format string, args ...any) { fmt.Fprintf(io.out, format+"\n", args...) }
		say("space %s is set aside: %s", q.Space, q.Reason)
		if q.Item != "" {
			return nil
		}
		say("  commit    %d, stored %s as %q", q.Seq, q.Stored.UTC().Format(time.RFC3339), q.ID)
		say("  before    %d is the last commit that can be read", q.Before)
		say("  behind    %d commits", q.Behind)
		if r := q.Record; r != nil {
			say("  found     by %s at %s", r.By, r.Since.UTC().Format(time.RFC3339))
		}
		say("  bytes     %d: %q", len(q.Data), q.Data[:min(len(q.Data), shownBytes)])
		say("If a newer version has written it, upgrade. If it was damaged, and a backup has it: settle quarantine restore %s %d FILE. Otherwise: settle quarantine skip %s %d. Both print the consequences and change nothing without --yes", q.Space, q.Seq, q.Space, q.Seq)
		return nil
	})
}

// inQuarantine returns the unreadable commit of a space.
func inQuarantine(ctx context.Context, b *bus.Bus, space string) (*loss.Quarantined, error) {
	q, err := loss.QuarantineOf(ctx, b, space)
	if err == nil && q == nil {
		err = fmt.Errorf("space %s is not set aside: all of its log can be read", space)
	}
	return q, err
}

// quarantineDecision has the arguments and flags of both decisions.
type quarantineDecision struct {
	connection
	Space string `arg:"" help:"The space that is set aside."`
	Seq   uint64 `arg:"" help:"The log sequence of the commit, as listed."`
	Note  string `help:"The reason, for the record." placeholder:"TEXT"`
	Yes   bool   `help:"Execute the decision. Default: print the consequences, and change nothing."`
}

// decide calls f with the commit, if it is the one that the arguments name.
func (c *quarantineDecision) decide(ctx context.Context, io streams, consequences string, f func(*bus.Bus, *loss.Quarantined) error) error {
	return c.use(ctx, io, ofSpaces(c.Space), func(b *bus.Bus, _ *settle.Client) error {
		q, err := inQuarantine(ctx, b, c.Space)
		if err != nil {
			return err
		}
		if q.Seq != c.Seq {
			return fmt.Errorf("space %s is set aside for commit %d, not %d", c.Space, q.Seq, c.Seq)
		}
		if !c.Yes {
			fmt.Fprintln(io.out, consequences)
			return errors.New("nothing was changed; to decide, add --yes")
		}
		return f(b, q)
	})
}

// quarantineSkipCmd is `settle quarantine skip`.
type quarantineSkipCmd struct{ quarantineDecision }

// Help returns the long help.
func (quarantineSkipCmd) Help() string {
	return "The commit stays in the log, and all readers treat it as empty: its writes and sends are lost, and the events that it had handled are handled again. If a newer version has written it, upgrade instead. The decision is recorded in the saved state of the space. Needs the role worker."
}

// Run skips a commit.
func (c *quarantineSkipCmd) Run(ctx context.Context, io streams) error {
	return c.decide(ctx, io, "what the commit has written and sent is lost, and the events that it has handled are handled again", func(b *bus.Bus, q *loss.Quarantined) error {
		if err := q.Omit(ctx, b, c.Note); err != nil {
			return err
		}
		fmt.Fprintf(io.out, "space %s: commit %d is skipped; it is served again within seconds\n", c.Space, c.Seq)
		return nil
	})
}

// quarantineRestoreCmd is `settle quarantine restore`.
type quarantineRestoreCmd struct {
	quarantineDecision
	File string `arg:"" help:"A file with the bytes of the commit, from a backup or another server." type:"existingfile"`
}

// Help returns the long help.
func (quarantineRestoreCmd) Help() string {
	return "The file must contain the commit of that space, author and log position. The unreadable commit stays in the log, and all readers use the copy. Its sends are released into their lanes. Needs the role worker."
}

// Run restores a commit from a copy.
func (c *quarantineRestoreCmd) Run(ctx context.Context, io streams) error {
	data, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	return c.decide(ctx, io, "the space continues with the commit of "+c.File, func(b *bus.Bus, q *loss.Quarantined) error {
		if err := q.Restore(ctx, b, data, c.Note); err != nil {
			return err
		}
		fmt.Fprintf(io.out, "space %s: commit %d is restored; it is served again within seconds\n", c.Space, c.Seq)
		return nil
	})
}
