//go:build unix

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/settlehq/settle/test/chaos/history"
)

// report writes the result of a run to standard output and into a file.
func (c *chaos) report() (sound bool, err error) {
	for _, s := range c.stuck {
		c.check.Fail(history.Unsettled, "%s", s)
	}
	for _, s := range c.sup.crashes {
		c.check.Fail(history.Crashed, "%s", s)
	}
	for _, f := range c.load.faults {
		c.check.Fail(history.Answers, "%s", f)
	}
	if err := os.MkdirAll(c.o.Dir, 0o755); err != nil {
		return false, err
	}
	f, err := os.Create(filepath.Join(c.o.Dir, "report-"+c.o.Topology+".txt"))
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // the text is on the screen as well
	c.write(io.MultiWriter(os.Stdout, f))
	if c.o.Result != "" {
		err = c.result(c.o.Result)
	}
	return c.check.Sound(), err
}

func (c *chaos) write(w io.Writer) {
	n, o := &c.check.Counts, c.o
	line := func(name, format string, args ...any) {
		_, _ = fmt.Fprintf(w, "%-22s %s\n", name, fmt.Sprintf(format, args...)) // a screen, and a file beside it
	}
	line("chaos", "%s, seed %d, %s", o.Topology, o.Seed, c.began.UTC().Format(time.RFC3339))
	line("deployment", "%d NATS servers (fsync %s), %d workers (clocks up to %v off), %d coordinators, %d partitions, %d spaces, %d clients",
		len(c.d.nodes), o.fsync(), o.Workers, o.Skew, o.Coordinators, o.Partitions, o.Spaces, o.Clients)
	if o.Purge > 0 {
		line("log", "purged beyond %d bytes per partition, so judged by totals: %d commits are left", o.Purge, c.left)
	}
	line("duration", "%v of faults, %v in all", c.faulty.Round(time.Second), c.elapsed.Round(time.Second))
	kills := c.nem.killed
	line("kills", "%d: %d workers, %d coordinators, %d servers", kills["worker"]+kills["coordinator"]+kills["server"], kills["worker"], kills["coordinator"], kills["server"])
	if o.Power {
		line("power cuts", "%d; %d acknowledged events were lost with what the disks had not written through", c.nem.cuts, n.LostToPower)
	}
	c.writeFaults(line)
	line("restarted", "%d processes that had ended by themselves, as no server could be reached", c.sup.restarts)
	line("sent by clients", "%d acknowledged; %d sent again after that, %d crashes of clients", n.Acked, c.load.repeated.Load(), c.load.crashes.Load())
	line("handled", "%d events: %d of clients, %d from other spaces, %d follow-ups, %d ends of tasks, %d notices; %d failed, %d refused",
		n.Handled, n.FromClients, n.Crossed, n.Own, n.Jobs, n.Notices, n.Failed, n.Refused)
	line("  of these", "%d had waited for their time, beside %d timers that were set again; %d by the program in Starlark, in %d versions",
		n.Waited, n.Superseded, n.HostedEvents, c.nem.versions+1)
	line("commits", "%d; %d takeovers of spaces, %d appends refused", n.Commits, n.Takeovers, refusedIn(filepath.Join(c.dir, "counts")))
	line("handled more than once", "%d events after an error that may pass; %d attempts marked, %d events given up (docs/adr/0016)", n.Retried, n.Marked, n.GivenUp)
	line("receipts to clients", "%d, all as in the log", n.Receipts)
	line("live queries", "%d observers (%d over HTTP, %d over NATS), %d sessions, %d values", len(c.watch.list), c.watch.in(overHTTP), c.watch.in(overNATS), n.Sessions, n.Deliveries)
	line("dead letters", "%d", n.Letters)
	if c.restored > 0 {
		line("restored", "the last of %d backups under load, with %d events handled in it", c.nem.backups, c.restored)
	}
	c.writeTakeovers(line)
	if o.Purge == 0 {
		line("throughput", "%.0f events a second on average; the logs were silent for %v at most", float64(n.Handled)/max(1, n.Last.Sub(n.First).Seconds()), c.silent.Round(10*time.Millisecond))
		line("per minute", "%s", strings.Trim(fmt.Sprint(n.PerMinute), "[]"))
	}
	_, _ = fmt.Fprintln(w)
	for _, r := range history.Rules {
		line(string(r), "%d", c.check.Violations[r])
		for _, e := range c.check.Examples[r] {
			line("", "  %s", e)
		}
	}
	for _, p := range c.nem.problems {
		line("trouble with a fault", "%s", p)
	}
	if c.check.Sound() {
		line("verdict", "sound")
		return
	}
	line("verdict", "VIOLATED")
	line("to look at it", "the data and logs are below %s: run nats-server -js -sd <one of n1..n3> and the nats command line, or read log/", c.kept())
	line("to run it again", "%s (the same faults in the same order; what they meet is chance)", again(os.Args[1:], o.Seed))
}

// again returns the command line that repeats a run with the same arguments and seed.
func again(args []string, seed uint64) string {
	line := "go run ./test/chaos"
	for _, arg := range args {
		if strings.ContainsAny(arg, " ,'") {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		line += " " + arg
	}
	return line + " --seed " + strconv.FormatUint(seed, 10)
}

func (c *chaos) writeFaults(line func(name, format string, args ...any)) {
	counts := map[string]int{}
	for _, e := range c.nem.events {
		counts[e.Kind]++
	}
	for _, f := range slices.Concat(c.nem.processFaults(), c.nem.serverFaults()) {
		if n := counts[f.kind]; n > 0 {
			line("  "+f.kind, "%d", n)
		}
	}
	for _, kind := range []string{faultPartition, faultDisk} {
		if why, ok := c.d.untried[kind]; ok {
			line("  NOT TRIED", "%s: %s", kind, why)
		}
	}
}

// writeTakeovers writes how long partitions of killed workers were without a commit.
func (c *chaos) writeTakeovers(line func(name, format string, args ...any)) {
	of := func(want string) func(history.Takeover) bool {
		return func(t history.Takeover) bool {
			plain, server := c.nem.during(t.At.Add(-time.Millisecond), t.At.Add(t.After))
			return want == "plain" && plain || want == "server" && server || want == "other" && !plain && !server
		}
	}
	for _, k := range []struct{ name, want string }{
		{"takeover, kills alone", "plain"}, {"  beside other faults", "other"}, {"  beside server faults", "server"},
	} {
		list := c.check.Counts.Slowest(of(k.want))
		if len(list) == 0 {
			continue
		}
		at := func(share float64) time.Duration {
			return list[min(len(list)-1, int(share*float64(len(list))))].After.Round(time.Millisecond)
		}
		line(k.name, "%d partitions: p50 %v, p99 %v, max %v", len(list), at(0.5), at(0.99), at(1))
	}
}
