// Command bench measures Settle beside other ways to do the same work, on the same servers, in turns. README.md
// describes it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"time"

	"github.com/settlehq/settle/bench/events"
	"github.com/settlehq/settle/bench/harness"
	"github.com/settlehq/settle/bench/workflows"
)

func main() {
	if text := os.Getenv(harness.RoleEnv); text != "" {
		exit(role(text))
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	exit(command(ctx, os.Args[1:]))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// role plays a worker, in a process that the benchmark has started.
func role(text string) error {
	var r harness.Role
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	return events.Serve(r)
}

// The files of the benchmark, relative to its module.
const (
	recordFile = "results.json"
	countsFile = "counts.json"
	page       = "../docs/performance.md"
)

func command(ctx context.Context, args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case "small":
			return small(ctx, args[1:], os.Stdout)
		case "page":
			return writePage(recordFile, page)
		}
	}
	return all(ctx, args)
}

func all(ctx context.Context, args []string) error {
	o := harness.Options{Log: os.Stderr}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.DurationVar(&o.Time, "time", 2*time.Second, "how long each measurement sends")
	flags.IntVar(&o.Rounds, "rounds", 3, "how often each is repeated")
	flags.BoolVar(&o.Full, "full", false, "the largest sizes, too, which take an hour")
	flags.StringVar(&o.File, "json", recordFile, "the file for the record")
	more := flags.Bool("add", false, "add to the record, and do not begin a new one")
	pattern(flags, &o.Shapes, "shapes", "only the shapes and cases that this regular expression matches, such as 'events W1 100'")
	pattern(flags, &o.Engines, "engines", "only the engines that this regular expression matches")
	pattern(flags, &o.Sites, "sites", "only the sites that this regular expression matches")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o.Begin()
	o.Record = &harness.Record{When: time.Now().UTC().Format("2006-01-02"), Machine: harness.ThisMachine()}
	if *more {
		r, err := harness.Read(o.File)
		if err != nil {
			return err
		}
		o.Record = r
	}
	o.Record.Method = fmt.Sprintf("%d rounds of %v each", o.Rounds, o.Time)
	if err := atAllSites(ctx, o); err != nil {
		return err
	}
	if o.File != recordFile {
		return nil
	}
	return writePage(recordFile, page)
}

func pattern(flags *flag.FlagSet, into **regexp.Regexp, name, help string) {
	flags.Func(name, help, func(s string) (err error) {
		*into, err = regexp.Compile(s)
		return err
	})
}

// sites are the settings of durability.
var sites = []struct {
	name    string
	servers int
	always  bool
}{
	{"one server, fsync interval", 1, false},
	{"one server, fsync always", 1, true},
	{"three servers, R3", 3, false},
}

func atAllSites(ctx context.Context, o harness.Options) error {
	dir, err := os.MkdirTemp("", "settle-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // best effort: it is a temporary directory
	program, err := natsServer(ctx, o.Log)
	if err != nil {
		return err
	}
	others := harness.StartOthers(ctx, dir, o.Log)
	defer others.Stop()
	for i, s := range sites {
		if o.Sites != nil && !o.Sites.MatchString(s.name) {
			continue
		}
		at := &harness.Site{Name: s.name, Always: s.always, Dir: filepath.Join(dir, fmt.Sprintf("site%d", i)), First: i == 0, Others: others}
		if err := atSite(ctx, program, at, s.servers, o); err != nil {
			return err
		}
	}
	return nil
}

func atSite(ctx context.Context, program string, at *harness.Site, servers int, o harness.Options) (err error) {
	if at.Servers, err = harness.StartServers(ctx, program, at.Dir, servers, at.Always); err != nil {
		return err
	}
	defer at.Servers.Stop()
	if err := events.Run(ctx, at, o); err != nil {
		return err
	}
	return workflows.Run(ctx, at, o)
}

// natsServer builds the server, in the version that the module is required in, and returns its path.
func natsServer(ctx context.Context, log io.Writer) (string, error) {
	path, err := filepath.Abs(filepath.Join("bin", "nats-server"))
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/nats-io/nats-server/v2")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return "", errors.Join(errors.New("nats-server cannot be built"), err)
	}
	return path, nil
}
