package test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/program"
	"github.com/settlehq/settle/program/star"
	"github.com/settlehq/settle/worker"
)

const (
	upgradeNodes  = 50
	upgradeSpaces = 12
	upgradeWindow = 4 // events of a space that wait for their receipts at a time
)

// edition returns a version of a program that numbers its events, refuses events out of order, and
// derives fifty documents, all of which an effect reads. The factor is part of the code of one node.
func edition(name string, factors map[int]int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `
count = cell("count", {"n": 0})
base = cell("base", {"v": 1})

def add(e):
    if e.n != count.n + 1:
        fail("event %%d behind %%d" %% (e.n, count.n))
    count.n = e.n
    return {"n": e.n, "edition": %q}

def look(e):
    return %q

handle("add", add, payload = {"n": int})
handle("look", look)
`, name, name)
	for i := range upgradeNodes {
		fmt.Fprintf(&b, "\ndef node_%[1]d():\n    return base.v * %[2]d\n\ncompute(\"node_%[1]d\", node_%[1]d)\n", i, 1000*factors[i]+i)
	}
	b.WriteString("\ndocs = [")
	for i := range upgradeNodes {
		fmt.Fprintf(&b, "doc(\"node_%d\"), ", i)
	}
	b.WriteString("]\n\ndef all():\n    return [d for d in docs if d]\n\neffect(\"all\", all)\n")
	return b.String()
}

// lateBus is the bus of a worker whose deployments a test can delay.
type lateBus struct {
	*bus.Bus
	mu sync.Mutex // held while deployments are delayed
}

func (b *lateBus) FollowRecords(ctx context.Context, under string, deliver func(model.Record), ready func()) error {
	return b.Bus.FollowRecords(ctx, under, func(r model.Record) {
		b.mu.Lock()
		defer b.mu.Unlock()
		deliver(r)
	}, ready)
}

// upgrade is a fleet under load whose program is replaced.
type upgrade struct {
	t       *testing.T
	d       *deployment
	late    *lateBus
	workers map[string]*worker.Worker
	spaces  []string
	isLate  map[string]bool // spaces of the late worker

	enough  chan struct{}
	load    sync.WaitGroup
	handled atomic.Int64
	mu      sync.Mutex
	story   map[string][]string // the editions that handled a space's events, in order
	counts  map[string]int      // how many of a space's events were handled
}

// While events arrive continuously, a version with two of fifty nodes changed is deployed (one worker learns of it
// late), then a canary, which is rolled back. Every event is handled once and in order, each space runs the
// editions in the order of their deployment, and only nodes whose code has changed run again.
func TestUpgrade_RollingUnderLoadLosesNothingAndRunsOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	u := startUpgrade(t)
	one := u.publish(edition("one", nil))
	u.decide(program.Choice{Target: one})
	u.begin()
	u.untilEdition("one", u.spaces...)
	u.goOn() // each edition handles something in each of its spaces

	u.late.mu.Lock()
	two := u.publish(edition("two", map[int]int{3: 1, 4: 1}))
	u.decide(program.Choice{Target: two})
	punctual, late := u.split()
	u.untilEdition("two", punctual...)
	u.goOn()
	u.wantEdition("one", late...) // several versions live at once
	u.late.mu.Unlock()
	u.untilEdition("two", late...)
	u.goOn()

	three := u.publish(edition("three", map[int]int{3: 1, 4: 1, 7: 1}))
	const percent = 50
	u.decide(program.Choice{Target: two, Canary: &program.Canary{Version: three.Version, Percent: percent}})
	var canaries, others []string
	for _, s := range u.spaces {
		if program.Share("upgrade", s) < percent {
			canaries = append(canaries, s)
		} else {
			others = append(others, s)
		}
	}
	if len(canaries) == 0 || len(others) == 0 {
		t.Fatalf("canaries %v, others %v: the test shows nothing", canaries, others)
	}
	u.untilEdition("three", canaries...)
	u.goOn()
	u.wantEdition("two", others...)

	u.decide(program.Choice{Target: two}) // rolled back
	u.untilEdition("two", canaries...)
	u.goOn()
	u.end()

	for _, s := range u.spaces {
		want := "one two"
		runs := map[int]uint64{3: 2, 4: 2}
		if program.Share("upgrade", s) < percent {
			want = "one two three two"
			runs[7] = 3
		}
		if got := strings.Join(u.story[s], " "); got != want {
			t.Errorf("space %s was handled by %s, want %s", s, got, want)
		}
		u.wantRuns(s, runs)
	}
	t.Logf("%d events in %d spaces", u.handled.Load(), len(u.spaces))
}

func startUpgrade(t *testing.T) *upgrade {
	d := deploy(t, settle.Config{
		Hosted: true, Workers: -1, Bus: bus.Config{Partitions: 6},
		Options: worker.Options{MemberTTL: patience}, // a slow machine must not look like a dead worker
	})
	u := &upgrade{t: t, d: d, workers: map[string]*worker.Worker{}, enough: make(chan struct{}), story: map[string][]string{}, counts: map[string]int{}, isLate: map[string]bool{}}
	for i := range upgradeSpaces {
		u.spaces = append(u.spaces, fmt.Sprintf("s%d", i))
	}
	for _, id := range []string{"w1", "w2", "late"} {
		b := connect(t, d)
		t.Cleanup(b.Close)
		var of port.Bus = b
		if id == "late" {
			u.late = &lateBus{Bus: b}
			of = u.late
		}
		w, err := settle.StartWorker(testContext(t), of, settle.WorkerConfig{
			ID: id, Hosted: true, Options: worker.Options{Heartbeat: d.cfg.Heartbeat, MemberTTL: d.cfg.MemberTTL, Checkpoint: d.cfg.Checkpoint},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { stop(t, w.Stop) })
		u.workers[id] = w
	}
	until(t, func() bool { // each worker has some partitions
		for _, w := range u.workers { // any order: each is asked
			if len(serving(w)) != 2 {
				return false
			}
		}
		return true
	})
	mine := serving(u.workers["late"])
	for _, s := range u.spaces {
		u.isLate[s] = mine[model.PartitionOf(s, 6)]
	}
	return u
}

func serving(w *worker.Worker) map[int]bool {
	is := map[int]bool{}
	for _, p := range w.Figures().Partitions {
		if p.State == "serving" {
			is[p.Partition] = true
		}
	}
	return is
}

// split separates the spaces of the worker that receives deployments late from the others.
func (u *upgrade) split() (punctual, late []string) {
	for _, s := range u.spaces {
		if u.isLate[s] {
			late = append(late, s)
		} else {
			punctual = append(punctual, s)
		}
	}
	if len(punctual) == 0 || len(late) == 0 {
		u.t.Fatalf("punctual %v, late %v: the test shows nothing", punctual, late)
	}
	return punctual, late
}

func (u *upgrade) publish(text string) program.Target {
	u.t.Helper()
	s := program.Source{Name: "upgrade", Entry: "upgrade.star", Files: map[string]string{"upgrade.star": text}}
	_, err := star.Compile(s, star.Options{})
	v, invalid := program.NewVersion(s, "test", "", time.Unix(0, 0))
	if err = errors.Join(err, invalid); err == nil {
		_, _, err = program.Publish(testContext(u.t), u.d.Bus(), v)
	}
	if err != nil {
		u.t.Fatal(err)
	}
	return v.Target()
}

func (u *upgrade) decide(c program.Choice) {
	u.t.Helper()
	c.At = time.Unix(1, 0)
	_, err := program.Decide(testContext(u.t), u.d.Bus(), "s*", func(program.Rule) (program.Choice, error) { return c, nil })
	if err != nil {
		u.t.Fatal(err)
	}
}

// begin starts the load: each space gets numbered events.
func (u *upgrade) begin() {
	for _, s := range u.spaces {
		u.load.Go(func() { u.feed(s) }) // ends with enough
	}
}

func (u *upgrade) feed(space string) {
	ctx := testContext(u.t)
	awaited := 0
	for n := 1; ; n++ {
		over := u.isOver()
		if !over {
			_, err := u.d.Client().Send(ctx, settle.Outgoing{Space: space, Stream: "add", ID: settle.ID(fmt.Sprintf("add-%d", n)), Payload: map[string]int{"n": n}})
			if err != nil {
				u.t.Errorf("send event %d to space %s: %v", n, space, err)
				return
			}
		}
		for ; awaited < n-1 && (over || awaited < n-upgradeWindow); awaited++ {
			if err := u.await(ctx, space, awaited+1); err != nil {
				u.t.Errorf("event %d of space %s: %v", awaited+1, space, err)
				return
			}
		}
		if over {
			return
		}
	}
}

func (u *upgrade) isOver() bool {
	select {
	case <-u.enough:
		return true
	default:
		return u.t.Failed()
	}
}

// await waits for the receipt of an event, and records which edition has handled it.
func (u *upgrade) await(ctx context.Context, space string, n int) error {
	rc, err := u.d.Client().Space(space).Await(ctx, "add", settle.ID(fmt.Sprintf("add-%d", n)))
	if err != nil {
		return err
	}
	is, _ := rc.Result.Get("n").AsInt()
	if rc.Outcome != model.Handled || is != int64(n) {
		return errors.New(string(rc.Outcome) + ": " + rc.Error + rc.Result.String())
	}
	by, _ := rc.Result.Get("edition").AsString()
	u.handled.Add(1)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.counts[space]++
	if s := u.story[space]; len(s) == 0 || s[len(s)-1] != by {
		u.story[space] = append(s, by)
	}
	return nil
}

// goOn waits until each space has handled more events than were in flight.
func (u *upgrade) goOn() {
	u.t.Helper()
	u.mu.Lock()
	before := maps.Clone(u.counts)
	u.mu.Unlock()
	until(u.t, func() bool {
		u.mu.Lock()
		defer u.mu.Unlock()
		for _, s := range u.spaces {
			if u.counts[s] <= before[s]+upgradeWindow {
				return u.t.Failed()
			}
		}
		return true
	})
}

func (u *upgrade) end() {
	close(u.enough)
	u.load.Wait()
}

func (u *upgrade) edition(space string) string {
	u.t.Helper()
	rc, err := u.d.Client().Call(testContext(u.t), settle.Outgoing{Space: space, Stream: "look", ID: settle.NewID()})
	if err != nil {
		u.t.Fatal(err)
	}
	is, _ := rc.Result.AsString()
	return is
}

func (u *upgrade) untilEdition(want string, spaces ...string) {
	u.t.Helper()
	for _, s := range spaces {
		until(u.t, func() bool { return u.edition(s) == want })
	}
}

func (u *upgrade) wantEdition(want string, spaces ...string) {
	u.t.Helper()
	for _, s := range spaces {
		if got := u.edition(s); got != want {
			u.t.Errorf("space %s runs %s, want %s", s, got, want)
		}
	}
}

// wantRuns checks how often each node of a space ran: once, except for the named ones.
func (u *upgrade) wantRuns(space string, named map[int]uint64) {
	u.t.Helper()
	want, got := map[string]uint64{}, map[string]uint64{}
	for i := range upgradeNodes {
		want[fmt.Sprintf("node_%d", i)] = max(1, named[i])
	}
	for _, w := range u.workers { // any order: sums
		for k, n := range w.Runs() { // any order: sums
			if k.Space == space && strings.HasPrefix(k.Node, "node_") {
				got[k.Node] += n
			}
		}
	}
	if !maps.Equal(got, want) {
		u.t.Errorf("space %s: runs %v, want %v", space, got, want)
	}
}
