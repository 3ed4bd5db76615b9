package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/internal/backup"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/model"
)

// backupCmd is `settle backup`.
type backupCmd struct {
	connection
	Dir string `arg:"" help:"A new directory to write the backup to."`
}

// Help returns the long help.
func (backupCmd) Help() string {
	return "The deployment keeps running while it is copied. Everything that was acknowledged before the printed time is in the backup."
}

// Run copies a deployment.
func (c *backupCmd) Run(ctx context.Context, io streams) error {
	return c.use(ctx, io, need{whole: true}, func(b *bus.Bus, _ *settle.Client) error {
		bars := newBars(io)
		m, err := backup.Make(ctx, b, c.Dir, bars.progress())
		bars.end()
		if err != nil {
			return fmt.Errorf("nothing was backed up: %w", err)
		}
		describe(io.out, m, c.Dir)
		note(ctx, io.err, b, m)
		return nil
	})
}

// notePatience is the time limit for the note about a backup, which is complete without it.
const notePatience = 15 * time.Second

// note records the backup in the deployment, for the doctor. A backup is valid without it.
func note(ctx context.Context, errs io.Writer, b *bus.Bus, m *backup.Manifest) {
	ctx, end := context.WithTimeout(ctx, notePatience)
	defer end()
	switch err := b.NoteBackup(ctx, m.Note()); {
	case errors.Is(err, model.ErrForbidden):
		fmt.Fprintln(errs, "the backup could not be recorded in the deployment, so `settle doctor` does not know of it: use the role backup (settle permissions)")
	case err != nil:
		fmt.Fprintln(errs, "the backup could not be recorded in the deployment, so `settle doctor` does not know of it:", err)
	}
}

// restoreCmd is `settle restore`.
type restoreCmd struct {
	connection
	Dir    string `arg:"" help:"The directory of the backup."`
	Stream string `help:"Restore only this missing stream, while the deployment runs: a name that settle doctor prints, such as SETTLE_LOG_3." placeholder:"NAME"`
	Check  bool   `help:"Only verify the checksums of the files, and restore nothing."`
	Store  string `help:"Restore into the data directory of an embedded server that is not running, such as ./.settle." placeholder:"DIR"`
	Config string `help:"With --store: the configuration file of this nats-server. The user is NATS_USER with NATS_PASSWORD, or that of --creds." type:"existingfile" placeholder:"FILE"`
}

// Help returns the long help.
func (restoreCmd) Help() string {
	return "The deployment must not exist yet; with --stream, the stream must not. Start workers after the restore has succeeded; with --stream they may keep running. An interrupted restore can be run again."
}

// Run restores a deployment.
func (c *restoreCmd) Run(ctx context.Context, io streams) error {
	bars := newBars(io)
	defer bars.end()
	if c.Check {
		m, err := backup.Check(c.Dir, bars.progress())
		bars.end()
		if err == nil {
			describe(io.out, m, c.Dir)
		}
		return err
	}
	cfg := c.config("client/restore")
	cfg.Logger = slog.New(slog.NewTextHandler(io.err, &slog.HandlerOptions{Level: slog.LevelError}))
	switch {
	case c.Store == "" && c.Config != "":
		return usage(errors.New("--config is of the server of --store: give both"))
	case c.Store == "":
		c.useLocalServer()
		cfg.URL = c.NATS
	default:
		if c.NATS != "" || c.Context != "" {
			return usage(errors.New("give --store or a server to connect to, not both"))
		}
		server, err := embedded.Start(ctx, embedded.Config{StoreDir: c.Store, ConfigFile: c.Config, Logger: cfg.Logger})
		if err != nil {
			return err
		}
		defer server.Shutdown()
		cfg.Server = server
		if c.Config != "" {
			cfg.Creds, cfg.User, cfg.Password = cmp.Or(c.Creds, os.Getenv("NATS_CREDS")), os.Getenv("NATS_USER"), os.Getenv("NATS_PASSWORD")
		}
	}
	if c.Stream != "" {
		return c.restoreStream(ctx, io, cfg, bars)
	}
	m, err := backup.Restore(ctx, cfg, c.Dir, bars.progress())
	bars.end()
	if errors.Is(err, bus.ErrNoLogin) {
		return fmt.Errorf("%w; set NATS_USER and NATS_PASSWORD, or give --creds", err)
	}
	if err != nil {
		return err
	}
	describe(io.out, m, c.Dir)
	fmt.Fprintln(io.out, "restored; workers and coordinators may start")
	return nil
}

// describe prints the contents of a backup.
func describe(out io.Writer, m *backup.Manifest, dir string) {
	fmt.Fprintf(out, "%s: deployment %s, %s, %d messages, %s\n", dir, m.Deployment, display.Count(m.Partitions, "partition"), m.Messages(), display.Bytes(m.Size()))
	fmt.Fprintf(out, "as of %s: everything that was acknowledged before is in it\n", m.AsOf.Format(time.RFC3339Nano))
}

// bars report the progress of a long command: as a bar on a terminal, and elsewhere as a line of text that is printed when
// at least progressEvery has passed since the one before, or since the command began.
type bars struct {
	out io.Writer
	bar *progressbar.ProgressBar // nil elsewhere

	terminal bool
	now      func() time.Time

	mu       sync.Mutex
	printed  time.Time
	what     string
	done, of int64
}

// progressEvery is the interval between lines of progress.
const progressEvery = 5 * time.Second

// newBars returns bars for a command that begins now. They write to its standard error.
func newBars(io streams) *bars {
	b := &bars{out: io.err, now: io.now, printed: io.now()}
	if f, ok := io.err.(*os.File); ok {
		b.terminal = term.IsTerminal(int(f.Fd()))
	}
	return b
}

func (b *bars) progress() backup.Progress {
	if !b.terminal {
		return backup.Progress{Begin: b.note, Add: b.add}
	}
	return backup.Progress{Begin: b.begin, Add: func(n int64) { _ = b.bar.Add64(n) }} // it is only shown
}

// note begins the next step, with its total, 0 if that is not known.
func (b *bars) note(what string, of int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.what, b.done, b.of = what, 0, of
}

// add adds progress, and prints a line if the interval has passed.
func (b *bars) add(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done += n
	now := b.now()
	if now.Sub(b.printed) < progressEvery {
		return
	}
	b.printed = now
	text := fmt.Sprintf("%s: %d", b.what, b.done)
	if b.of > 0 {
		text += fmt.Sprintf(" of %d", b.of)
	}
	fmt.Fprintln(b.out, text)
}

func (b *bars) begin(what string, of int64) {
	b.end()
	b.bar = progressbar.NewOptions64(max(of, 1), progressbar.OptionSetWriter(b.out), progressbar.OptionSetDescription(what),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(30), progressbar.OptionShowCount())
}

// end removes the bar.
func (b *bars) end() {
	if b.bar != nil {
		_ = b.bar.Clear() // it is only shown
		b.bar = nil
	}
}
