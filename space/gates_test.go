package space

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
)

// The oracle of this test implements the definition of a gate without the data structures of the
// implementation: no heap, no queue, no counters. It observes changes and runs, visits all nodes every time,
// and computes when each may run.

// clocked is the oracle's view of a node.
type clocked struct {
	id     string
	effect bool
	output string
	reads  []string // what its function may read
	spec   GateSpec
	gate   GateSpec
	took   []time.Duration
	fails  int // number of next runs that return a transient error

	present bool
	made    bool // made by the maker, and not known to have run yet
	ran     bool
	ranAt   time.Duration
	noted   bool // the time of its last run was recorded, see SetThrottle
	due     bool
	waits   bool          // a debounce has begun since the last run
	changed time.Duration // when the debounce was last restarted
	first   time.Duration // when it first began
	ungated bool          // one of its runs was undone
	backoff time.Duration
	read    map[string]bool // the reads of the last completed run
	running map[string]bool // the reads of the run under way, nil if there is none
}

// debounce returns the debounce in force.
func (n *clocked) debounce() time.Duration {
	if n.gate.Debounce > 0 || !n.effect || n.gate.NoAutoDebounce || len(n.took) < 3 {
		return n.gate.Debounce
	}
	var sum time.Duration
	for _, d := range n.took {
		sum += d
	}
	if sum < time.Duration(len(n.took))*50*time.Millisecond {
		return 0
	}
	return 100 * time.Millisecond
}

// eligible returns the earliest time at which the node may run, by definition.
func (n *clocked) eligible() time.Duration {
	at := n.backoff
	if n.ungated {
		return at
	}
	if d := n.debounce(); d > 0 && n.waits {
		at = max(at, min(n.changed+d, n.first+n.longest(d)))
	}
	if n.gate.Throttle > 0 && n.ran {
		at = max(at, n.ranAt+n.gate.Throttle)
	}
	return at
}

// longest returns the longest time for which a debounce holds the node.
func (n *clocked) longest(d time.Duration) time.Duration {
	switch w := n.gate.MaxWait; {
	case w < 0:
		return time.Hour * 1e4
	case w == 0:
		return 10 * d
	default:
		return w
	}
}

// clockwork is a space under test, and the oracle.
type clockwork struct {
	t     *rapid.T
	h     *host
	nodes map[string]*clocked
	// demanded is what the event at the head of the lane waits for.
	demanded map[string]bool
	undone   []string // runs that a refusal would undo
	events   int
	settled  time.Duration // when Settle was last called
	// refusing withholds the answer to an append.
	refusing bool
}

func (c *clockwork) sorted() []*clocked {
	var out []*clocked
	for _, id := range slices.Sorted(maps.Keys(c.nodes)) {
		if n := c.nodes[id]; n.present {
			out = append(out, n)
		}
	}
	return out
}

func (c *clockwork) writer(doc string) *clocked {
	for _, n := range c.sorted() {
		if n.output == doc && doc != "" {
			return n
		}
	}
	return nil
}

// live computes the live nodes, going upstream from every node that is live regardless of readers.
func (c *clockwork) live() map[string]bool {
	live := map[string]bool{}
	var mark func(n *clocked)
	mark = func(n *clocked) {
		if n == nil || live[n.id] {
			return
		}
		live[n.id] = true
		for _, reads := range []map[string]bool{n.read, n.running} {
			for doc := range reads { // any order: a set
				mark(c.writer(doc))
			}
		}
	}
	for _, n := range c.sorted() {
		if n.effect || n.made || c.demanded[n.id] {
			mark(n)
		}
	}
	return live
}

// invalidate restarts the debounce of a node.
func (c *clockwork) invalidate(n *clocked) {
	n.due = true
	c.wait(n)
}

func (c *clockwork) wait(n *clocked) {
	if n.debounce() > 0 {
		if !n.waits {
			n.first = c.h.now
		}
		n.waits, n.changed = true, c.h.now
	}
}

func (c *clockwork) hooks(trace *Trace) {
	trace.Changed = func(i ChangeInfo) {
		for _, n := range c.sorted() {
			if n.ran && n.read[i.Doc] && n.id != i.Node {
				c.invalidate(n)
			}
		}
	}
	trace.RunStart = c.runStart
	trace.RunEnd = c.runEnd
	trace.Gated = func(i GateInfo) {
		n := c.nodes[i.Node]
		n.backoff = c.h.now + ledger.Doubled(250*time.Millisecond, 2*time.Second, i.Streak)
		if i.Until != n.backoff {
			c.t.Errorf("%s is gated until %v for its streak of %d at %v", i.Node, i.Until, i.Streak, c.h.now)
		}
	}
	trace.HandleEnd = func(i HandleInfo) {
		if i.Receipt == nil {
			c.demanded[c.writer(i.Waits).id] = true
			return
		}
		c.demanded = map[string]bool{}
		if i.Event.Stream == "read" {
			doc, _ := i.Event.Payload.AsString()
			c.checkFresh(i.Event.ID, doc, map[string]bool{})
		}
	}
	trace.PassEnd = func(PassInfo) {
		for _, n := range c.nodes { // any order: each is independent
			n.made = n.made && !n.ran
		}
	}
}

func (c *clockwork) runStart(i RunInfo) {
	n := c.nodes[i.Node]
	switch {
	case !n.present:
		c.t.Fatalf("%s runs, although it was removed", n.id)
	case !c.live()[n.id]:
		c.t.Fatalf("%s runs at %v, although it is not needed", n.id, c.h.now)
	case n.ran && !n.due:
		c.t.Fatalf("%s runs at %v, although nothing that it read has changed", n.id, c.h.now)
	case n.eligible() > c.h.now:
		c.t.Fatalf("%s runs at %v, although it may not run before %v", n.id, c.h.now, n.eligible())
	}
	n.due, n.waits, n.ungated, n.ranAt, n.running = false, false, false, c.h.now, map[string]bool{}
	n.noted = c.h.core.graph.byID[n.id].more != nil
}

func (c *clockwork) runEnd(i RunInfo) {
	n := c.nodes[i.Node]
	n.ran, n.read, n.running = true, n.running, nil
	if i.Err != nil {
		n.due = true // at once, as far as the other gates permit
	}
	if i.Tx > 0 && i.Changed {
		c.undone = append(c.undone, n.id)
	}
	if n.id == "maker" {
		c.makeChildren()
	}
}

// makeChildren returns the result of the maker's run.
func (c *clockwork) makeChildren() {
	mask := num(c.h.core.Value("kids"))
	for i, id := range []string{"kid0", "kid1"} {
		n := c.nodes[id]
		spec := kidGate(mask)
		switch wanted := mask>>i&1 == 1; {
		case !wanted:
			n.present = false
		case !n.present:
			c.arrive(n, spec)
			n.made = true
			c.wait(n)
		case n.spec != spec:
			c.setGate(n, func(g *GateSpec) { *g = spec })
			n.spec = spec
		}
	}
}

func kidGate(mask int64) GateSpec {
	if mask&4 != 0 {
		return GateSpec{Debounce: 40 * time.Millisecond}
	}
	return GateSpec{Throttle: 70 * time.Millisecond}
}

// arrive records that a node was registered. Its statistics outlast its absence.
func (c *clockwork) arrive(n *clocked, spec GateSpec) {
	*n = clocked{id: n.id, effect: n.effect, output: n.output, reads: n.reads, took: n.took, spec: spec, gate: spec, present: true, due: true}
	if c.live()[n.id] {
		c.wait(n)
	}
}

// setGate changes a gate.
func (c *clockwork) setGate(n *clocked, change func(*GateSpec)) {
	if n.ran && !n.noted {
		n.ranAt, n.noted = c.settled, true
	}
	change(&n.gate)
}

// checkFresh checks that a handler has read nothing that was out of date, except values of the circle, for
// which events wait only for a limited time.
func (c *clockwork) checkFresh(event, doc string, seen map[string]bool) {
	n := c.writer(doc)
	if n == nil || seen[n.id] || n.id == "ping" || n.id == "pong" {
		return
	}
	seen[n.id] = true
	if n.due {
		c.t.Fatalf("%s was handled at %v, although %s is not up to date", event, c.h.now, n.id)
	}
	for doc := range n.read { // any order: all are visited
		c.checkFresh(event, doc, seen)
	}
}

// settle does what the core requests at this time, and checks that nothing else could be done.
func (c *clockwork) settle() {
	h := c.h
	for range 1000 {
		h.deliver()
		c.settled = h.now
		h.settle()
		if h.inFlight != nil && !c.refusing {
			h.decide()
			c.undone = nil
			continue
		}
		if !h.last.More {
			c.check()
			return
		}
	}
	c.t.Fatalf("Ready.More without end")
}

// check checks that every node that may run has run, and that the wake is the time when the next one may.
func (c *clockwork) check() {
	now, core := c.h.now, c.h.core
	wake, held, awaited, backedOff := time.Duration(0), 0, false, false
	live := c.live()
	for _, n := range c.sorted() {
		if !live[n.id] || !n.due {
			continue
		}
		at := n.eligible()
		if at <= now {
			c.t.Fatalf("%s could have run at %v, but has not at %v: %+v", n.id, at, now, core.Nodes())
		}
		held++
		awaited = awaited || n.effect || !n.ran
		backedOff = backedOff || n.backoff > now
		if wake == 0 || at < wake {
			wake = at
		}
	}
	if c.h.last.Wake != wake {
		c.t.Fatalf("at %v the wake is %v, want %v", now, c.h.last.Wake, wake)
	}
	if got := len(core.graph.gated); got != held {
		c.t.Fatalf("%d nodes are among the held, want %d", got, held)
	}
	pending := core.ledger.Lane().Peek() != nil
	if pending && wake == 0 {
		c.t.Fatalf("an event waits, but nothing will wake it")
	}
	if got, want := core.Idle(), !pending && !awaited; !backedOff && got != want {
		c.t.Fatalf("idle is %v, want %v: %+v", got, want, core.Nodes())
	}
}

// advance lets time pass; Settle is called only when the core requests it.
func (c *clockwork) advance(d time.Duration) {
	until := c.h.now + d
	for c.h.last.Wake != 0 && c.h.last.Wake <= until {
		if c.h.last.Wake <= c.h.now {
			c.t.Fatalf("at %v the wake is %v", c.h.now, c.h.last.Wake)
		}
		c.h.now = c.h.last.Wake
		c.settle()
	}
	c.h.now = until
}

// readDoc is a read that the oracle observes.
func (c *clockwork) readDoc(tx *Tx, n *clocked, doc string) int64 {
	if tx.of.rehearsal || n.running == nil {
		return num(tx.Get(doc))
	}
	n.running[doc] = true
	return num(tx.Get(doc))
}

// function returns what a node does: its first read decides which of the others it reads.
func (c *clockwork) function(n *clocked) func(tx *Tx) (model.Value, error) {
	return func(tx *Tx) (model.Value, error) {
		first := c.readDoc(tx, n, n.reads[0])
		total := first
		for i, doc := range n.reads[1:] {
			if (int64(i)+first)%3 != 0 {
				total += c.readDoc(tx, n, doc)
			}
		}
		if n.fails > 0 {
			n.fails--
			return model.Value{}, Transient(fmt.Errorf("busy"))
		}
		return model.Int(total % 4), nil
	}
}

// specOf returns the spec with which a node is registered.
func (c *clockwork) specOf(n *clocked, gate GateSpec) NodeSpec {
	spec := NodeSpec{ID: n.id, Kind: Computation, Output: n.output, Gate: gate, Run: c.function(n)}
	if n.effect {
		spec.Kind = Effect
	}
	switch n.id {
	case "ping":
		spec.Run = func(tx *Tx) (model.Value, error) {
			if c.readDoc(tx, n, "spin")%2 == 0 {
				return model.Int(0), nil
			}
			return model.Int(c.readDoc(tx, n, "pong") + 1), nil
		}
	case "pong":
		spec.Run = func(tx *Tx) (model.Value, error) { return model.Int(c.readDoc(tx, n, "ping")), nil }
	case "maker":
		spec.Run = func(tx *Tx) (model.Value, error) {
			mask := c.readDoc(tx, n, "kids")
			for i, id := range []string{"kid0", "kid1"} {
				if mask>>i&1 == 1 {
					tx.Node(c.specOf(c.nodes[id], kidGate(mask)))
				}
			}
			return model.Value{}, nil
		}
	}
	return spec
}

func newClockwork(t *rapid.T) *clockwork {
	c := &clockwork{t: t, nodes: map[string]*clocked{}, demanded: map[string]bool{}}
	known := []string{"a", "b", "spin"}
	add := func(n clocked) {
		c.nodes[n.id] = &n
		if n.output != "" {
			known = append(known, n.output)
		}
	}
	add(clocked{id: "ping", output: "ping"})
	add(clocked{id: "pong", output: "pong"})
	add(clocked{id: "kid0", output: "kid0", reads: []string{"a"}})
	add(clocked{id: "kid1", output: "kid1", reads: []string{"b", "a"}})
	add(clocked{id: "maker", effect: true})
	for i := range 4 {
		id := fmt.Sprint("out", i)
		add(clocked{id: id, output: id, reads: rapid.SliceOfNDistinct(rapid.SampledFrom(slices.Clone(known)), 1, 4, rapid.ID).Draw(t, "reads")})
	}
	for i := range 3 {
		id := fmt.Sprint("view", i)
		add(clocked{id: id, effect: true, reads: rapid.SliceOfNDistinct(rapid.SampledFrom(slices.Clone(known)), 1, 3, rapid.ID).Draw(t, "reads")})
	}
	w := newWorld(t)
	p := NewProgram("gates")
	for stream, h := range map[string]Handler{
		"set": func(tx *Tx, ev *model.Event) (model.Value, error) {
			for doc, v := range ev.Payload.All() {
				tx.Set(doc, v)
			}
			return model.Value{}, nil
		},
		"read": func(tx *Tx, ev *model.Event) (model.Value, error) {
			doc, _ := ev.Payload.AsString()
			return tx.Get(doc), nil
		},
	} {
		if err := p.Handle(stream, h); err != nil {
			t.Fatalf("%v", err)
		}
	}
	c.h = w.host("w1", p)
	c.h.takeOver()
	c.h.cfg.Trace = Trace{}
	c.hooks(&c.h.core.cfg.Trace)
	return c
}

var gateTimes = rapid.SampledFrom([]time.Duration{0, 10, 25, 40, 90, 400})

func drawGate(t *rapid.T) GateSpec {
	g := GateSpec{
		Debounce:       gateTimes.Draw(t, "debounce") * time.Millisecond,
		Throttle:       gateTimes.Draw(t, "throttle") * time.Millisecond,
		NoAutoDebounce: rapid.IntRange(0, 3).Draw(t, "exempt") == 0,
	}
	switch longest := rapid.SampledFrom([]time.Duration{0, 1, 2, 3, -1}).Draw(t, "longest"); {
	case g.Debounce == 0:
	case longest < 0:
		g.MaxWait = -1
	default:
		g.MaxWait = longest * g.Debounce
	}
	return g
}

var gateMoves = rapid.SampledFrom(slices.Concat(
	slices.Repeat([]string{"advance"}, 6), slices.Repeat([]string{"write", "event", "come or go"}, 4),
	[]string{"debounce", "debounce", "throttle", "throttle", "exempt", "took", "took", "read", "read", "stumble", "refuse", "refuse", "put", "kids", "kids"},
))

func (c *clockwork) pick(ids ...string) *clocked {
	if len(ids) == 0 {
		ids = slices.Sorted(maps.Keys(c.nodes))
	}
	return c.nodes[rapid.SampledFrom(ids).Draw(c.t, "node")]
}

func (c *clockwork) write(docs ...string) map[string]any {
	return map[string]any{rapid.SampledFrom(docs).Draw(c.t, "doc"): rapid.IntRange(0, 7).Draw(c.t, "v")}
}

func (c *clockwork) transact(writes map[string]any) {
	_, err := c.h.core.Transact("application", func(tx *Tx) error {
		for doc, v := range writes { // any order: there is only one
			tx.Set(doc, v)
		}
		return nil
	})
	c.must(err)
}

func (c *clockwork) must(err error) {
	if err != nil {
		c.t.Fatalf("%v", err)
	}
}

func (c *clockwork) send(stream string, payload any) {
	c.events++
	c.h.w.send(home, stream, fmt.Sprint("e", c.events), payload)
}

func (c *clockwork) move() {
	t, core := c.t, c.h.core
	switch gateMoves.Draw(t, "move") {
	case "advance":
		c.advance(time.Duration(rapid.IntRange(0, 120).Draw(t, "ms")) * time.Millisecond)
		return
	case "write":
		c.transact(c.write("a", "b", "spin"))
	case "kids":
		c.transact(c.write("kids"))
	case "event":
		c.send("set", c.write("a", "b", "spin"))
	case "read":
		c.send("read", c.pick("out0", "out1", "out2", "out3", "kid0", "ping").output)
	case "put":
		for doc, v := range c.write("a", "b") { // any order: there is only one
			c.h.w.put(home, put(doc, v))
		}
		c.h.integrate()
	case "refuse":
		c.refuse()
	case "come or go":
		c.comeOrGo(c.pick("ping", "pong", "maker", "out0", "out1", "out2", "out3", "view0", "view1", "view2"))
	case "stumble":
		c.pick("out0", "out1", "view0", "ping").fails = rapid.IntRange(1, 2).Draw(t, "times")
	case "took":
		n := c.pick("view0", "view1", "out0", "out1", "maker")
		took := time.Duration(rapid.SampledFrom([]int{0, 50, 200}).Draw(t, "took")) * time.Millisecond
		for range rapid.IntRange(1, 3).Draw(t, "times") {
			core.Measured(n.id, took)
			if n.present {
				n.took = append(n.took, took)
			}
		}
	default:
		c.regate(c.pick())
	}
	c.settle()
}

// regate changes one gate from outside.
func (c *clockwork) regate(n *clocked) {
	d := gateTimes.Draw(c.t, "gate") * time.Millisecond
	var err error
	var change func(*GateSpec)
	switch rapid.IntRange(0, 4).Draw(c.t, "which") {
	case 0, 1:
		err = c.h.core.SetDebounce(n.id, d)
		change = func(g *GateSpec) { g.Debounce = d }
	case 2, 3:
		err = c.h.core.SetThrottle(n.id, d)
		change = func(g *GateSpec) { g.Throttle = d }
	default:
		err = c.h.core.SetNoAutoDebounce(n.id, d > 0)
		change = func(g *GateSpec) { g.NoAutoDebounce = d > 0 }
	}
	if n.present != (err == nil) {
		c.t.Fatalf("the gate of %s, present %v: %v", n.id, n.present, err)
	}
	if n.present {
		c.setGate(n, change)
		got, _ := c.h.core.Gate(n.id)
		if want := n.gate; got.Throttle != want.Throttle || got.Debounce != n.debounce() || got.NoAutoDebounce != want.NoAutoDebounce {
			c.t.Fatalf("the gate of %s is %+v, want %+v with debounce %v", n.id, got, want, n.debounce())
		}
	}
}

func (c *clockwork) comeOrGo(n *clocked) {
	if !n.present {
		gate := drawGate(c.t)
		spec := c.specOf(n, gate)
		c.must(c.h.core.Register(spec))
		c.arrive(c.nodes[n.id], gate)
		return
	}
	if !c.h.core.Remove(n.id) {
		c.t.Fatalf("%s is not there", n.id)
	}
	n.present = false
	delete(c.demanded, n.id)
	if n.id == "maker" {
		c.nodes["kid0"].present, c.nodes["kid1"].present = false, false
	}
}

// refuse makes another runtime's commit win over a write and its runs. The undone runs must be repeated,
// although nothing has changed for them.
func (c *clockwork) refuse() {
	if c.h.core.ledger.Lane().Peek() != nil {
		return // a handling that is undone is retried with growing pauses, which other tests cover
	}
	c.transact(c.write("a", "b", "spin"))
	c.undone = nil
	c.refusing = true
	c.settle()
	c.refusing = false
	if c.h.inFlight == nil {
		return
	}
	c.h.refuse(put("elsewhere", c.h.w.seq))
	for _, id := range c.undone {
		if n := c.nodes[id]; n.present {
			n.due, n.ungated = true, true
		}
	}
	c.undone = nil
}

func TestF_EveryRunIsAtTheEarliestTimeThatItsGatesAllow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newClockwork(t)
		for _, id := range []string{"out0", "view0", "view1", "maker"} {
			c.comeOrGo(c.nodes[id])
		}
		c.settle()
		for range 60 {
			c.move()
		}
		runs := c.h.core.Stats().Runs
		c.h.core.Close()
		for range 3 {
			c.h.advance(time.Second)
			if c.h.settle(); c.h.last.Wake != 0 || c.h.last.More || c.h.core.Stats().Runs != runs || !c.h.core.Idle() {
				t.Fatalf("closed, and %+v, %d runs", c.h.last, c.h.core.Stats().Runs-runs)
			}
		}
	})
}
