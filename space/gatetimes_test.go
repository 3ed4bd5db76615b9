package space

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
)

// gatedTwin is a space with a debounced and a throttled effect over the document in.
type gatedTwin struct {
	*host
	saved memory
	// ran has the times at which the effects have run, since zeroHour.
	ran map[string][]time.Duration
}

func newGatedTwin(t *testing.T) *gatedTwin {
	g := &gatedTwin{saved: memory{}, ran: map[string][]time.Duration{}}
	p := newProgram(t).set()
	add := func(id string, gate GateSpec) {
		gate.NoAutoDebounce = true
		p = p.add(NodeSpec{ID: id, Kind: Effect, Gate: gate, Run: func(tx *Tx) (model.Value, error) {
			tx.Get("in")
			g.ran[id] = append(g.ran[id], g.clock())
			return model.Value{}, nil
		}})
	}
	add("debounced", GateSpec{Debounce: 10 * time.Second, MaxWait: 25 * time.Second})
	add("throttled", GateSpec{Throttle: time.Minute})
	w := newWorld(t)
	g.host = w.host("w1", p.Program)
	g.wall = zeroHour
	g.takeOver()
	g.run()
	g.pass(time.Hour) // the first runs are over
	g.ran = map[string][]time.Duration{}
	return g
}

func (g *gatedTwin) clock() time.Duration {
	return time.Duration(g.wall-zeroHour)*time.Millisecond - time.Hour
}

// pass lets time pass, second by second.
func (g *gatedTwin) pass(d time.Duration) {
	g.t.Helper()
	step := time.Second
	if d >= time.Hour {
		step = time.Minute
	}
	for ; d > 0; d -= step {
		g.now += step
		g.wall += step.Milliseconds()
		g.run()
	}
}

func (g *gatedTwin) write(v int) {
	g.t.Helper()
	g.w.send(home, "set", fmt.Sprint("e", v, g.wall), map[string]any{"in": v})
	g.run()
}

// leave ends the process, as a crash or a takeover does; saved is whether its observations are saved before that. The
// next one begins its clock at 0.
func (g *gatedTwin) leave(saved bool, after time.Duration) {
	g.t.Helper()
	if saved {
		g.saved.save(g.t, g.host)
		g.checkpoint()
	}
	g.wall += after.Milliseconds()
	g.now = 0
	g.load()
	g.core.Rehydrate(g.saved.list())
	g.takeOver()
	g.run()
}

func (g *gatedTwin) want(node string, at ...time.Duration) {
	g.t.Helper()
	if !slices.Equal(g.ran[node], at) {
		g.t.Errorf("%s ran at %v, want %v", node, g.ran[node], at)
	}
}

// A debounce and a throttle count through an unloading: what was saved is exact.
func TestGateTimes_HoldOverAnUnloading(t *testing.T) {
	g := newGatedTwin(t)
	g.write(1) // at 0 the throttled one runs, and the debounced one waits
	g.pass(4 * time.Second)
	g.write(2)
	g.pass(time.Second)
	g.leave(true, 2*time.Second)
	g.pass(2 * time.Minute)
	g.want("debounced", 14*time.Second)
	g.want("throttled", 0, time.Minute)
}

// The same if the gates open while the space is in no process: the runs are owed at once.
func TestGateTimes_AreOverWhenTheyEndInBetween(t *testing.T) {
	g := newGatedTwin(t)
	g.write(1)
	g.pass(time.Second)
	g.write(2)
	g.leave(true, 10*time.Minute)
	at := 10*time.Minute + time.Second
	g.want("debounced", at)
	g.want("throttled", 0, at)
}

// A process that dies has saved what it knew before the change. The run comes later then, and never earlier.
func TestGateTimes_HoldOverACrash(t *testing.T) {
	g := newGatedTwin(t)
	g.saved.save(t, g.host)
	g.write(1)
	g.pass(3 * time.Second)
	g.leave(false, time.Second)
	g.pass(2 * time.Minute)
	g.want("debounced", 14*time.Second) // ten seconds after it was loaded
	g.want("throttled", 0, time.Minute+4*time.Second)
}

// Changes without end, and processes without end, cannot hold a debounced node beyond its longest wait.
func TestGateTimes_TheLongestWaitHoldsOverUnloadings(t *testing.T) {
	g := newGatedTwin(t)
	for i := range 10 {
		g.write(i)
		g.pass(5 * time.Second)
		g.leave(true, 0)
	}
	if ran := g.ran["debounced"]; len(ran) == 0 || ran[0] != 25*time.Second {
		t.Errorf("the debounced node ran at %v, want 25s first", ran)
	}
}

// Times that are not believable count as now.
func TestGateTimes_FromTheFutureAreNow(t *testing.T) {
	g := newGatedTwin(t)
	g.write(1)
	g.saved.save(t, g.host)
	for id, o := range g.saved {
		if o.Times != nil {
			o.Times = &GateTimes{Ran: 1 << 62, First: -5, Changed: 1 << 62}
			g.saved[id] = o
		}
	}
	g.checkpoint()
	g.leave(false, 0)
	g.pass(2 * time.Minute)
	g.want("debounced", 10*time.Second)
	g.want("throttled", 0)
}

// An earlier version does not know that a saved node may be due, and would take one that waits at its gate for clean: the change would be lost.
func TestGateTimes_AnEarlierVersionRunsWhatWasHeld(t *testing.T) {
	g := newGatedTwin(t)
	g.write(1)
	g.pass(time.Second)
	g.saved.save(t, g.host)
	for id, o := range g.saved { // as that reads it
		o.Due, o.Times = false, nil
		for i := range o.Reads {
			o.Reads[i].Changed = false
		}
		g.saved[id] = o
	}
	g.checkpoint()
	g.leave(false, 0)
	g.pass(time.Minute)
	if len(g.ran["debounced"]) == 0 {
		t.Error("the debounced node did not run")
	}
}
