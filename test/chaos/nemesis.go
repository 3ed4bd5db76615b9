//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/test/chaos/history"
)

// The kinds of faults, as named in the report.
const (
	faultKillWorker      = "kill worker"
	faultKillWorkers     = "kill two workers"
	faultKillCoordinator = "kill coordinator"
	faultStopShort       = "stop worker below TTL"
	faultStopLong        = "stop worker beyond TTL"
	faultLeave           = "worker leaves and returns"
	faultRolling         = "rolling restart of workers"
	faultCutWorker       = "cut worker off"
	faultDeploy          = "deploy a new version"
	faultKillNode        = "kill server"
	faultKillLeader      = "kill stream leader"
	faultKillAll         = "kill all servers"
	faultStopNode        = "stop server"
	faultLeaveNode       = "server leaves and returns"
	faultDepose          = "depose stream leaders"
	faultCutNode         = "cut server off from servers"
	faultDisk            = "disk full"
	faultPower           = "power cut"
	faultPowerAll        = "power cut of all servers"

	// faultPartition requires network namespaces.
	faultPartition = "network partitions"
)

// fault is a kind of fault: run injects it, holds it and ends it.
type fault struct {
	kind   string
	weight int
	run    func(ctx context.Context, f *injury) (target string, err error)
}

// injury is the environment of a fault: the nemesis, and the random source of its sequence.
type injury struct {
	*nemesis
	rand *rand.Rand
}

// event is a fault that was injected.
type event struct {
	Kind, Target string
	At, Healed   time.Time
	Server       bool
	Err          string
}

// nemesis injects faults, in two concurrent sequences: those of workers and
// coordinators, and those of servers.
type nemesis struct {
	d     *deployment
	seed  uint64
	began time.Time
	only  []string

	mu       sync.Mutex
	events   []*event
	kills    []history.Kill
	killed   map[string]int // SIGKILLs by kind of process
	versions int            // that were deployed
	backups  int            // that were begun
	backup   *copied        // the newest
	problems []string
	cuts     int            // power cuts
	losses   []history.Loss // acknowledged data that the disks have lost
}

func newNemesis(d *deployment, seed uint64) *nemesis {
	n := &nemesis{d: d, seed: seed, killed: map[string]int{}}
	for kind := range strings.SplitSeq(d.o.Only, ",") {
		if kind = strings.TrimSpace(kind); kind != "" {
			n.only = append(n.only, kind)
		}
	}
	return n
}

// run injects faults until ctx ends, and returns when all have ended. Backups are made concurrently.
func (n *nemesis) run(ctx context.Context) error {
	n.began = time.Now()
	var g errgroup.Group
	g.Go(func() error {
		return n.sequence(ctx, 1, n.possible(n.processFaults()), n.d.o.Every, false)
	})
	g.Go(func() error {
		return n.sequence(ctx, 2, n.possible(n.serverFaults()), n.d.o.ServerEvery, true)
	})
	if n.d.o.Purge == 0 && !n.d.o.lossy() { // a backup of data that is lost later has more than the deployment
		g.Go(func() error {
			return n.sequence(ctx, 3, n.possible([]fault{{faultBackup, 1, makeBackup}}), n.d.o.Duration/3, false)
		})
	}
	return g.Wait()
}

// possible returns the requested faults that this machine allows.
func (n *nemesis) possible(all []fault) []fault {
	return slices.DeleteFunc(all, func(f fault) bool {
		needsPower := f.kind == faultPower || f.kind == faultPowerAll
		needsNet := f.kind == faultCutWorker || f.kind == faultCutNode
		long := f.kind == faultStopLong || f.kind == faultRolling
		return len(n.only) > 0 && !slices.Contains(n.only, f.kind) || long && n.d.o.Brief ||
			needsPower && !n.d.o.Power || needsNet && n.d.net == nil || f.kind == faultDeploy && n.d.o.Hosted == 0 || f.kind == faultDisk && n.d.disk == nil
	})
}

// sequence injects one fault after the other: at first each kind once, in a random
// order, so that a short run has them all; then by weight.
func (n *nemesis) sequence(ctx context.Context, stream uint64, faults []fault, every time.Duration, server bool) error {
	if len(faults) == 0 || every <= 0 {
		return nil
	}
	f := &injury{n, rand.New(rand.NewPCG(n.seed, stream))}
	first := f.rand.Perm(len(faults))
	for i := 0; ; i++ {
		wait := time.Duration((0.5 + f.rand.Float64()) * float64(every))
		if pause.For(ctx, wait) != nil {
			return nil
		}
		kind := f.choose(faults)
		if i < len(first) {
			kind = faults[first[i]]
		}
		if err := n.inflict(ctx, f, kind, server); err != nil {
			return err
		}
	}
}

func (f *injury) choose(faults []fault) fault {
	total := 0
	for _, k := range faults {
		total += k.weight
	}
	at := f.rand.IntN(total)
	for _, k := range faults {
		if at < k.weight {
			return k
		}
		at -= k.weight
	}
	return faults[0]
}

// inflict runs one fault, and ends it at once when the run is over.
func (n *nemesis) inflict(ctx context.Context, f *injury, kind fault, server bool) error {
	e := &event{Kind: kind.kind, At: time.Now(), Server: server}
	n.mu.Lock()
	n.events = append(n.events, e)
	n.mu.Unlock()
	target, err := kind.run(ctx, f)
	n.mu.Lock()
	defer n.mu.Unlock()
	e.Target, e.Healed = target, time.Now()
	if err != nil && !errors.Is(err, context.Canceled) {
		e.Err = err.Error()
		n.problems = append(n.problems, fmt.Sprintf("%s (%s): %v", kind.kind, target, err))
	}
	return nil
}

// briefHold is the duration of a fault in a brief run.
const briefHold = 3 * time.Second

// hold waits between two times, at random, but not beyond the end of the run.
func (f *injury) hold(ctx context.Context, from, to time.Duration) {
	d := from + time.Duration(f.rand.Int64N(int64(to-from)+1))
	if f.d.o.Brief {
		d = min(d, briefHold)
	}
	_ = pause.For(ctx, d) // it is ended in any case
}

// pick returns a random running process.
func (f *injury) pick(list []*child) (*child, error) {
	var running []*child
	for _, c := range list {
		if _, ok := c.now(); ok {
			running = append(running, c)
		}
	}
	if len(running) == 0 {
		return nil, errors.New("none is running")
	}
	return running[f.rand.IntN(len(running))], nil
}

// kill kills a process and records it.
func (n *nemesis) kill(c *child, what string) error {
	id, _ := c.now()
	at := time.Now()
	if err := c.kill(); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.killed[what]++
	if what == "worker" {
		n.kills = append(n.kills, history.Kill{Worker: id, At: at})
	}
	return nil
}

// during classifies a period: plain if it had only single kills of workers and coordinators, server if
// it had a fault of a server.
func (n *nemesis) during(from, to time.Time) (plain, server bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	plain = true
	for _, e := range n.events {
		healed := e.Healed
		if healed.IsZero() {
			healed = to
		}
		margin := time.Duration(0)
		if e.Server {
			margin = 10 * time.Second // elections continue after servers are back
		}
		if e.Kind == faultBackup || e.Kind == faultDeploy || e.At.After(to) || healed.Add(margin).Before(from) {
			continue
		}
		switch {
		case e.Server:
			plain, server = false, true
		case e.Kind != faultKillWorker && e.Kind != faultKillCoordinator:
			plain = false
		}
	}
	return plain, server
}

// now describes the current faults, for the progress line.
func (n *nemesis) now() (faults, kills int, active []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range n.events {
		if e.Healed.IsZero() {
			active = append(active, e.Kind)
		}
	}
	for _, k := range n.killed { // any order: a sum
		kills += k
	}
	return len(n.events), kills, active
}

func (n *nemesis) processFaults() []fault {
	return []fault{
		{faultKillWorker, 50, killWorker},
		{faultKillWorkers, 5, killTwoWorkers},
		{faultKillCoordinator, 15, killCoordinator},
		{faultStopShort, 8, func(ctx context.Context, f *injury) (string, error) {
			return f.stopAndContinue(ctx, f.d.workers, time.Second, 8*time.Second)
		}},
		{faultStopLong, 3, func(ctx context.Context, f *injury) (string, error) {
			return f.stopAndContinue(ctx, f.d.workers, 17*time.Second, 22*time.Second)
		}},
		{faultLeave, 10, leaveAndReturn},
		{faultRolling, 3, rollingRestart},
		{faultCutWorker, 6, cutWorker},
		{faultDeploy, 6, deployVersion},
	}
}

// deployVersion deploys another version of the program of the hosted spaces.
func deployVersion(ctx context.Context, f *injury) (string, error) {
	f.mu.Lock()
	f.versions++
	version := f.versions + 1
	f.mu.Unlock()
	err := f.ask(ctx, func(ctx context.Context, b *bus.Bus) error { return deploy(ctx, b, f.d.o.workload(), version) })
	return fmt.Sprintf("%s version %d", hostedName, version), err
}

func killWorker(ctx context.Context, f *injury) (string, error) {
	c, err := f.pick(f.d.workers)
	if err != nil {
		return "", err
	}
	id, _ := c.now()
	if err := f.kill(c, "worker"); err != nil {
		return id, err
	}
	f.hold(ctx, 100*time.Millisecond, 4*time.Second)
	return id, c.start(f.rand.IntN(2) == 0)
}

func killTwoWorkers(ctx context.Context, f *injury) (string, error) {
	var dead []*child
	var names []string
	for range 2 {
		c, err := f.pick(f.d.workers)
		if err != nil {
			break
		}
		id, _ := c.now()
		if err := f.kill(c, "worker"); err != nil {
			return id, err
		}
		dead, names = append(dead, c), append(names, id)
	}
	f.hold(ctx, 100*time.Millisecond, 3*time.Second)
	var errs []error
	for _, c := range dead {
		errs = append(errs, c.start(f.rand.IntN(2) == 0))
	}
	return strings.Join(names, " "), errors.Join(errs...)
}

func killCoordinator(ctx context.Context, f *injury) (string, error) {
	c, err := f.pick(f.d.coordinators)
	if err != nil {
		return "", err
	}
	if err := f.kill(c, "coordinator"); err != nil {
		return c.name, err
	}
	f.hold(ctx, 100*time.Millisecond, 3*time.Second)
	return c.name, c.start(f.rand.IntN(2) == 0)
}

// stopAndContinue suspends a process for a while.
func (f *injury) stopAndContinue(ctx context.Context, list []*child, from, to time.Duration) (string, error) {
	c, err := f.pick(list)
	if err != nil {
		return "", err
	}
	id, _ := c.now()
	if err := c.signal(sigStop); err != nil {
		return id, err
	}
	f.hold(ctx, from, to)
	return id, c.signal(sigCont)
}

func leaveAndReturn(ctx context.Context, f *injury) (string, error) {
	c, err := f.pick(f.d.workers)
	if err != nil {
		return "", err
	}
	id, _ := c.now()
	return id, f.replace(ctx, c)
}

// replace lets a worker leave in good order and starts it again.
func (f *injury) replace(ctx context.Context, c *child) error {
	err := c.stop(context.WithoutCancel(ctx), 40*time.Second)
	f.hold(ctx, 0, time.Second)
	return errors.Join(err, c.start(f.rand.IntN(2) == 0))
}

func rollingRestart(ctx context.Context, f *injury) (string, error) {
	var errs []error
	for _, c := range f.d.workers {
		errs = append(errs, f.replace(ctx, c))
		f.hold(ctx, 500*time.Millisecond, time.Second)
	}
	return "all", errors.Join(errs...)
}

// cutWorker drops packets from a worker to the servers, or in the other direction, or both.
func cutWorker(ctx context.Context, f *injury) (string, error) {
	c, err := f.pick(f.d.workers)
	if err != nil {
		return "", err
	}
	way := f.rand.IntN(3)
	for _, node := range f.d.nodes {
		err = errors.Join(err, f.cut(c.host, node.host, way))
	}
	f.hold(ctx, 2*time.Second, 20*time.Second)
	return c.name + [...]string{" both ways", " outwards", " inwards"}[way], errors.Join(err, f.join(c.host))
}

// netMu guards the table of cuts, which both sequences change.
var netMu sync.Mutex

func (f *injury) cut(a, b *host, way int) (err error) {
	netMu.Lock()
	defer netMu.Unlock()
	if way != 2 {
		err = a.cut(b)
	}
	if way != 1 {
		err = errors.Join(err, b.cut(a))
	}
	return err
}

// join ends the cuts of a host.
func (f *injury) join(h *host) error {
	netMu.Lock()
	defer netMu.Unlock()
	return f.d.net.heal(h)
}
