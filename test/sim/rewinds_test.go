package sim

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/internal/loss"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/internal/raced"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/replica"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// A store that goes back has a simulation of its own. The other one compares events with the log as they
// happen, and here the log changes afterwards. The final state is checked: every remaining event is handled
// once, no event twice, and a repeated send is handled if and only if the event was lost.

var (
	rewindSeeds = flag.Uint64("rewinds", max(1, uint64(raced.Fewer(int(defaultSeeds()/6), 2))), "how many seeds TestRewinds runs")
	rewindFirst = flag.Uint64("first-rewind", 1, "the first of them")
)

func TestRewinds(t *testing.T) {
	counts := map[string]int{}
	for i := range *rewindSeeds {
		collect(i)
		seed := *rewindFirst + i
		var w *past
		synctest.Test(t, func(*testing.T) { w = newPast(seed); w.run() })
		for _, text := range w.wrong {
			t.Errorf("seed %d: %s", seed, text)
		}
		if len(w.wrong) > 0 && *rewindSeeds == 1 {
			t.Log(strings.Join(w.minutes, "\n"))
		}
		for what, n := range w.counts { // any order: sums
			counts[what] += n
		}
	}
	for _, what := range []string{
		"rewinds", "rewinds to an older snapshot", "events that were lost", "events that were kept", "kills", "calls over a rewind", "values that went back", "purged logs", "lanes that were cut off", "lanes that were cut off while nothing ran",
		"stores that were replaced by an empty one", "lanes that were replaced by an empty one", "losses that were accepted",
		"logs that went back", "logs that went back with their lanes", "logs that went back while nothing ran", "positions that were given out again", "events that were sent again under another id",
	} {
		if *rewindSeeds >= 50 && counts[what] == 0 {
			t.Errorf("no %s: the run proves nothing", what)
		}
	}
	t.Log(counts)
}

// past is a deployment whose store goes back: the whole store to one moment, or lanes alone, or the log
// of a partition with its state.
type past struct {
	seed    uint64
	server  *membus.Server
	begin   time.Time
	spaces  []string
	rewinds []rewound
	events  []*sentEvent
	procs   map[string]*life
	client  *settle.Client
	seen    model.Value // by the watch, last
	history int64
	cuts    bool // only lanes lose their ends
	alone   bool // only the log and the state of a partition go back
	// replaced replaces the store by an empty one; with cuts, a lane by an empty one, which is refused until an
	// operator accepts the loss.
	replaced bool
	empty    kept

	mu      sync.Mutex
	wrong   []string
	minutes []string
	counts  map[string]int
	running sync.WaitGroup
}

// rewound is one return of the store, or of one partition with its lane.
type rewound struct {
	to, at    time.Duration
	partition int // allOfIt for the whole store
}

const allOfIt = -1

// sentEvent is an event, and when it was sent and acknowledged.
type sentEvent struct {
	space, id   string
	call        bool
	began, done time.Duration
	err         error
	seq         uint64 // in its lane
	mayBeLost   bool   // by a lane that has lost its end
}

// life is one life of a worker or a coordinator.
type life struct {
	bus  *membus.Bus
	kill func()
}

func newPast(seed uint64) *past {
	c := keyed(seed, "past")
	partitions, alone := 1+c.below(2), keyed(seed, "alone").below(3) == 0
	if alone {
		partitions = 2 + keyed(seed, "alone").below(2)
	}
	w := &past{
		seed: seed, server: membus.NewServer(membus.Config{Partitions: partitions}), begin: time.Now(), alone: alone,
		procs: map[string]*life{}, counts: map[string]int{}, history: oneOf(c, int64(0), 500, 2000),
	}
	w.server.Remember()
	w.replaced, w.empty = !alone && keyed(seed, "replaced").below(3) == 0, kept{Snapshot: w.server.Snapshot()}
	if w.cuts = c.below(2) == 0 && !alone; w.cuts || alone {
		w.history = 0 // a receipt that was purged can tell nothing
	}
	for i := range 2 + c.below(3) {
		w.spaces = append(w.spaces, spaceName(i))
	}
	return w
}

func (w *past) now() time.Duration { return time.Since(w.begin) }

// pass lets time pass.
func (w *past) pass(d time.Duration) { _ = pause.For(context.Background(), d) }

func (w *past) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.minutes = append(w.minutes, fmt.Sprintf("%9v ", w.now().Round(time.Microsecond))+fmt.Sprintf(format, args...))
}

func (w *past) violate(format string, args ...any) {
	w.note(format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

func (w *past) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what]++
}

// rough is the network of the simulation: it loses no requests, so only a return of the store loses
// data.
type rough struct {
	w    *past
	name string
}

func (n rough) Request(op membus.Op) membus.Trip {
	c := keyed(n.w.seed, "trip", n.name, op.Label, op.Space, op.Key, op.Nth, op.Try)
	return membus.Trip{There: c.about(time.Millisecond), Back: c.about(time.Millisecond), Patience: c.between(50*time.Millisecond, 80*time.Millisecond)}
}

func (n rough) Delivery(d membus.Delivery) time.Duration {
	return keyed(n.w.seed, "delivery", n.name, d.Label, d.Space, d.Key, d.Nth, d.Seq).about(time.Millisecond)
}

func (n rough) Waking(membus.Op) time.Duration { return 1 }
func (n rough) Step(membus.Step)               {}

// chaosOfRewinds is the duration of the operations and faults.
const chaosOfRewinds = 6 * time.Second

func (w *past) run() {
	for _, who := range []string{"w1", "w2", "c1"} {
		w.start(who)
	}
	bus := w.server.Dial("user", rough{w, "user"})
	client, err := settle.NewClient(bus, settle.ClientConfig{ID: "user", Logger: slog.New(w)})
	if err != nil {
		panic(err)
	}
	w.client = client
	ctx, cancel := context.WithCancel(context.Background())
	w.running.Go(func() { w.watch(ctx) })
	if w.replaced && w.cuts {
		w.running.Go(func() { w.operate(ctx) })
	}
	w.act(ctx)
	if w.replaced && w.cuts && keyed(w.seed, "replaced", "last").below(2) == 0 {
		w.rest(w.unanswered, "the client, before its lane is replaced,")
		w.rest(w.mustBeThere, "what was acknowledged before its lane was replaced")
		w.cutWhileNothingIsSent(keyed(w.seed, "replaced", "last lane").below(w.server.Partitions()))
	}
	w.rest(w.unanswered, "the client")
	w.rest(w.mustBeThere, "what was acknowledged")
	if w.cuts {
		w.pass(2 * port.StaleLeader) // a lane takes the names that it has lost when that is known for certain
	}
	w.sendAll(ctx)
	w.rest(w.everything, "what was sent again")
	w.check()
	cancel()
	client.Close()
	bus.Kill()
	for _, who := range slices.Sorted(maps.Keys(w.procs)) {
		w.procs[who].kill()
	}
	w.running.Wait()
}

// deed is an action at a time.
type deed struct {
	at time.Duration
	do func()
}

// act performs the actions of the seed.
func (w *past) act(ctx context.Context) {
	var deeds []deed
	add := func(at time.Duration, do func()) { deeds = append(deeds, deed{at, do}) }
	c := keyed(w.seed, "deeds")
	for i := range 20 + c.below(60) {
		e := &sentEvent{space: oneOf(c, w.spaces...), id: fmt.Sprint("e", i), call: c.below(3) == 0}
		w.events = append(w.events, e)
		add(c.between(0, chaosOfRewinds), func() { w.running.Go(func() { w.send(ctx, e) }) })
	}
	for range c.below(6) {
		who := oneOf(c, "w1", "w2", "c1")
		add(c.between(0, chaosOfRewinds), func() { w.restart(who, c.between(time.Millisecond, time.Second)) })
	}
	if w.cuts {
		for range 1 + c.below(2) {
			add(c.between(chaosOfRewinds/4, chaosOfRewinds), func() { w.cutLane(c.below(w.server.Partitions()), 1+c.below(12), c.below(2) == 0) })
		}
	}
	if w.replaced && !w.cuts {
		at := keyed(w.seed, "replaced", "at").between(chaosOfRewinds/4, chaosOfRewinds)
		deeds = append(deeds, deed{at, func() { w.goBack([]kept{w.empty}, false); w.count("stores that were replaced by an empty one") }})
	}
	var kept []kept
	for range w.unlessCuts(1 + c.below(3)) {
		add(c.between(0, chaosOfRewinds*2/3), func() { kept = append(kept, w.keep()) })
	}
	if w.alone {
		for range 1 + c.below(2) {
			add(c.between(chaosOfRewinds/4, chaosOfRewinds), func() { w.goBackIn(kept, c.below(w.server.Partitions()), c.below(2) == 0) })
		}
	}
	for range w.unlessCuts(w.unlessAlone(1 + c.below(2))) {
		older := c.below(4) == 0
		add(c.between(chaosOfRewinds/4, chaosOfRewinds), func() { kept = w.goBack(kept, older) })
	}
	slices.SortStableFunc(deeds, func(a, b deed) int { return int(a.at - b.at) })
	for _, d := range deeds {
		w.pass(d.at - w.now())
		d.do()
	}
}

func (w *past) unlessCuts(n int) int {
	if w.cuts {
		return 0
	}
	return n
}

// cutLane removes the last events of a lane, under running processes or while there are none.
func (w *past) cutLane(partition, lost int, alone bool) {
	all := []string{"w1", "w2", "c1"}
	if alone {
		w.count("lanes that were cut off while nothing ran")
		for _, who := range all {
			w.procs[who].kill()
		}
	}
	end := w.server.LaneEnd(partition)
	behind := max(end-min(end, uint64(lost)), 1) // an empty one is refused until an operator accepts the loss
	if w.replaced {
		behind = 0
		w.count("lanes that were replaced by an empty one")
	}
	for _, e := range w.events {
		if model.PartitionOf(e.space, w.server.Partitions()) != partition {
			continue
		}
		n, _ := w.times(e.space).Get("add " + e.id).AsInt()
		w.mu.Lock()
		if n == 0 && e.began > 0 && (e.done == 0 || e.seq > behind) {
			e.mayBeLost = true
		}
		w.mu.Unlock()
	}
	w.note("lane %d loses what is behind %d, of %d (alone: %v)", partition, behind, end, alone)
	w.server.CutLane(partition, behind)
	w.count("lanes that were cut off")
	if !alone {
		return
	}
	w.pass(keyed(w.seed, "dark", int(end)).between(time.Millisecond, 500*time.Millisecond))
	for _, who := range all {
		w.start(who)
	}
}

// operate sometimes accepts losses that workers refuse, as an operator does.
func (w *past) operate(ctx context.Context) {
	bus := w.server.Dial("operator", rough{w, "operator"})
	defer bus.Kill()
	for ; ctx.Err() == nil; w.pass(keyed(w.seed, "operator", int(w.now())).between(time.Second, 5*time.Second)) {
		for partition := range w.server.Partitions() {
			list, err := loss.InPartition(ctx, bus, partition)
			for _, l := range list {
				if err == nil {
					w.note("the operator accepts %v", &l.LossError)
					w.count("losses that were accepted")
					err = l.Accept(ctx, bus, nil)
				}
			}
			if err != nil && ctx.Err() == nil {
				w.note("the operator is told: %v", err)
			}
		}
	}
}

// cutWhileNothingIsSent replaces a lane by an empty one while there is no coordinator, and so stays empty until an operator
// accepts the loss.
func (w *past) cutWhileNothingIsSent(partition int) {
	w.cutLane(partition, 1, true)
	w.procs["c1"].kill()
	w.pass(2 * port.StaleLeader)
	w.start("c1")
}

// kept is a snapshot, and when it was taken.
type kept struct {
	*membus.Snapshot
	at time.Duration
}

func (w *past) keep() kept {
	w.note("a snapshot is taken")
	return kept{w.server.Snapshot(), w.now()}
}

// goBack restores the store from the newest snapshot, or from the oldest, and returns the remaining
// snapshots.
func (w *past) goBack(list []kept, oldest bool) []kept {
	if len(list) == 0 {
		return nil
	}
	n := len(list)
	if oldest && n > 1 {
		n = 1
		w.count("rewinds to an older snapshot")
	}
	to := list[n-1]
	w.note("the store goes back to %v", to.at)
	w.rewinds = append(w.rewinds, rewound{to.at, w.now(), allOfIt})
	w.server.GoBack(to.Snapshot)
	w.count("rewinds")
	return list[:n]
}

func (w *past) start(who string) {
	name := fmt.Sprintf("%s@%d", who, w.now())
	bus := w.server.Dial(name, rough{w, name})
	w.note("%s starts", name)
	c := keyed(w.seed, name)
	if who[0] == 'c' {
		co := coordinator.New(bus, coordinator.Config{Save: c.about(100 * time.Millisecond), Logger: slog.New(w)})
		co.Start()
		w.procs[who] = &life{bus, func() { bus.Kill(); w.running.Go(co.Stop) }}
		return
	}
	cfg := worker.Config{
		ID: who, Programs: func(string) (*space.Program, error) { return twice(w), nil }, Logger: slog.New(w),
		Options: worker.Options{Heartbeat: 50 * time.Millisecond, MemberTTL: 400 * time.Millisecond, Checkpoint: c.about(100 * time.Millisecond), Idle: c.about(300 * time.Millisecond)},
	}
	if w.history > 0 {
		cfg.HistoryBytes, cfg.PurgeDelay, cfg.LeastMarkers = w.history, 1, 1
	}
	wk, err := worker.New(bus, cfg)
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.procs[who] = &life{bus, func() { bus.Kill(); cancel(); wk.Kill() }}
	w.running.Go(func() { // ends when the worker serves, or is killed
		if err := wk.Start(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, model.ErrStopped) {
			w.violate("%s does not start: %v", name, err)
		}
	})
}

func (w *past) restart(who string, after time.Duration) {
	w.note("%s is killed", who)
	w.count("kills")
	w.procs[who].kill()
	w.pass(after)
	w.start(who)
}

// twice returns a program in which each event records that it was handled, and sends an event to the
// next space.
func twice(w *past) *space.Program {
	p := space.NewProgram("twice")
	handle := func(stream string, then func(tx *space.Tx, ev *model.Event)) {
		err := p.Handle(stream, func(tx *space.Tx, ev *model.Event) (model.Value, error) {
			key := ev.ID
			if then == nil {
				key, _ = ev.Payload.AsString()
			}
			n, _ := tx.Get("seen", stream+" "+key).AsInt()
			tx.Set("seen", n+1, stream+" "+key)
			if then != nil {
				then(tx, ev)
			}
			return model.Int(n + 1), nil
		})
		if err != nil {
			panic(err)
		}
	}
	handle("add", func(tx *space.Tx, ev *model.Event) { tx.Send(w.next(tx.Space()), "got", ev.ID) })
	handle("got", nil)
	err := p.Add(space.NodeSpec{ID: "total", Kind: space.Computation, Output: "total", Run: func(tx *space.Tx) (model.Value, error) {
		var n int64
		for _, v := range tx.Get("seen").All() { // a sum
			k, _ := v.AsInt()
			n += k
		}
		return model.Int(n), nil
	}})
	if err != nil {
		panic(err)
	}
	return p
}

func (w *past) next(of string) string {
	return w.spaces[(slices.Index(w.spaces, of)+1)%len(w.spaces)]
}

func (w *past) send(ctx context.Context, e *sentEvent) {
	epoch := w.server.Epoch()
	out := settle.Outgoing{Space: e.space, Stream: "add", ID: settle.ID(e.id)}
	began := w.now()
	w.mu.Lock()
	e.began = began
	w.mu.Unlock()
	var err error
	if e.call {
		_, err = w.client.Call(ctx, out)
		if w.server.Epoch() != epoch {
			w.count("calls over a rewind")
		}
	} else {
		var r model.SendResult
		r, err = w.client.Send(ctx, out)
		w.mu.Lock()
		e.seq = r.Seq
		w.mu.Unlock()
	}
	w.mu.Lock()
	e.began, e.done, e.err = began, w.now(), err
	w.mu.Unlock()
	w.note("%s to %s is acknowledged, sent at %v: %v", e.id, e.space, began, err)
}

// watch watches one document throughout.
func (w *past) watch(ctx context.Context) {
	var last uint64
	for u, err := range w.client.Space(w.spaces[0]).Watch(ctx, "total") {
		if err != nil {
			w.violate("the watch ended: %v", err)
			return
		}
		w.mu.Lock()
		w.seen = u.Value
		w.mu.Unlock()
		if u.Revision < last {
			w.count("values that went back")
		}
		last = u.Revision
	}
}

// isKept reports whether an event must exist whatever the store has lost: it was acknowledged before the
// snapshot, or sent after its restoration.
func (w *past) isKept(e *sentEvent) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return e.done > 0 && e.err == nil && !e.mayBeLost && !slices.ContainsFunc(w.rewinds, func(r rewound) bool { return e.done > r.to && e.began < r.at && w.concerns(r, e) })
}

// times returns how often each event was handled in a space, by stream and id.
func (w *past) times(of string) model.Value {
	r, err := replica.Load(of, w.server.LoadState(of))
	for _, entry := range w.server.ReadLog(of, r.Seq, 1<<30) {
		var c *model.Commit
		if err == nil {
			err = entry.Follows(r.Seq)
		}
		if err == nil {
			c, err = model.DecodeCommit(entry.Data)
		}
		if err == nil {
			_, err = r.Apply(entry.Seq, c)
		}
	}
	if err != nil {
		w.violate("space %s: %v", of, err)
	}
	return r.Doc("seen").Value
}

// missing returns the events that should have been handled and have not, and missing sends of handled
// ones.
func (w *past) missing(must func(*sentEvent) bool) (list []string) {
	times := map[string]model.Value{}
	for _, s := range w.spaces {
		times[s] = w.times(s)
	}
	for _, e := range w.events {
		if !must(e) {
			continue
		}
		for _, at := range []struct{ space, key string }{{e.space, "add " + e.id}, {w.next(e.space), "got " + e.id}} {
			if n, _ := times[at.space].Get(at.key).AsInt(); n == 0 {
				list = append(list, at.space+": "+at.key)
			}
		}
	}
	return list
}

// unanswered returns the events whose outcome the client does not know.
func (w *past) unanswered() (list []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if e.done == 0 {
			list = append(list, e.id)
		}
	}
	return list
}

func (w *past) mustBeThere() []string { return w.missing(w.isKept) }

func (w *past) everything() []string { return w.missing(func(*sentEvent) bool { return true }) }

// rest waits until nothing is missing.
func (w *past) rest(missing func() []string, what string) {
	limit := w.now() + 3*time.Minute
	for {
		list := missing()
		if len(list) == 0 {
			return
		}
		if w.now() > limit {
			w.violate("%s does not come to rest; missing: %s", what, strings.Join(list, ", "))
			return
		}
		w.pass(100 * time.Millisecond)
	}
}

// sendAll sends every event again, like a client that does not know what was lost.
func (w *past) sendAll(ctx context.Context) {
	for _, e := range w.events {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		r, err := w.client.Send(ctx, settle.Outgoing{Space: e.space, Stream: "add", ID: settle.ID(e.id)})
		cancel()
		switch kept := w.isKept(e); {
		case err != nil:
			w.violate("%s sent again: %v", e.id, err)
		case kept && !r.Duplicate:
			w.violate("%s sent again is taken for new", e.id)
		case r.Duplicate:
			w.count("events that were kept")
		default:
			w.count("events that were lost")
		}
	}
}

// check checks the final state: everything is handled once, the watch shows the sum, nothing was
// refused.
func (w *past) check() {
	w.pass(5 * time.Second)
	for i, of := range w.spaces {
		var sum int64
		for key, v := range w.times(of).All() { // any order: each on its own
			n, _ := v.AsInt()
			sum += n
			if n != 1 {
				w.violate("space %s has handled %s %d times", of, key, n)
			}
		}
		w.mu.Lock()
		shown := w.seen
		w.mu.Unlock()
		if i == 0 && !model.Equal(shown, model.Int(sum)) {
			w.violate("the watch shows %s of space %s, want %d", shown, of, sum)
		}
		if log := w.server.ReadLog(of, 0, 1); len(log) > 0 && log[0].Prev > 0 {
			w.count("purged logs")
		}
	}
	for _, d := range w.server.ReadDead("", 0, 100) {
		if w.alone && strings.Contains(d.Error, "its origin has gone back") {
			w.count("events of lost commits that were refused")
			continue
		}
		w.violate("a dead letter: %+v", d)
	}
	w.countRepeated()
}

// Enabled, WithAttrs, WithGroup and Handle add log records to the minutes.
func (w *past) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (w *past) WithAttrs([]slog.Attr) slog.Handler               { return w }
func (w *past) WithGroup(string) slog.Handler                    { return w }

func (w *past) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	if strings.Contains(text, "given out again") {
		w.count("positions that were given out again")
	}
	w.note("%s %s", r.Level, text)
	return nil
}
