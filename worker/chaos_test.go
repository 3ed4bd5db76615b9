package worker_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/raced"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/replica"
	"github.com/settlehq/settle/worker"
)

// TestChaos runs small fleets on a bus that loses, repeats and delays requests, and kills processes in the
// middle of them. Every event still takes effect once and in order, sends of handlers arrive once and in
// order, the documents are the result of the events, and at no time would a new owner begin to read the lane
// after an event that is not handled and saved.
//
// The seed decides which faults hit which process; the scheduler interleaves goroutines, so a failing seed
// may take some repetitions (-count) to fail again.
func TestChaos(t *testing.T) {
	var met happened
	for seed := range uint64(raced.Fewer(30, 2)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newChaos(t, seed, &met).run() })
		})
	}
	for what, n := range map[string]int64{
		"crashes": met.crashes.Load(), "refused appends": met.refused.Load(), "late requests": met.late.Load(), "takeovers": met.takeovers.Load(),
	} {
		if n == 0 {
			t.Errorf("no %s, which the run needs", what)
		}
	}
}

// happened counts what a run must include.
type happened struct{ crashes, refused, late, takeovers atomic.Int64 }

type chaos struct {
	*world
	met    *happened
	mu     sync.Mutex // guards rng, which the hooks of several clients use
	rng    *rand.Rand
	spaces []string
	lanes  map[string][]string // the ids sent to each space, in order
	want   map[string]int      // the expected n per space
	quiet  atomic.Bool         // no more faults
	live   []*process
	watch  *watched
}

func newChaos(t *testing.T, seed uint64, met *happened) *chaos {
	c := &chaos{
		world: newWorld(t, 2), met: met, rng: rand.New(rand.NewPCG(seed, 7)),
		lanes: map[string][]string{}, want: map[string]int{},
	}
	c.spaces = append(worldtest.SpacesIn(0, 2, 2), worldtest.SpacesIn(1, 2, 2)...)
	return c
}

func (c *chaos) draw(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rng.IntN(n)
}

func (c *chaos) run() {
	c.Coordinator()
	c.watch = c.world.watch(c.spaces[0], "double")
	c.world.watch(c.spaces[1], "abroad") // watched from any space
	for range 6 {
		c.join()
		for range 1 + c.draw(3) {
			c.sendSome()
			c.Pass(time.Duration(c.draw(700)) * time.Millisecond)
		}
		c.checkPositions()
		c.leave()
		c.checkPositions()
	}
	c.calm()
	c.verify()
}

// join starts a worker, sometimes one that believes itself alone.
func (c *chaos) join() {
	cfg := worker.Config{ID: fmt.Sprintf("w%d", watchers.next()), Options: worker.Options{Checkpoint: time.Duration(20+c.draw(300)) * time.Millisecond}}
	cfg.LaneLimit = []int{0, 3}[c.draw(2)]
	b := c.Server.Connect(cfg.ID)
	b.Inject(c.faults(b))
	var wrap func(*membus.Bus) port.Bus
	if c.draw(2) == 0 {
		wrap = hermits
	}
	c.live = append(c.live, c.start(cfg, b, wrap))
}

// faults decides the fate of a worker's requests. Some are delayed, and some so long that the client has
// retried.
func (c *chaos) faults(b *membus.Bus) membus.Hook {
	return func(op membus.Op) membus.Fate {
		if op.Label == "save-position" {
			c.checkPositions()
		}
		if c.quiet.Load() || op.Try > 3 {
			return membus.Deliver
		}
		switch c.draw(40) {
		case 0:
			return membus.DropRequest
		case 1, 2:
			return membus.DropAck
		case 3:
			return membus.Duplicate
		case 4:
			time.AfterFunc(time.Duration(c.draw(300))*time.Millisecond, b.Release)
			return membus.Delay
		case 5:
			if op.Try == 1 {
				c.met.late.Add(1)
				time.AfterFunc(time.Duration(c.draw(3000))*time.Millisecond, b.Release)
				return membus.Late
			}
		}
		return membus.Deliver
	}
}

// leave ends a worker: at its next request, at once, or in good order. Sometimes no worker leaves.
func (c *chaos) leave() {
	if len(c.live) == 0 {
		return
	}
	i := c.draw(len(c.live))
	p := c.live[i]
	switch c.draw(4) {
	case 0:
		return
	case 1:
		p.Shutdown()
	default:
		var dead atomic.Bool
		fate := []membus.Fate{membus.DropRequest, membus.DropAck}[c.draw(2)]
		label := []string{"append", "save", "save-position", "load", "read-log", "read-lane"}[c.draw(6)]
		p.Bus.Inject(func(op membus.Op) membus.Fate {
			if op.Label == label && !dead.Swap(true) {
				p.Crash()
				return fate
			}
			return membus.Deliver
		})
		c.sendSome()
		c.Pass(time.Duration(c.draw(400)) * time.Millisecond)
		p.Crash()
		c.met.crashes.Add(1)
	}
	counts := p.Counts()
	c.met.refused.Add(int64(counts.Refused))
	c.live = slices.Delete(c.live, i, i+1)
}

func (c *chaos) sendSome() {
	for range c.draw(12) {
		to := c.spaces[c.draw(len(c.spaces))]
		id := fmt.Sprintf("e%d", len(c.lanes[to])+1)
		switch c.draw(8) {
		case 0, 1:
			c.Send(to, "add", id)
			c.want[to]++
		case 2:
			links := c.draw(4)
			c.Send(to, "chain", id, fmt.Sprint(links))
			c.want[to] += links + 1
		case 3:
			other := c.spaces[c.draw(len(c.spaces))]
			c.Send(to, "forward", id, fmt.Sprintf("%q", other))
			c.want[to]++
			c.want[other]++
		case 4:
			c.Send(to, "get", id)
		case 5: // waits until the other space's document is here
			c.Send(to, "read", id, fmt.Sprintf("%q", c.spaces[c.draw(len(c.spaces))]))
		case 6:
			c.Send(to, "look", id, fmt.Sprintf("%q", c.spaces[c.draw(len(c.spaces))]))
		default:
			c.Send(to, "fail", id)
		}
		c.lanes[to] = append(c.lanes[to], id)
	}
}

// calm ends all faults and lets one worker finish.
func (c *chaos) calm() {
	c.quiet.Store(true)
	for _, p := range c.live {
		c.met.refused.Add(int64(p.Counts().Refused))
		p.Crash()
	}
	c.live = nil
	last := c.worker("last")
	c.Eventually("all events are handled and saved", func() bool {
		return c.Server.LoadPosition(0, "lane") == c.Server.LaneEnd(0) && c.Server.LoadPosition(1, "lane") == c.Server.LaneEnd(1)
	})
	c.Pass(3 * time.Second)
	last.Shutdown()
	c.checkPositions()
}

// checkPositions checks what a new owner relies on: the saved state reflects everything in the lane up to the
// saved position.
func (c *chaos) checkPositions() {
	for p := range 2 {
		position := c.Server.LoadPosition(p, "lane") // before the states, which only grow
		for _, s := range c.spaces {
			if model.PartitionOf(s, 2) != p {
				continue
			}
			r, err := replica.Load(s, c.Server.LoadState(s))
			if err != nil {
				c.Error(err)
				return
			}
			for _, m := range c.Server.ReadLane(s, 0, 1<<20) {
				if m.Seq <= position && m.Seq > r.LaneDone() {
					c.Errorf("the position of partition %d is %d, but space %s has handled and saved only the events up to %d", p, position, s, r.LaneDone())
					return
				}
			}
		}
	}
}

// checkSaved compares the STATE bucket with the log. Takeovers may follow the mark, since they change no
// document. So may documents that were computed for a watcher: no event depends on them, so if the owner dies
// before it saves them, the bucket has the older value until the space is loaded again. Clients read the log
// as well.
func (c *chaos) checkSaved(s string) {
	log := replica.New(s)
	for _, e := range c.Server.ReadLog(s, 0, 1<<30) {
		commit, err := model.DecodeCommit(e.Data)
		if err == nil {
			_, err = log.Apply(e.Seq, commit)
		}
		if err != nil {
			c.Error(err)
			return
		}
	}
	for _, id := range log.DocIDs() {
		if id == "double" || id == "abroad" {
			continue
		}
		saved, _ := c.Server.Saved(s, id)
		if want := log.Doc(id).Value.String(); string(saved.Data) != want {
			c.Errorf("space %s: the bucket has %s for %s, the log %s", s, saved.Data, id, want)
		}
	}
}

func (c *chaos) verify() {
	for _, s := range c.spaces {
		var heads []string
		positions := map[string]uint64{}
		seen := map[string]bool{}
		for _, rc := range c.Receipts(s) {
			key := rc.Event
			if seen[key] {
				c.Errorf("event %s of %s has two receipts", rc.Event, s)
			}
			seen[key] = true
			switch {
			case rc.Pos > 0:
				origin, _ := model.OriginOf(rc.Event)
				if positions[origin.Space]++; positions[origin.Space] != rc.Pos {
					c.Errorf("%s handled position %d of %s as number %d", s, rc.Pos, origin.Space, positions[origin.Space])
				}
			case rc.Lane > 0:
				heads = append(heads, rc.Event)
			}
		}
		if !slices.Equal(heads, c.lanes[s]) {
			c.Errorf("space %s handled %v, the lane has %v", s, heads, c.lanes[s])
		}
		n := c.Doc(s, "n")
		if want := fmt.Sprint(c.want[s]); n != want && !(n == "absent" && want == "0") {
			c.Errorf("space %s: n is %s, want %s", s, n, want)
		}
		c.checkSaved(s)
		c.met.takeovers.Add(int64(len(c.Takeovers(s))))
	}
	if got, want := c.watch.last(), fmt.Sprint(2*c.want[c.spaces[0]]); got != want {
		c.Errorf("the watcher saw %s last, want %s", got, want)
	}
	if _, revisions := c.watch.seen(); !slices.IsSorted(revisions) {
		c.Errorf("the watcher saw revisions %v", revisions)
	}
}
