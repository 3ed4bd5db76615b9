package space

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "github.com/settlehq/settle/internal/seeded" // see the package
	"github.com/settlehq/settle/model"
)

// program registers the formulas of the program, in any order, and these handlers:
//
//	set     writes an input
//	copy    reads a number, derived or not, and writes it to an input
//	spawn   sends two of the others to its own space
func (fs *formulas) program(t *rapid.T) *Program {
	p := NewProgram("random")
	must := func(err error) {
		if err != nil {
			t.Fatalf("%v", err)
		}
	}
	for _, f := range rapid.Permutation(fs.all[:fs.static]).Draw(t, "registration") {
		must(p.Add(fs.node(f)))
	}
	must(p.Handle("set", func(tx *Tx, ev *model.Event) (model.Value, error) {
		to, v := addressOf(ev.Payload.Get("to")), ev.Payload.Get("v")
		group, _ := ev.Payload.Get("group").AsString()
		tx.Group(group)
		tx.Set(to.Doc, v, to.Path...)
		return v, nil
	}))
	must(p.Handle("copy", func(tx *Tx, ev *model.Event) (model.Value, error) {
		from, to := addressOf(ev.Payload.Get("from")), addressOf(ev.Payload.Get("to"))
		v := (&operand{readAt, from}).read(tx, 0)
		tx.Set(to.Doc, v, to.Path...)
		return model.Int(v), nil
	}))
	must(p.Handle("spawn", func(tx *Tx, ev *model.Event) (model.Value, error) {
		for e := range ev.Payload.Elements() {
			stream, _ := e.Get("stream").AsString()
			tx.Send(home, stream, e)
		}
		return model.Int(int64(ev.Payload.Len())), nil
	}))
	return p
}

// Addresses in payloads resemble links, but must not be followed.
func addressIn(a Address) any {
	return map[string]any{"space": a.Space, "doc": a.Doc, "path": []string(a.Path)}
}

func addressOf(v model.Value) (a Address) {
	a.Space, _ = v.Get("space").AsString()
	a.Doc, _ = v.Get("doc").AsString()
	for e := range v.Get("path").Elements() {
		step, _ := e.AsString()
		a.Path = append(a.Path, step)
	}
	return a
}

// machine is the system under test and the expectations of the test. There are two instances of the system
// that do the same, and must not differ in anything.
type machine struct {
	w        *world
	fs       *formulas
	hosts    []*host
	observed []map[string]int // per host
	present  []map[int]bool   // registered formulas outside the program, per host
	needed   map[string]bool  // everything that may ever have been live
	sent     int
	twin     *machine
}

// do does the same to both systems.
func (m *machine) do(host int, f func(m *machine, h *host)) {
	f(m, m.hosts[host])
	if m.twin != nil {
		f(m.twin, m.twin.hosts[host])
	}
}

// change draws a new value of an input; an absent one removes it.
func (m *machine) change(t *rapid.T) (to Address, v model.Value) {
	inputs := slices.Concat(plain, plain, keyed, []Address{ref})
	to = rapid.SampledFrom(inputs).Draw(t, "to")
	if to.Doc == ref.Doc {
		at := rapid.SampledFrom(m.fs.targets()).Draw(t, "target")
		return to, model.Link{Space: at.Space, Doc: at.Doc, Path: at.Path}.Value()
	}
	n := rapid.IntRange(-1, 3).Draw(t, "v")
	if n < 0 && len(to.Path) > 0 {
		return to, model.Value{}
	}
	return to, model.Int(int64(max(n, 0)))
}

var groups = rapid.SampledFrom([]string{"", "", "g"})

// numbers returns all addresses with a known expected value: inputs, and what the program derives.
func (m *machine) numbers() []Address {
	out := slices.Concat(plain, keyed, []Address{rate})
	for _, f := range m.fs.all[:m.fs.static] {
		out = append(out, f.cells()...)
	}
	return out
}

func (m *machine) payload(t *rapid.T) (stream string, payload map[string]any) {
	if rapid.Bool().Draw(t, "copy") {
		from := rapid.SampledFrom(m.numbers()).Draw(t, "from")
		to := rapid.SampledFrom(slices.Concat(plain, keyed)).Draw(t, "to")
		m.fs.reach(from, m.needed)
		return "copy", map[string]any{"stream": "copy", "from": addressIn(from), "to": addressIn(to)}
	}
	to, v := m.change(t)
	payload = map[string]any{"stream": "set", "to": addressIn(to), "group": groups.Draw(t, "group")}
	if !v.IsAbsent() {
		payload["v"] = v
	}
	return "set", payload
}

// event draws an event.
func (m *machine) event(t *rapid.T) (stream, id string, payload any) {
	m.sent++
	id = fmt.Sprint("e", m.sent)
	if rapid.IntRange(0, 4).Draw(t, "spawn") > 0 {
		stream, payload = m.payload(t)
		return stream, id, payload
	}
	_, a := m.payload(t)
	_, b := m.payload(t)
	return "spawn", id, []any{a, b}
}

var moves = rapid.SampledFrom(slices.Concat([]string{"nothing"},
	slices.Repeat([]string{"send"}, 5), slices.Repeat([]string{"deliver", "settle", "decide"}, 4),
	[]string{"observe", "observe", "unobserve", "put", "rate", "mirror", "mirror", "run", "checkpoint"},
	[]string{"take over", "crash", "advance", "wait", "transact", "transact", "register", "register", "gate"},
))

func (m *machine) move(t *rapid.T) {
	i := rapid.IntRange(0, len(m.hosts)-1).Draw(t, "host")
	switch move := moves.Draw(t, "move"); move {
	case "send":
		stream, id, payload := m.event(t)
		m.do(i, func(m *machine, _ *host) { m.w.send(home, stream, id, payload) })
	case "put":
		to, v := m.change(t)
		group := groups.Draw(t, "group")
		m.do(i, func(m *machine, _ *host) {
			m.w.putAs(home, group, model.Write{Doc: to.Doc, Path: to.Path, Value: v, Delete: v.IsAbsent()})
		})
	case "rate":
		write := put("rate", rapid.IntRange(0, 3).Draw(t, "v"))
		m.do(i, func(m *machine, _ *host) { m.w.put("bank", write) })
	case "transact":
		m.transact(t, i)
	case "crash":
		landed := rapid.Bool().Draw(t, "landed")
		m.do(i, func(m *machine, h *host) { m.crash(h, i, landed) })
	case "observe", "unobserve", "register", "gate":
		m.demand(t, i, move)
	default:
		m.do(i, func(_ *machine, h *host) { h.step(move) })
	}
}

// transact is a write by the application, which may read a derived value for it.
func (m *machine) transact(t *rapid.T, i int) {
	to, v := m.change(t)
	group := groups.Draw(t, "group")
	var from *Address
	if to.Doc != ref.Doc && rapid.Bool().Draw(t, "look") {
		a := rapid.SampledFrom(m.numbers()).Draw(t, "from")
		if a.Space == "" {
			from = &a
		}
	}
	m.do(i, func(m *machine, h *host) {
		_, err := h.core.Transact("app", func(tx *Tx) error {
			tx.Group(group)
			if from != nil {
				v = model.Int((&operand{readAt, *from}).read(tx, 0))
			}
			tx.Set(to.Doc, v, to.Path...)
			return nil
		})
		if err != nil && !errors.Is(err, ErrNotRunning) {
			m.w.t.Fatalf("transact: %v", err)
		}
		checkGraph(m.w.t, h.core.graph)
	})
}

// demand is a move that changes what is needed, or when it may run.
func (m *machine) demand(t *rapid.T, i int, move string) {
	switch move {
	case "observe":
		docs := slices.Clone(containers)
		for _, f := range m.fs.all[:m.fs.static] {
			for _, a := range f.cells() {
				docs = append(docs, a.Doc)
			}
		}
		doc := rapid.SampledFrom(docs).Draw(t, "doc")
		m.fs.reach(Address{Doc: doc}, m.needed)
		m.do(i, func(m *machine, h *host) {
			m.observed[i][doc]++
			h.observe(doc)
		})
	case "unobserve":
		if docs := slices.Sorted(maps.Keys(m.observed[i])); len(docs) > 0 {
			doc := rapid.SampledFrom(docs).Draw(t, "doc")
			m.do(i, func(m *machine, h *host) {
				h.core.Unobserve(doc)
				if m.observed[i][doc]--; m.observed[i][doc] == 0 {
					delete(m.observed[i], doc)
				}
			})
		}
	case "register":
		if m.fs.static < len(m.fs.all) {
			f := rapid.SampledFrom(m.fs.all[m.fs.static:]).Draw(t, "node")
			m.do(i, func(m *machine, h *host) { m.toggle(h, i, f) })
		}
	case "gate":
		f := rapid.SampledFrom(m.fs.all[:m.fs.static]).Draw(t, "node")
		d := rapid.SampledFrom([]time.Duration{0, 5 * time.Millisecond}).Draw(t, "debounce")
		m.do(i, func(m *machine, h *host) {
			if err := h.core.SetDebounce(f.spec.ID, d); err != nil {
				m.w.t.Fatalf("%v", err)
			}
		})
	}
	m.do(i, func(m *machine, h *host) { checkGraph(m.w.t, h.core.graph) })
}

// toggle registers a node if it is absent, and removes it otherwise.
func (m *machine) toggle(h *host, i int, f *formula) {
	if m.present[i][f.index] {
		delete(m.present[i], f.index)
		if !h.core.Remove(f.spec.ID) {
			m.w.t.Fatalf("node %s did not exist", f.spec.ID)
		}
		return
	}
	m.present[i][f.index] = true
	if f.rootItself() {
		m.fs.reachFrom(f, m.needed)
	}
	if err := h.core.Register(m.fs.node(f)); err != nil {
		m.w.t.Fatalf("%v", err)
	}
}

// rootItself reports whether the node is live without readers.
func (f *formula) rootItself() bool { return f.spec.Kind == Effect || f.materializes() }

// step is one of the moves that involve only a host.
func (h *host) step(move string) {
	switch move {
	case "deliver":
		h.deliver()
	case "settle":
		h.settle()
	case "decide":
		h.decide()
	case "mirror":
		h.mirror()
	case "run":
		h.run()
	case "checkpoint":
		h.checkpoint()
	case "take over":
		if h.core.Settled() && !h.core.Owned() {
			h.integrate()
			h.takeOver()
		}
	case "wait":
		h.advance(5 * time.Millisecond)
	case "advance":
		h.advance(rest)
	}
}

// rest is longer than any gate.
const rest = 3 * time.Second

// crash loses everything in memory, perhaps between an append and its answer. The clients' observations
// return; registered nodes do not.
func (m *machine) crash(h *host, i int, landed bool) {
	if h.inFlight != nil && landed {
		m.w.append(home, h.inFlight)
	}
	h.load()
	m.present[i] = map[int]bool{}
	for _, doc := range slices.Sorted(maps.Keys(m.observed[i])) {
		for range m.observed[i][doc] {
			h.observe(doc)
		}
	}
}

// settleDown lets one host finish everything.
func (m *machine) settleDown(h *host) {
	for h.decide(); !h.core.Settled(); h.decide() {
		h.settle()
	}
	h.integrate()
	if !h.core.Owned() {
		h.takeOver()
	}
	for range 20 {
		h.run()
		if h.core.Idle() && h.core.graph.dueCount == 0 {
			return
		}
		if !h.core.Owned() {
			m.w.t.Fatalf("deposed without a takeover")
		}
		h.advance(rest)
	}
	m.w.t.Fatalf("the host does not become idle: %+v, nodes %+v", h.last, h.core.Nodes())
}

// at returns the oracle of a host's state at quiescence. Writes of nodes that have been removed stay as they
// are.
func (m *machine) at(i int) *oracle {
	r := m.w.replica(home)
	return &oracle{
		fs: m.fs, rate: num(m.w.replica("bank").Doc("rate").Value),
		has: func(f *formula) bool { return f.index < m.fs.static || m.present[i][f.index] },
		input: func(doc string) model.Value {
			if m.volatile(doc) {
				return m.hosts[i].core.Value(doc)
			}
			return r.Doc(doc).Value
		},
	}
}

func (m *machine) volatile(doc string) bool {
	return slices.ContainsFunc(m.fs.all, func(f *formula) bool { return f.spec.Volatile && f.spec.Output == doc })
}

// checkOutputs checks that, at quiescence, everything live has the value of a naive evaluation, here and in
// the log; that effects have seen it; and that nothing ran that was never needed.
func (m *machine) checkOutputs(i int) {
	t, h, o := m.w.t, m.hosts[i], m.at(i)
	for _, f := range m.fs.all {
		n := h.core.graph.byID[f.spec.ID]
		if (n != nil) != o.has(f) {
			t.Fatalf("%s is registered: %v", f.spec.ID, n != nil)
		}
		if n == nil || !n.live {
			continue
		}
		if n.status != Clean {
			t.Fatalf("%s is live and %s at quiescence", n.id(), n.status)
		}
		for _, a := range f.cells() {
			if got, want := num(h.core.Value(a.Doc).At(a.Path)), o.at(a); got != want {
				t.Fatalf("%s is %d, want %d", a, got, want)
			}
		}
		if f.spec.Kind == Effect && f.spec.Group == "" {
			if got, want := m.fs.seen[h.core.runner.transactions][n.id()], o.value(f); got != want {
				t.Fatalf("%s has seen %d, want %d", n.id(), got, want)
			}
		}
	}
	for _, n := range h.core.Nodes() {
		if f := m.fs.byID(n.ID); f != nil && n.Runs > 0 && !m.needed[n.ID] {
			t.Fatalf("%s ran %d times, although it was never needed", n.ID, n.Runs)
		}
	}
	if s := h.core.Stats(); s.NodeErrors+s.OutsideWrites+s.Violations+s.Deferred > 0 {
		t.Fatalf("there were errors: %+v", s)
	}
	m.checkDocuments(h)
}

func (fs *formulas) byID(id string) *formula {
	for _, f := range fs.all {
		if f.spec.ID == id {
			return f
		}
	}
	return nil
}

// checkDocuments compares the shown documents with the log.
func (m *machine) checkDocuments(h *host) {
	t, r := m.w.t, m.w.replica(home)
	for _, id := range slices.Concat(r.DocIDs(), []string{"in0", "in1", "in2"}, containers) {
		if got, want := h.core.Value(id), r.Doc(id).Value; !model.Equal(got, want) {
			t.Fatalf("%s is %s here and %s in the log", id, got, want)
		}
		if m.volatile(id) && !r.Doc(id).Value.IsAbsent() {
			t.Fatalf("%s is volatile, but in the log", id)
		}
	}
}

// checkHistory replays the log naively: every event is handled once, in order, and a handler that reads a
// derived document sees the value as of its place in the log.
func (m *machine) checkHistory() {
	t := m.w.t
	state := map[string]model.Value{}
	lane := uint64(0)
	handled := map[string]bool{}
	for _, e := range m.w.logs[home] {
		for _, tx := range m.w.commit(e).Txs {
			rc := tx.Receipt
			if rc != nil {
				if handled[rc.Event] {
					t.Fatalf("%s is handled twice", rc.Event)
				}
				handled[rc.Event] = true
				if rc.Outcome != model.Handled {
					t.Fatalf("%s %s: %s", rc.Event, rc.Outcome, rc.Error)
				}
				if rc.Lane != 0 && rc.Lane <= lane {
					t.Fatalf("%s at %d is handled after %d", rc.Event, rc.Lane, lane)
				}
				lane = max(lane, rc.Lane)
			}
			if tx.By == "handle copy" {
				m.checkCopy(rc, state)
			}
			for _, write := range tx.Writes {
				v, err := write.Apply(state[write.Doc])
				if err != nil {
					t.Fatalf("replay: %v", err)
				}
				state[write.Doc] = v
			}
		}
	}
	m.checkHandled(handled)
}

func (m *machine) checkHandled(handled map[string]bool) {
	t := m.w.t
	for _, ev := range m.w.lanes[home] {
		if !handled[ev.ID] {
			t.Fatalf("%s was not handled", ev.ID)
		}
	}
	for _, id := range m.w.sendIDs(home) {
		if !handled[id] {
			t.Fatalf("the follow-up %s is not handled", id)
		}
	}
	if want := len(m.w.lanes[home]) + len(m.w.sendIDs(home)); len(handled) != want {
		t.Fatalf("%d receipts for %d events", len(handled), want)
	}
}

// checkCopy compares what a copy saw with the oracle. A foreign document has no place in this log, so any of
// its values is correct. The program derives nothing from the other formulas, so it does not matter whether
// they were registered.
func (m *machine) checkCopy(rc *model.Receipt, state map[string]model.Value) {
	from := m.copied(rc)
	for rate := range int64(4) {
		o := &oracle{
			fs: m.fs, rate: rate,
			has:   func(f *formula) bool { return f.index < m.fs.static },
			input: func(doc string) model.Value { return state[doc] },
		}
		if o.at(from) == num(rc.Result) {
			return
		}
	}
	m.w.t.Fatalf("%s saw %s in %s, with the inputs %v", rc.Event, rc.Result, from, state)
}

// copied returns the address that an event copies from.
func (m *machine) copied(rc *model.Receipt) Address {
	var payload model.Value
	for _, ev := range m.w.lanes[home] {
		if ev.ID == rc.Event {
			payload = ev.Payload
		}
	}
	for _, e := range m.w.logs[home] {
		for _, tx := range m.w.commit(e).Txs {
			for _, s := range tx.Sends {
				if s.ID == rc.Event {
					payload = s.Payload
				}
			}
		}
	}
	return addressOf(payload.Get("from"))
}

func newMachine(t *rapid.T, fs *formulas, p *Program, change func(*Config)) *machine {
	m := &machine{w: newWorld(t), fs: fs, needed: map[string]bool{}}
	for _, f := range fs.all[:fs.static] {
		if f.rootItself() {
			fs.reachFrom(f, m.needed)
		}
	}
	// A new container concerns all readers that have looked for something inside it, which the edges do not
	// express.
	for _, doc := range containers {
		m.w.put(home, put(doc, map[string]any{}))
	}
	for _, name := range []string{"w1", "w2"} {
		h := m.w.host(name, p, change)
		m.hosts = append(m.hosts, h)
		m.observed = append(m.observed, map[string]int{})
		m.present = append(m.present, map[int]bool{})
	}
	m.hosts[0].takeOver()
	return m
}

// checkTwin checks that only the inputs decide what a space does (no clock, no chance, no order of a map),
// and that observation through hooks decides nothing (P10).
func (m *machine) checkTwin() {
	t := m.w.t
	for _, space := range []string{home, "bank"} {
		if !reflect.DeepEqual(m.w.logs[space], m.twin.w.logs[space]) {
			t.Fatalf("the same inputs gave another log of %s:\n%+v\n%+v", space, m.w.logs[space], m.twin.w.logs[space])
		}
	}
	for i := range m.hosts {
		if !slices.Equal(m.hosts[i].story, m.twin.hosts[i].story) {
			t.Fatalf("the same inputs gave another story:\n%v\n%v", m.hosts[i].story, m.twin.hosts[i].story)
		}
	}
}

// Random programs under random observations, events, transactions, refusals, takeovers and crashes (I1, I2,
// I3, I4, I9, I10, I11). The twin is watched through every hook, and its runs are rehearsed; it must do the
// same.
func TestI1_AtQuiescenceEverythingLiveEqualsANaiveEvaluation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fs := genFormulas(t)
		p := fs.program(t)
		group := rapid.SampledFrom([]int{2, 5, 1024}).Draw(t, "group")
		limit := rapid.SampledFrom([]int{2, 4096}).Draw(t, "lane limit")
		small := func(c *Config) { c.MaxGroup, c.LaneLimit = group, limit }
		m := newMachine(t, fs, p, small)
		m.twin = newMachine(t, fs, p, func(c *Config) { small(c); watched(c); c.CheckIdempotency = true })
		for _, h := range m.twin.hosts {
			judge(h)
		}
		m.twin.needed = m.needed
		for range 40 {
			m.move(t)
		}
		for i := range m.hosts {
			m.do(i, func(m *machine, h *host) { m.settleDown(h) })
			m.checkOutputs(i)
			m.twin.checkOutputs(i)
		}
		m.checkHistory()
		m.checkTwin()
	})
}
