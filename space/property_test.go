package space

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
)

// The oracle of this test knows nothing of nodes, demand or logs. It evaluates a
// formula by evaluating what it reads, every time, from the inputs up.

// formula is a computation of small numbers, so that outputs often stay the same. It
// reads reads[0], and by its parity either the even or the odd ones of the rest.
type formula struct {
	output string
	reads  []string
	mod    int64
}

func (f *formula) eval(read func(doc string) int64) int64 {
	if len(f.reads) == 0 {
		return 1
	}
	first := read(f.reads[0])
	total := first
	for i, doc := range f.reads[1:] {
		if int64(i)%2 == first&1 {
			total += read(doc)
		}
	}
	return total % f.mod
}

type formulas map[string]*formula

// value is what a document would be if everything were always computed.
func (fs formulas) value(doc string, inputs map[string]int64) int64 {
	f := fs[doc]
	if f == nil {
		return inputs[doc]
	}
	return f.eval(func(doc string) int64 { return fs.value(doc, inputs) })
}

// reach adds everything that doc may ever read.
func (fs formulas) reach(doc string, into map[string]bool) {
	f := fs[doc]
	if f == nil || into[doc] {
		return
	}
	into[doc] = true
	for _, r := range f.reads {
		fs.reach(r, into)
	}
}

var inputDocs = []string{"in0", "in1", "in2", "@bank/rate"}

func genFormulas(t *rapid.T) formulas {
	fs := formulas{}
	known := slices.Clone(inputDocs)
	for i := range rapid.IntRange(1, 8).Draw(t, "computations") {
		f := &formula{output: fmt.Sprint("out", i), mod: int64(rapid.IntRange(2, 5).Draw(t, "mod"))}
		f.reads = rapid.SliceOfNDistinct(rapid.SampledFrom(known), 0, 4, rapid.ID).Draw(t, "reads")
		fs[f.output] = f
		known = append(known, f.output)
	}
	return fs
}

func readInt(tx *Tx, doc string) int64 {
	if doc == "@bank/rate" {
		return num(tx.GetFrom("bank", "rate"))
	}
	return num(tx.Get(doc))
}

// program registers the computations in any order, and these handlers:
//
//	set     writes an input
//	copy    reads a derived document and writes it to an input
//	spawn   sends two of the others to its own space
func (fs formulas) program(t *rapid.T) *Program {
	p := NewProgram("random")
	must := func(err error) {
		if err != nil {
			t.Fatalf("%v", err)
		}
	}
	for _, id := range rapid.Permutation(slices.Sorted(maps.Keys(fs))).Draw(t, "registration") {
		f := fs[id]
		must(p.Add(NodeSpec{ID: id, Kind: Computation, Output: id, Run: func(tx *Tx) (model.Value, error) {
			return model.Int(f.eval(func(doc string) int64 { return readInt(tx, doc) })), nil
		}}))
	}
	must(p.Handle("set", func(tx *Tx, ev *model.Event) (model.Value, error) {
		doc, _ := ev.Payload.Get("to").AsString()
		tx.Set(doc, ev.Payload.Get("v"))
		return ev.Payload.Get("v"), nil
	}))
	must(p.Handle("copy", func(tx *Tx, ev *model.Event) (model.Value, error) {
		from, _ := ev.Payload.Get("from").AsString()
		to, _ := ev.Payload.Get("to").AsString()
		v := readInt(tx, from)
		tx.Set(to, v)
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

// machine is the system under test with what the test knows of it. There are two of
// the system, to which the same is done: they must not differ in anything.
type machine struct {
	w        *world
	fs       formulas
	hosts    []*host
	observed []map[string]int // per host
	needed   map[string]bool  // whatever may have been live, ever
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

func (m *machine) payload(t *rapid.T) (stream string, payload map[string]any) {
	own := inputDocs[:3]
	payload = map[string]any{"to": rapid.SampledFrom(own).Draw(t, "to")}
	if rapid.Bool().Draw(t, "copy") {
		from := rapid.SampledFrom(slices.Concat(slices.Sorted(maps.Keys(m.fs)), inputDocs)).Draw(t, "from")
		m.fs.reach(from, m.needed)
		payload["from"], payload["stream"] = from, "copy"
		return "copy", payload
	}
	payload["v"], payload["stream"] = rapid.IntRange(0, 3).Draw(t, "v"), "set"
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
	[]string{"take over", "crash", "advance"},
))

func (m *machine) move(t *rapid.T) {
	i := rapid.IntRange(0, len(m.hosts)-1).Draw(t, "host")
	value := func() int { return rapid.IntRange(0, 3).Draw(t, "v") }
	switch move := moves.Draw(t, "move"); move {
	case "send":
		stream, id, payload := m.event(t)
		m.do(i, func(m *machine, _ *host) { m.w.send(home, stream, id, payload) })
	case "observe":
		doc := rapid.SampledFrom(slices.Sorted(maps.Keys(m.fs))).Draw(t, "doc")
		m.fs.reach(doc, m.needed)
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
	case "put":
		write := put(rapid.SampledFrom(inputDocs[:3]).Draw(t, "doc"), value())
		m.do(i, func(m *machine, _ *host) { m.w.put(home, write) })
	case "rate":
		write := put("rate", value())
		m.do(i, func(m *machine, _ *host) { m.w.put("bank", write) })
	case "crash":
		landed := rapid.Bool().Draw(t, "landed")
		m.do(i, func(m *machine, h *host) { m.crash(h, i, landed) })
	default:
		m.do(i, func(_ *machine, h *host) { h.step(move) })
	}
}

// step is one of the moves that need nothing but a host.
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
	case "advance":
		h.advance(rest)
	}
}

// rest is longer than any gate.
const rest = 3_000_000_000

// crash forgets everything, perhaps between an append and its answer. The clients
// that observe come back.
func (m *machine) crash(h *host, i int, landed bool) {
	if h.inFlight != nil && landed {
		m.w.append(home, h.inFlight)
	}
	h.load()
	for _, doc := range slices.Sorted(maps.Keys(m.observed[i])) {
		for range m.observed[i][doc] {
			h.observe(doc)
		}
	}
}

// settleDown lets one host bring everything to an end.
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
		if h.core.Idle() {
			return
		}
		if !h.core.Owned() {
			m.w.t.Fatalf("deposed by nobody")
		}
		h.advance(rest)
	}
	m.w.t.Fatalf("it does not come to rest: %+v, nodes %+v", h.last, h.core.Nodes())
}

// checkOutputs: at quiescence, every live computation has the value that a naive
// evaluation has, here and in the log; nothing ran that was never needed.
func (m *machine) checkOutputs(h *host) {
	t, r := m.w.t, m.w.replica(home)
	inputs := map[string]int64{"@bank/rate": num(m.w.replica("bank").Doc("rate").Value)}
	for _, doc := range inputDocs[:3] {
		inputs[doc] = num(r.Doc(doc).Value)
	}
	for _, n := range h.core.Nodes() {
		if n.Kind != Computation {
			continue
		}
		if n.Live {
			if n.Status != Clean {
				t.Fatalf("%s is live and %s at quiescence", n.ID, n.Status)
			}
			if got, want := num(h.core.Value(n.Output)), m.fs.value(n.Output, inputs); got != want {
				t.Fatalf("%s is %d, want %d", n.Output, got, want)
			}
		}
		if n.Runs > 0 && !m.needed[n.ID] {
			t.Fatalf("%s ran %d times, and nobody ever needed it", n.ID, n.Runs)
		}
	}
	for _, id := range slices.Concat(r.DocIDs(), inputDocs[:3]) {
		if got, want := h.core.Value(id), r.Doc(id).Value; !model.Equal(got, want) {
			t.Fatalf("%s is %s here and %s in the log", id, got, want)
		}
	}
}

// checkHistory replays the log naively: every event is handled once, in order, and a
// handler that reads a derived document sees what would be computed at its place in
// the log.
func (m *machine) checkHistory() {
	t := m.w.t
	inputs := map[string]int64{}
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
				m.checkCopy(rc, inputs)
			}
			for _, write := range tx.Writes {
				inputs[write.Doc] = num(write.Value)
			}
		}
	}
	for _, ev := range m.w.lanes[home] {
		if !handled[ev.ID] {
			t.Fatalf("%s is not handled", ev.ID)
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

// checkCopy compares what a copy saw with the oracle. A foreign document has no place
// in this log, so any of its values will do.
func (m *machine) checkCopy(rc *model.Receipt, inputs map[string]int64) {
	from := m.copied(rc)
	for rate := range int64(4) {
		inputs["@bank/rate"] = rate
		if m.fs.value(from, inputs) == num(rc.Result) {
			return
		}
	}
	m.w.t.Fatalf("%s saw %s in %s, with the inputs %v", rc.Event, rc.Result, from, inputs)
}

// copied is the document that an event copies.
func (m *machine) copied(rc *model.Receipt) string {
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
	from, _ := payload.Get("from").AsString()
	return from
}

func newMachine(t *rapid.T, fs formulas, p *Program, change func(*Config)) *machine {
	m := &machine{w: newWorld(t), fs: fs, needed: map[string]bool{}}
	for _, name := range []string{"w1", "w2"} {
		m.hosts = append(m.hosts, m.w.host(name, p, change))
		m.observed = append(m.observed, map[string]int{})
	}
	m.hosts[0].takeOver()
	return m
}

// watched also installs every hook that the hosts of these tests do without.
func watched(c *Config) {
	c.Trace = Trace{
		HandleStart: func(ev *model.Event) model.Trace { return ev.Trace },
		PassEnd:     func(PassInfo) {},
		Changed:     func(ChangeInfo) {},
		Invalidated: func(InvalidInfo) {},
		Iteration:   func(int) {},
		Echo:        func(EchoInfo) {},
		Violated:    func(Violation) {},
		Unsettled:   func([]string) {},
		Durable:     func(bool) {},
		Skipped:     func(SkipInfo) {},
		Gated:       func(GateInfo) {},
	}
}

// checkTwin: nothing but the inputs decides what a space does (no clock, no chance, no
// order of a map), and whether anybody watches decides nothing (P10).
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

// Random programs under random observations, events, refusals, takeovers and crashes
// (I1, I2, I3, I4, I9, I10, I11).
func TestI1_AtQuiescenceEverythingLiveIsWhatANaiveEvaluationSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fs := genFormulas(t)
		p := fs.program(t)
		group := rapid.SampledFrom([]int{2, 5, 1024}).Draw(t, "group")
		limit := rapid.SampledFrom([]int{2, 4096}).Draw(t, "lane limit")
		small := func(c *Config) { c.MaxGroup, c.LaneLimit = group, limit }
		m := newMachine(t, fs, p, small)
		m.twin = newMachine(t, fs, p, func(c *Config) { small(c); watched(c) })
		for range 80 {
			m.move(t)
		}
		for i := range m.hosts {
			m.do(i, func(m *machine, h *host) { m.settleDown(h) })
			m.checkOutputs(m.hosts[i])
		}
		m.checkHistory()
		m.checkTwin()
	})
}
