package worker

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker/host"
)

// Whatever runs, no more nodes are counted than there is room for, one that takes more than its share of all time is among them, and a count is never
// larger than what ran.
func TestProfile_KeepsWhatTakesMostTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c counts
		total, all := map[string]time.Duration{}, time.Duration(0)
		runs := map[string]uint64{}
		heavy := rapid.IntRange(0, 20).Draw(t, "heavy")
		for n := range rapid.IntRange(1, 4*profiled).Draw(t, "runs") {
			id, took := fmt.Sprint("n", n), time.Duration(rapid.IntRange(1, 20).Draw(t, "took"))
			if heavy > 0 && n%heavy == 0 {
				id, took = "heavy", 100
			}
			c.add(&Usage{Space: "s", Node: id, Runs: 1, Time: took, Last: took})
			total[id] += took
			runs[id]++
			all += took
		}
		if len(c.heap) > profiled || len(c.by) != len(c.heap) {
			t.Fatalf("%d counts, %d of them in the index; there is room for %d", len(c.heap), len(c.by), profiled)
		}
		for id, took := range total { // any order: each on its own
			u := c.by[usageKey{space: "s", node: id}]
			switch {
			case u == nil && took > all/profiled:
				t.Fatalf("node %s took %d of %d, and is not counted", id, took, all)
			case u != nil && (u.Time > took || u.Runs > runs[id] || u.weight < u.Time):
				t.Fatalf("node %s took %d in %d runs, and is counted with %+v", id, took, runs[id], u)
			}
		}
		most := c.most(10)
		for i := 1; i < len(most); i++ {
			if most[i].Time > most[i-1].Time {
				t.Fatalf("%+v is not sorted", most)
			}
		}
	})
}

// A node that runs often and briefly is counted, although each node that runs once takes longer than one of its runs.
func TestProfile_ManyShortRunsAreNotLost(t *testing.T) {
	var c counts
	for n := range 9 * profiled {
		c.add(&Usage{Space: "s", Node: fmt.Sprint("n", n), Runs: 1, Time: 2})
		if n < profiled {
			continue // there is room
		}
		c.add(&Usage{Space: "s", Node: "often", Runs: 1, Time: 1})
	}
	c.add(&Usage{Space: "s", Node: "last", Runs: 1, Time: 2})
	if most := c.most(1); most[0].Node != "often" {
		t.Errorf("the node with most time is %+v", most[0])
	}
}

// A worker measures for a minute after a question, and then no more.
func TestProfile_EndsAMinuteAfterTheLastQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &profile{}
		u := []Usage{{Space: "s", Node: "n", Runs: 1, Time: 1}}
		p.add(u)
		if got := p.read(time.Now(), 10); !got.Since.IsZero() || len(got.Nodes) != 0 {
			t.Errorf("before the first question %+v was measured", got)
		}
		p.add(u)
		time.Sleep(profileFor - time.Second)
		if got := p.read(time.Now(), 10); len(got.Nodes) != 1 || len(got.Spaces) != 1 || got.Since.IsZero() {
			t.Errorf("%+v", got)
		}
		time.Sleep(profileFor - time.Second)
		if !p.on.Load() {
			t.Error("a question does not keep the measurement on")
		}
		time.Sleep(2 * time.Second)
		if p.on.Load() {
			t.Error("it is measured for longer than a minute after the last question")
		}
	})
}

// The time of a run is without that of the runs that it has pulled, and a run that has no end is passed over.
func TestProfile_ARunDoesNotCountWhatItHasPulled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &profile{}
		p.on.Store(true)
		c := runClock{profile: p, space: "s"}
		c.begin("add", true)
		time.Sleep(time.Millisecond)
		c.begin("lost", false)
		c.begin("sum", false)
		time.Sleep(5 * time.Millisecond)
		c.ran(&space.RunInfo{Node: "sum", Kind: space.Computation})
		c.handled(&space.HandleInfo{Event: &model.Event{Stream: "add"}, Err: errors.New("no")})
		if len(c.done) != 2 {
			t.Fatalf("%+v", c.done)
		}
		if sum := c.done[0]; sum.Time != 5*time.Millisecond || sum.Wasted != 1 || sum.Errors != 0 {
			t.Errorf("the inner run: %+v", sum)
		}
		if add := c.done[1]; add.Errors != 1 || !add.Handler {
			t.Errorf("the handler: %+v", add)
		}
		c.begin("outer", false)
		c.begin("inner", false)
		time.Sleep(time.Millisecond)
		c.ran(&space.RunInfo{Node: "inner", Kind: space.Computation, Changed: true})
		time.Sleep(time.Second)
		c.ran(&space.RunInfo{Node: "outer", Kind: space.Computation, Changed: true})
		if outer := c.done[3]; outer.Time != time.Second || outer.Wasted != 0 {
			t.Errorf("the outer run: %+v", outer)
		}
	})
}

// A handler that reads what follows from its own writes calls the functions of nodes, and it is these that take the time: of such calls and runs alike, a
// worker that measures counts the time for the node.
func TestProfile_AHandlerDoesNotCountWhatItReadsOfItsOwnWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &profile{}
		p.on.Store(true)
		c := &core{of: &host.Access{Space: "s"}, engine: &engine{profile: p, cfg: &Config{}}, clock: runClock{profile: p, space: "s"}}
		trace := c.trace()
		c.clock.begin("add", true)
		time.Sleep(time.Millisecond)
		trace.PreviewBegan("sum")
		time.Sleep(5 * time.Millisecond)
		trace.PreviewEnd("sum")
		c.clock.handled(&space.HandleInfo{Event: &model.Event{Stream: "add"}, Receipt: &model.Receipt{Outcome: model.Handled}})
		if len(c.clock.done) != 2 {
			t.Fatalf("%+v", c.clock.done)
		}
		if sum, add := c.clock.done[0], c.clock.done[1]; sum.Node != "sum" || sum.Handler || sum.Time != 5*time.Millisecond || sum.Wasted != 0 || add.Time != time.Millisecond {
			t.Errorf("the node %+v, the handler %+v", sum, add)
		}
	})
}

// What a run costs that is not measured, and one that is.
func BenchmarkProfile(b *testing.B) {
	for name, on := range map[string]bool{"off": false, "on": true} { // any order: each on its own
		b.Run(name, func(b *testing.B) {
			p := &profile{}
			p.on.Store(on)
			c := runClock{profile: p, space: "s"}
			i := space.RunInfo{Node: "sum", Kind: space.Computation, Changed: true, Writes: []model.Write{{Doc: "sum", Value: model.Int(17)}}}
			for b.Loop() {
				c.begin("sum", false)
				c.ran(&i)
				c.flush()
			}
		})
	}
}
