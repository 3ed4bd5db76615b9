package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/settlehq/settle/bench/events"
	"github.com/settlehq/settle/bench/harness"
	"github.com/settlehq/settle/bench/workflows"
)

// page is the document with the tables, relative to the module.
const page = "../docs/performance.md"

// all measures every engine that the program is built with.
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
