//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/test/chaos/history"
)

// chaos is one run.
type chaos struct {
	o       *options
	dir     string
	d       *deployment
	rec     *records
	load    *load
	watch   *observers
	nem     *nemesis
	sup     *supervisor
	mon     *monitor
	bus     *bus.Bus
	client  *settle.Client
	check   *history.Checker
	began   time.Time
	faulty  time.Duration // the duration of the faults
	elapsed time.Duration
	// stuck describes work that did not end in time.
	stuck    []string
	left     uint64        // commits in the streams
	restored int           // events that are handled in the backup that was restored
	silent   time.Duration // the longest time without a commit
}

// run executes a run. It fails if the run could not be completed.
func (o *options) run(ctx context.Context) (sound bool, err error) {
	base := o.Data
	if base == "" {
		base = os.TempDir()
	}
	removeStale(base)
	dir := filepath.Join(base, dataPrefix+strconv.Itoa(os.Getpid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, err
	}
	c := &chaos{o: o, dir: dir, began: time.Now()}
	keep := true
	defer func() { err = errors.Join(err, c.close(keep)) }()
	if err := c.prepare(); err != nil {
		return false, err
	}
	if err := c.play(ctx); err != nil {
		keep = ctx.Err() == nil || o.Keep
		return false, err
	}
	sound, err = c.report()
	keep = !sound || o.Keep
	return sound, err
}

func (c *chaos) prepare() (err error) {
	if c.d, err = newDeployment(c.o, c.dir); err != nil {
		return err
	}
	if c.rec, err = newRecords(c.dir); err != nil {
		return err
	}
	c.load = &load{d: c.d, work: c.o.workload(), rec: c.rec, rate: c.o.Rate}
	c.watch = newObservers(c.d, c.rec)
	c.nem = newNemesis(c.d, c.o.Seed)
	c.sup = &supervisor{d: c.d}
	return nil
}

// close ends everything, and removes the data unless it is to be kept.
func (c *chaos) close(keep bool) error {
	if c.bus != nil {
		c.client.Close()
		c.bus.Kill()
	}
	var err error
	if c.d != nil {
		err = c.d.close(keep)
	}
	if c.rec != nil {
		c.rec.close()
	}
	if keep {
		err = errors.Join(err, os.Rename(c.dir, c.kept()))
		fmt.Fprintf(os.Stderr, "the data, the clients' records and the logs of all processes are kept in %s\n", c.kept())
		return err
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}

// kept returns the directory of the data that is kept.
func (c *chaos) kept() string {
	return filepath.Join(filepath.Dir(c.dir), keptPrefix+strconv.Itoa(os.Getpid()))
}

// play runs everything, up to the check.
func (c *chaos) play(ctx context.Context) error {
	if err := c.d.start(ctx); err != nil {
		return err
	}
	if err := c.connect(ctx); err != nil {
		return err
	}
	following, unfollow := context.WithCancel(ctx)
	defer unfollow()
	for p := range c.o.Partitions {
		go c.mon.follow(following, p) // ends with following
	}
	supervising, unsupervise := context.WithCancel(ctx)
	defer unsupervise()
	var supervisors sync.WaitGroup
	supervisors.Go(func() { c.sup.run(supervising) })
	watching, unwatch := context.WithCancel(ctx)
	var observers sync.WaitGroup
	observers.Go(func() { c.watch.run(watching) })
	defer observers.Wait()
	defer unwatch()
	if err := c.warm(ctx); err != nil {
		return err
	}
	if err := c.storm(ctx); err != nil {
		return err
	}
	c.rest(ctx)
	unwatch()
	observers.Wait()
	unsupervise()
	supervisors.Wait()
	if err := stopAll(ctx, c.d.workers); err != nil {
		c.stuck = append(c.stuck, err.Error())
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c.say("reading everything back")
	if err := c.judge(ctx); err != nil {
		return err
	}
	return c.judgeRestored(ctx)
}

func (c *chaos) connect(ctx context.Context) (err error) {
	if c.bus, err = bus.Connect(ctx, c.d.busConfig("client/checker")); err != nil {
		return err
	}
	c.client, err = settle.NewClient(c.bus, settle.ClientConfig{ID: "checker"})
	c.mon = &monitor{b: c.bus}
	return err
}

// warm waits until all workers have announced themselves.
func (c *chaos) warm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for pause.For(ctx, 100*time.Millisecond) == nil {
		if code := c.sup.crashed(); code != "" {
			return fmt.Errorf("a process does not start: %s", code)
		}
		if members, err := c.members(ctx); err == nil && members >= c.o.Workers {
			return nil
		}
	}
	return fmt.Errorf("the workers do not come up within a minute; see %s", filepath.Join(c.dir, "log"))
}

// members returns the number of workers that have announced themselves.
func (c *chaos) members(ctx context.Context) (n int, err error) {
	kv, err := c.bus.JetStream().KeyValue(ctx, strings.ToUpper(bus.DefaultPrefix)+"_WORKERS")
	if err != nil {
		return 0, err
	}
	keys, err := kv.ListKeys(ctx)
	if err != nil {
		return 0, err
	}
	for k := range keys.Keys() {
		if strings.HasPrefix(k, "w") {
			n++
		}
	}
	return n, nil
}

// storm runs clients and faults until both have reached their goals.
func (c *chaos) storm(ctx context.Context) error {
	sending, enough := context.WithCancel(ctx)
	defer enough()
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	sent := make(chan error, 1)
	go func() { sent <- c.load.run(bounded, sending) }() // ends with bounded at the latest
	nemesis, peace := context.WithCancel(ctx)
	defer peace()
	faults := make(chan error, 1)
	go func() { faults <- c.nem.run(nemesis) }() // ends when all is healed
	begun := time.Now()
	for !c.enough(time.Since(begun)) {
		if pause.For(ctx, time.Second) != nil {
			peace()
			return errors.Join(ctx.Err(), <-faults)
		}
		if int(time.Since(begun).Seconds())%max(1, int(c.o.Tell.Seconds())) == 0 {
			c.progress()
		}
		c.silent = max(c.silent, c.mon.silence())
	}
	c.faulty = time.Since(begun)
	peace()
	err := <-faults
	c.progress()
	c.say("no more faults; clients finish")
	enough()
	select {
	case err2 := <-sent:
		return errors.Join(err, err2)
	case <-time.After(c.o.Patience):
		cancel()
		c.stuck = append(c.stuck, fmt.Sprintf("clients do not get their events acknowledged within %v of the last fault: %v", c.o.Patience, <-sent))
		return err
	}
}

// enough reports whether the run has had the requested duration and numbers. It
// waits for the latter for a limited time.
func (c *chaos) enough(lasted time.Duration) bool {
	if lasted < c.o.Duration {
		return false
	}
	p, _ := c.mon.now()
	_, kills, _ := c.nem.now()
	return lasted > 2*c.o.Duration || p.handled >= c.o.MinEvents && kills >= c.o.MinKills && c.nem.powerCuts() >= c.o.MinCuts
}

// rest waits until every event is handled, every value is delivered and every dead letter is written.
func (c *chaos) rest(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.o.Patience)
	defer cancel()
	var missing error
	for pause.For(ctx, 200*time.Millisecond) == nil {
		if missing = c.missing(ctx); missing == nil {
			c.elapsed = time.Since(c.began)
			return
		}
	}
	c.elapsed = time.Since(c.began)
	c.stuck = append(c.stuck, fmt.Sprintf("%v after the last acknowledgement: %v", c.o.Patience, missing))
}

// restful is the time without an entry after which a run without counts is at rest.
const restful = 10 * time.Second

func (c *chaos) missing(ctx context.Context) error {
	p, err := c.mon.now()
	if c.o.Purge > 0 || c.o.lossy() { // the monitor may have missed purged entries, and has counted lost ones
		if quiet := c.mon.silence(); quiet < restful {
			return fmt.Errorf("commits came until %v ago", quiet)
		}
		return c.watch.current(ctx, c.client)
	}
	if want := int(c.load.acked.Load()) + p.due; p.handled < want {
		return errors.Join(err, fmt.Errorf("%d of %d events have a receipt", p.handled, want))
	}
	return c.watch.current(ctx, c.client)
}

func (c *chaos) say(text string) { c.sayf("%s", text) }

func (c *chaos) sayf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%7s  %s\n", time.Since(c.began).Round(time.Second), fmt.Sprintf(format, args...))
}

// progress returns the progress of the run on one line.
func (c *chaos) progress() {
	p, err := c.mon.now()
	faults, kills, active := c.nem.now()
	acked := c.load.acked.Load()
	line := fmt.Sprintf("acknowledged %d, handled %d (waiting %d, %d/s), faults %d, kills %d",
		acked, p.handled, int(acked)+p.due-p.handled, int(float64(p.handled)/time.Since(c.began).Seconds()), faults, kills)
	if len(active) > 0 {
		line += fmt.Sprintf(", now %q", active)
	}
	if err != nil {
		line += ": " + err.Error()
	}
	c.say(line)
}
