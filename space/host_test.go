package space

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// The world of these tests is a log with a compare-and-set per space, a lane per space, a coordinator and
// saved states, all in memory and without a clock. Hosts do what Ready requests, step by step, so that a test
// can stop between any two steps.

// tester is *testing.T or *rapid.T.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

const home = "home"

type world struct {
	t tester
	// seq and lane number all log entries and all lane events, like the streams of a partition.
	seq, laneSeq uint64
	logs         map[string][]model.LogEntry
	lanes        map[string][]model.Event
	released     map[string]int // the log entries that the coordinator has processed
	saved        map[string]model.SpaceState
	folded       map[string]*replica.Replica // see replica
	hosts        []*host
}

func newWorld(t tester) *world {
	return &world{
		t: t, folded: map[string]*replica.Replica{}, logs: map[string][]model.LogEntry{}, lanes: map[string][]model.Event{},
		released: map[string]int{}, saved: map[string]model.SpaceState{},
	}
}

// send does what a client does: it appends an event with a new id to the lane.
func (w *world) send(space, stream, id string, payload any) {
	for _, ev := range w.lanes[space] {
		if ev.ID == id {
			return
		}
	}
	w.publish(model.Event{Space: space, Stream: stream, ID: id, Payload: model.MustOf(payload)})
}

func (w *world) publish(ev model.Event) {
	w.laneSeq += 2
	ev.Lane = w.laneSeq
	w.lanes[ev.Space] = append(w.lanes[ev.Space], ev)
}

// release does what the coordinator does: it puts committed cross-space sends into their lanes.
func (w *world) release() {
	for _, space := range slices.Sorted(maps.Keys(w.logs)) {
		for _, e := range w.logs[space][w.released[space]:] {
			for _, tx := range w.commit(e).Txs {
				for _, s := range tx.Sends {
					if s.To != space {
						w.publish(s.Event())
					}
				}
			}
		}
		w.released[space] = len(w.logs[space])
	}
}

func (w *world) commit(e model.LogEntry) *model.Commit {
	w.t.Helper()
	c, err := model.DecodeCommit(e.Data)
	if err != nil {
		w.t.Fatalf("decode commit %d: %v", e.Seq, err)
	}
	return c
}

func (w *world) head(space string) uint64 {
	log := w.logs[space]
	if len(log) == 0 {
		return 0
	}
	return log[len(log)-1].Seq
}

// append stores a commit if the head is as expected, and returns its sequence, 0 if it is refused.
func (w *world) append(space string, a *Append) uint64 {
	if w.head(space) != a.Expect {
		return 0
	}
	w.seq++
	w.logs[space] = append(w.logs[space], model.LogEntry{Space: space, Seq: w.seq, Prev: a.Expect, ID: a.Commit.ID(), Data: a.Data})
	return w.seq
}

// put appends a commit of another runtime directly to the log, without a takeover.
func (w *world) put(space string, writes ...model.Write) { w.putAs(space, "", writes...) }

// putAs is put in a change group.
func (w *world) putAs(space, group string, writes ...model.Write) {
	r := w.replica(space)
	c := &model.Commit{
		Version: model.CommitVersion, Space: space, Runtime: "elsewhere", Epoch: r.Epoch, Attempt: w.seq,
		Txs: []model.Tx{{N: 1, By: "put", Writes: writes, Group: group}}, Cursor: r.Cursor,
	}
	w.append(space, &Append{Expect: w.head(space), Commit: c, Data: model.AppendCommit(nil, c, nil)})
}

// replica folds the whole log of a space. The caller owns the result.
func (w *world) replica(space string) *replica.Replica {
	w.t.Helper()
	if w.folded[space] == nil {
		w.folded[space] = replica.New(space)
	}
	return w.replay(w.folded[space]).Clone()
}

// trail returns the trail of the last change of a document.
func (w *world) trail(ref Ref) *model.Trail {
	for _, e := range slices.Backward(w.logs[ref.Space]) {
		c := w.commit(e)
		for i := range c.Txs {
			if slices.ContainsFunc(c.Txs[i].Writes, func(w model.Write) bool { return w.Doc == ref.Doc }) {
				return c.TrailOf(ref.Doc)
			}
		}
	}
	return nil
}

func (w *world) replay(r *replica.Replica) *replica.Replica {
	log := w.logs[r.Space]
	from, _ := slices.BinarySearchFunc(log, r.Seq+1, func(e model.LogEntry, seq uint64) int { return cmp.Compare(e.Seq, seq) })
	for _, e := range log[from:] {
		if _, err := r.Apply(e.Seq, w.commit(e)); err != nil {
			w.t.Fatalf("replay: %v", err)
		}
	}
	return r
}

// receipts lists every handling in the log, in order, as "event outcome".
func (w *world) receipts(space string) []string {
	var out []string
	for _, rc := range w.allReceipts(space) {
		out = append(out, rc.Event+" "+string(rc.Outcome))
	}
	return out
}

func (w *world) allReceipts(space string) []*model.Receipt {
	var out []*model.Receipt
	for _, e := range w.logs[space] {
		for _, tx := range w.commit(e).Txs {
			if tx.Receipt != nil {
				out = append(out, tx.Receipt)
			}
		}
	}
	return out
}

func (w *world) receipt(space, event string) *model.Receipt {
	w.t.Helper()
	for _, rc := range w.allReceipts(space) {
		if rc.Event == event {
			return rc
		}
	}
	w.t.Fatalf("no receipt of %s; there are %v", event, w.receipts(space))
	return nil
}

// host is one runtime with one space in memory.
type host struct {
	w       *world
	t       tester
	cfg     Config
	program *Program
	core    *Space

	now      time.Duration
	wall     int64 // milliseconds since 1970; 0 for a host that does not set the time
	last     Ready // of the last Settle
	inFlight *Append
	offered  uint64 // how far the live reader has read the lane
	follows  map[Ref]uint64
	deaf     bool // mirrors deliver nothing

	// story has what the trace hooks reported, in order.
	story []string
	runs  map[string]int
}

// host loads a space from what is saved and logged, without owning it.
func (w *world) host(runtime string, p *Program, change ...func(*Config)) *host {
	w.t.Helper()
	h := &host{w: w, t: w.t, program: p, cfg: Config{Space: home, Runtime: runtime}}
	for _, f := range change {
		f(&h.cfg)
	}
	h.hook(&h.cfg.Trace)
	h.load()
	w.hosts = append(w.hosts, h)
	return h
}

// owner returns a host that has taken the space over.
func (w *world) owner(runtime string, p *Program, change ...func(*Config)) *host {
	w.t.Helper()
	h := w.host(runtime, p, change...)
	h.takeOver()
	return h
}

// attached returns a host that is attached beside the owner.
func (w *world) attached(runtime string, p *Program, change ...func(*Config)) *host {
	w.t.Helper()
	h := w.host(runtime, p, change...)
	h.core.Attach()
	h.settle()
	if !h.decide() || !h.core.Attached() {
		w.t.Fatalf("%s is not attached after it joined", runtime)
	}
	return h
}

func (h *host) hook(trace *Trace) {
	tell := func(format string, args ...any) { h.story = append(h.story, fmt.Sprintf(format, args...)) }
	trace.HandleEnd = func(i HandleInfo) {
		if i.Receipt == nil {
			tell("park %s", i.Event.ID)
		} else {
			tell("%s %s", i.Receipt.Outcome, i.Event.ID)
		}
	}
	trace.RunStart = func(i RunInfo) { h.runs[i.Node]++ }
	trace.RunEnd = func(i RunInfo) {
		switch {
		case i.Err != nil:
			tell("run %s: %v", i.Node, i.Err)
		case i.Changed:
			tell("run %s, changed", i.Node)
		default:
			tell("run %s", i.Node)
		}
	}
}

// load does what a newly started process does.
func (h *host) load() {
	h.t.Helper()
	r, err := replica.Load(h.cfg.Space, h.w.saved[h.cfg.Space])
	if err != nil {
		h.t.Fatalf("load: %v", err)
	}
	h.core, err = New(h.cfg, h.program, h.w.replay(r))
	if err != nil {
		h.t.Fatalf("new: %v", err)
	}
	h.inFlight, h.last = nil, Ready{}
	h.follows, h.runs, h.story = map[Ref]uint64{}, map[string]int{}, nil
	h.offerAfter(h.core.ReadLaneAfter())
	h.offered = h.laneEnd()
	h.core.LeftInStream(h.offered)
}

func (h *host) laneEnd() uint64 {
	lane := h.w.lanes[h.cfg.Space]
	if len(lane) == 0 {
		return 0
	}
	return lane[len(lane)-1].Lane
}

// offerAfter reads the lane from a place until there is no room.
func (h *host) offerAfter(after uint64) {
	for _, ev := range h.w.lanes[h.cfg.Space] {
		if ev.Lane > after && !h.core.Offer(ev) {
			return
		}
	}
}

// deliver is the live reader of the lane.
func (h *host) deliver() {
	for _, ev := range h.w.lanes[h.cfg.Space] {
		if ev.Lane > h.offered {
			h.core.Offer(ev)
			h.offered = ev.Lane
		}
	}
}

func (h *host) takeOver() {
	h.t.Helper()
	h.core.TakeOver()
	h.settle()
	if !h.decide() || !h.core.Owned() {
		h.t.Fatalf("%s does not own the space after taking it over", h.cfg.Runtime)
	}
}

// settle does what Ready requests, except for deciding the append.
func (h *host) settle() Ready {
	h.t.Helper()
	if h.wall != 0 {
		h.core.Clock(time.UnixMilli(h.wall))
	}
	r := h.core.Settle(h.now)
	h.last = r
	if r.Append != nil {
		if h.inFlight != nil {
			h.t.Fatalf("two appends under way")
		}
		if n := len(r.Append.Data); n > h.core.cfg.MaxCommitBytes {
			h.t.Fatalf("a commit of %d bytes, %d are allowed", n, h.core.cfg.MaxCommitBytes)
		}
		h.inFlight = r.Append
	}
	for _, ref := range r.Follow {
		if _, ok := h.follows[ref]; ok {
			h.t.Fatalf("%v is followed twice", ref)
		}
		h.follows[ref] = 0
	}
	for _, ref := range r.Unfollow {
		if _, ok := h.follows[ref]; !ok {
			h.t.Fatalf("%v is unfollowed and was not followed", ref)
		}
		delete(h.follows, ref)
	}
	if r.Refill != nil {
		h.offerAfter(r.Refill.After)
	}
	checkGraph(h.t, h.core.graph)
	return r
}

// settleAll settles until the space has nothing more to do now.
func (h *host) settleAll() {
	h.t.Helper()
	for range 1000 {
		if !h.settle().More {
			return
		}
	}
	h.t.Fatalf("Ready.More without end")
}

// decide makes the log accept or refuse the append under way, and passes on the answer. It reports whether
// there was an append and it was accepted.
func (h *host) decide() bool {
	h.t.Helper()
	a := h.inFlight
	if a == nil {
		return false
	}
	h.inFlight = nil
	seq := h.w.append(h.cfg.Space, a)
	if seq == 0 {
		h.core.Refuse()
		h.integrate()
		h.core.Resume()
		return false
	}
	if err := h.core.Confirm(seq); err != nil {
		h.t.Fatalf("confirm: %v", err)
	}
	return true
}

// refuse makes the append under way lose against a commit of another runtime.
func (h *host) refuse(writes ...model.Write) {
	h.t.Helper()
	if h.inFlight == nil {
		h.t.Fatalf("no append is under way that could be refused")
	}
	h.w.put(h.cfg.Space, writes...)
	h.decide()
}

func (h *host) integrate() {
	h.t.Helper()
	if err := h.core.Integrate(h.w.logs[h.cfg.Space]...); err != nil {
		h.t.Fatalf("integrate: %v", err)
	}
}

// mirror delivers followed documents that are new or have changed, and reports whether there were any.
func (h *host) mirror() bool {
	some := false
	for _, ref := range slices.SortedFunc(maps.Keys(h.follows), func(a, b Ref) int { return strings.Compare(a.Doc, b.Doc) }) {
		if seq := h.w.head(ref.Space) + 1; h.follows[ref] != seq && !h.deaf {
			h.follows[ref] = seq
			h.core.MirrorVia(ref.Space, ref.Doc, h.w.replica(ref.Space).Doc(ref.Doc).Value, h.w.trail(ref))
			some = true
		}
	}
	return some
}

// run does everything that can be done at this time.
func (h *host) run() {
	h.t.Helper()
	for range 10000 {
		h.deliver()
		before := len(h.story)
		h.settle()
		if h.decide() || h.mirror() || h.last.More || h.last.Refill != nil || len(h.story) != before {
			continue
		}
		return
	}
	h.t.Fatalf("the host does not become idle; the story ends with %v", h.story[len(h.story)-20:])
}

// advance lets time pass.
func (h *host) advance(d time.Duration) { h.now += d }

// checkpoint saves the confirmed state, unless a newer one is saved.
func (h *host) checkpoint() {
	h.t.Helper()
	c, err := h.core.Checkpoint()
	if err != nil {
		h.t.Fatalf("checkpoint: %v", err)
	}
	outdated := h.saveItems(c.Docs) || h.w.saved[h.cfg.Space].Mark.Seq > c.Mark.Seq
	if outdated {
		h.core.CheckpointFailed(c)
		return
	}
	st := h.w.saved[h.cfg.Space]
	st.Mark = c.Mark
	h.w.saved[h.cfg.Space] = st
}

// saveItems saves items, and reports whether a newer state of any is saved already.
func (h *host) saveItems(items []model.StateDoc) (outdated bool) {
	old := h.w.saved[h.cfg.Space]
	byKey := map[string]model.StateDoc{}
	for _, d := range slices.Concat(old.Docs, old.Pieces, old.Later, items) {
		if byKey[d.Doc].Seq > d.Seq {
			outdated = true
			continue
		}
		byKey[d.Doc] = d
	}
	st := model.SpaceState{Mark: old.Mark}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		list := st.ListOf(key)
		*list = append(*list, byKey[key])
	}
	h.w.saved[h.cfg.Space] = st
	return outdated
}

// told returns the story and clears it.
func (h *host) told() []string {
	s := h.story
	h.story = nil
	return s
}

func (h *host) value(doc string) string { return h.core.Value(doc).String() }

func (h *host) observe(doc string) {
	h.t.Helper()
	if err := h.core.Observe(doc); err != nil {
		h.t.Fatalf("observe: %v", err)
	}
}

// checkGraph compares the bookkeeping of the graph with a rebuild.
func checkGraph(t tester, g *graph) {
	t.Helper()
	for _, wrong := range g.audit() {
		t.Errorf("%s", wrong)
	}
}

// Helpers that keep the programs of the tests short.

type program struct {
	*Program
	t testing.TB
}

func newProgram(t testing.TB) program { return program{NewProgram("test"), t} }

func (p program) compute(output string, run func(tx *Tx) any) program {
	p.t.Helper()
	return p.add(NodeSpec{ID: output, Kind: Computation, Output: output, Run: func(tx *Tx) (model.Value, error) {
		return answer(run(tx))
	}})
}

func (p program) add(n NodeSpec) program {
	p.t.Helper()
	if err := p.Program.Add(n); err != nil {
		p.t.Fatal(err)
	}
	return p
}

func (p program) handle(stream string, h func(tx *Tx, ev *model.Event) any) program {
	p.t.Helper()
	err := p.Program.Handle(stream, func(tx *Tx, ev *model.Event) (model.Value, error) { return answer(h(tx, ev)) })
	if err != nil {
		p.t.Fatal(err)
	}
	return p
}

func answer(x any) (model.Value, error) {
	if err, ok := x.(error); ok {
		return model.Value{}, err
	}
	return model.Of(x)
}

// sum adds a computation of the sum of documents.
func (p program) sum(output string, inputs ...string) program {
	p.t.Helper()
	return p.compute(output, func(tx *Tx) any {
		total := int64(0)
		for _, in := range inputs {
			total += num(tx.Get(in))
		}
		return total
	})
}

// set adds a handler that stores the payload's fields in documents of the same names.
func (p program) set() program {
	p.t.Helper()
	return p.handle("set", func(tx *Tx, ev *model.Event) any {
		for k, v := range ev.Payload.All() {
			tx.Set(k, v)
		}
		return nil
	})
}

func num(v model.Value) int64 {
	n, _ := v.AsInt()
	return n
}

// put returns a write of a whole document.
func put(doc string, v any) model.Write { return model.Write{Doc: doc, Value: model.MustOf(v)} }

func wantStory(t tester, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("it did\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func wantValue(t tester, h *host, doc, want string) {
	t.Helper()
	if got := h.value(doc); got != want {
		t.Errorf("%s is %s, want %s", doc, got, want)
	}
}
