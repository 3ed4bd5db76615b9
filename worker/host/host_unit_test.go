package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
	"github.com/settlehq/settle/space"
)

// owned is a host whose space is taken over, in the log and saved.
func owned(t *testing.T) *host {
	t.Helper()
	h := newTestHost(t, 0)
	h.core.TakeOver()
	if r := h.core.Settle(0); r.Append == nil {
		t.Fatal("the host does not take over")
	}
	if err := h.core.Confirm(1); err != nil {
		t.Fatal(err)
	}
	h.saver.saved = 1
	return h
}

// Unhandled events hold the lane position back.
func TestPublish_WaitingEventsHoldTheLaneBack(t *testing.T) {
	h := owned(t)
	h.publish()
	if got := h.inbox.laneDone(); got != allDone {
		t.Fatalf("an idle space is done up to %d", got)
	}
	h.inbox.leave(7) // the inbox was full, and is empty by now
	h.publish()
	if got := h.inbox.laneDone(); got != 6 {
		t.Errorf("event 7 was left in the stream, and the space is done up to %d", got)
	}
	h = owned(t)
	h.publish()
	if !h.inbox.tryOffer(model.Message{Space: "s", Stream: "x", ID: "e", Seq: 9}) {
		t.Fatal("the inbox has no room")
	}
	h.publish()
	if got := h.inbox.laneDone(); got != 8 {
		t.Errorf("event 9 waits in the inbox, and the space is done up to %d", got)
	}
}

// An error that is joined with harmless ones is an error.
func TestSaver_AnErrorBesideOutdatedItemsIsAnError(t *testing.T) {
	other := errors.New("the store is out of order")
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"outdated":                   {model.ErrOutdated, true},
		"two":                        {errors.Join(model.ErrOutdated, fmt.Errorf("doc: %w", model.ErrOutdated)), true},
		"beside another":             {errors.Join(model.ErrOutdated, other), false},
		"behind another":             {errors.Join(other, model.ErrOutdated), false},
		"beside several joined ones": {errors.Join(model.ErrOutdated, errors.Join(model.ErrOutdated, other)), false},
		"another":                    {other, false},
	} {
		if got := allAre(c.err, model.ErrOutdated); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Observations that could not be saved are part of the next checkpoint, unless there are newer ones.
func TestSaver_UnsavedObservationsAreSavedLater(t *testing.T) {
	h := newTestHost(t, 0)
	h.saver.noted = noted{}
	h.saver.noted["node.b"] = model.StateDoc{Doc: "node.b", Seq: 9}
	h.saver.noted["node.c"] = model.StateDoc{Doc: "node.c", Seq: 3}
	c := unsavedState{observed: []model.StateDoc{{Doc: "node.a", Seq: 5}, {Doc: "node.b", Seq: 5}, {Doc: "node.c", Seq: 5}}}
	h.saver.settleObserved(&c, errors.New("the store is out of order"))
	got := map[string]uint64{}
	for _, d := range h.saver.noted.drain() {
		got[d.Doc] = d.Seq
	}
	if len(got) != 3 || got["node.a"] != 5 || got["node.b"] != 9 || got["node.c"] != 5 {
		t.Errorf("noted are %v", got)
	}
}

// A marker is forgotten only if an old enough checkpoint covers the deletion, in its present revision, and
// only for items that may come back without harm.
func TestMarkers_WhichMayBePurged(t *testing.T) {
	marker := func(key string, seq, rev uint64) model.StateDoc { return model.StateDoc{Doc: key, Seq: seq, Rev: rev} }
	var m markers
	names := func(list []model.StateDoc) (out []string) {
		for _, d := range list {
			out = append(out, d.Doc)
		}
		return out
	}
	m.note([]model.StateDoc{marker("a", 5, 50), marker("b", 9, 90), marker(model.DueKey, 1, 10), marker(model.StateKeyOfNode("n"), 4, 40)})
	if got, want := names(m.covered(6, 10)), model.StateKeyOfNode("n"); len(got) != 1 || got[0] != want {
		t.Errorf("while no mark has a floor, a checkpoint at 6 covers %v, want %v", got, want)
	}
	m.raised(100, 6)
	if got := names(m.covered(5, 10)); slices.Contains(got, "a") {
		t.Errorf("no mark up to 5 has the floor, and a checkpoint there covers %v", got)
	}
	if got, want := names(m.covered(6, 10)), []string{"a", model.StateKeyOfNode("n")}; len(got) != 2 || !slices.Contains(got, want[0]) || !slices.Contains(got, want[1]) {
		t.Errorf("a checkpoint at 6 covers %v, want %v", got, want)
	}
	old := m.covered(6, 10)
	m.note([]model.StateDoc{marker("a", 6, 60)}) // created again, and deleted again
	m.forget(old)
	if got := names(m.covered(6, 10)); len(got) != 1 || got[0] != "a" {
		t.Errorf("after the older marker of a was purged, the markers are %v", got)
	}
	m.forget([]model.StateDoc{marker("a", 7, 70)})
	m.forget([]model.StateDoc{marker("a", 5, 50)})
	if got := names(m.covered(6, 10)); len(got) != 1 {
		t.Errorf("a marker of another revision was forgotten: %v", got)
	}
	m.note([]model.StateDoc{{Doc: "a", Seq: 7, Rev: 70, Data: []byte("1")}})
	if got := names(m.covered(10, 10)); len(got) != 1 || got[0] != "b" {
		t.Errorf("a exists again, and the markers are %v", got)
	}
}

func TestLease_IsBounded(t *testing.T) {
	l, now := leases{}, time.Now()
	l.renew(model.Lease{Space: "s", Doc: "d", Watcher: "w", TTL: 1000 * time.Hour}, now)
	if until := l.of["s"][leaseKey{"d", "w"}]; until.After(now.Add(maxLease)) {
		t.Errorf("the lease holds for %v, want at most %v", until.Sub(now), maxLease)
	}
}

// A partition has so many observations; those that it has can be renewed, and when they end there is room.
func TestLease_ThereAreSoMany(t *testing.T) {
	l, now := leases{}, time.Now()
	lease := func(i int) model.Lease {
		return model.Lease{Space: "s" + strconv.Itoa(i%7), Doc: "d", Watcher: strconv.Itoa(i), TTL: time.Second}
	}
	for i := range maxLeases {
		if had, ok := l.renew(lease(i), now); had || !ok {
			t.Fatalf("lease %d: had %v, room %v", i, had, ok)
		}
	}
	if had, ok := l.renew(lease(maxLeases), now); had || ok {
		t.Errorf("one too many: had %v, room %v", had, ok)
	}
	if _, ok := l.renew(model.Lease{Space: "s1", Watcher: "attached", TTL: time.Second}, now); !ok {
		t.Error("there is no room for an attached runtime")
	}
	l.end("s1", leaseKey{"", "attached"})
	if had, ok := l.renew(lease(1), now); !had || !ok {
		t.Errorf("a renewal: had %v, room %v", had, ok)
	}
	if l.end("s1", leaseKey{"d", "0"}) || !l.end("s1", leaseKey{"d", "1"}) || l.end("s1", leaseKey{"d", "1"}) {
		t.Error("a lease ends twice, or another one")
	}
	if had, ok := l.renew(lease(maxLeases), now); had || !ok {
		t.Errorf("in the place of another: had %v, room %v", had, ok)
	}
	if l.n != maxLeases {
		t.Errorf("%d are counted", l.n)
	}
}

// A space that is observed is not evicted, even if its host does not know of the observer yet.
func TestRest_AnObservedSpaceIsNotEvicted(t *testing.T) {
	h := owned(t)
	h.publish()
	p := testPartition(t.Context(), &listBus{})
	p.hosts["s"] = h
	p.leases.renew(model.Lease{Space: "s", Doc: "d", Watcher: "w", TTL: time.Minute}, time.Now())
	if p.leave(h) {
		t.Error("the space was evicted")
	}
	p.leases.end("s", leaseKey{"d", "w"})
	if !p.leave(h) {
		t.Error("the space stays after its observer has left")
	}
}

// A space that should make room gets work, so another one makes room instead.
func TestAwake_AnotherSpaceMakesRoomWhenOneGetsWork(t *testing.T) {
	a := &residency{limit: 2, hosts: 2}
	one, other := &resident{space: "a", wake: func() {}}, &resident{space: "b", wake: func() {}}
	a.rests(one)
	a.rests(other)
	if a.admit(loadRequest{"c", nil, false}) {
		t.Fatal("a space is admitted beyond the limit")
	}
	if !one.dismissed.Load() || other.dismissed.Load() {
		t.Fatal("the first of two must leave")
	}
	a.markActive(one, false)
	if one.dismissed.Load() || !other.dismissed.Load() {
		t.Error("the first has work, and the second need not leave")
	}
}

// Transactions that were undone are retried in order, before later ones.
func TestDirects_AreRetriedInOrder(t *testing.T) {
	h := newTestHost(t, 0)
	core, err := newTestCore("w", ledger.Limits{ConflictWindow: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	h.core, h.graph = core, h.newGraphParts(core)
	first, second, third := &direct{ctx: t.Context()}, &direct{ctx: t.Context()}, &direct{ctx: t.Context()}
	h.graph.directs.undecided = map[uint64]*direct{4: first, 5: second}
	h.graph.directs.waiting = []*direct{third}
	h.graph.directs.redo(core, h.now(), []uint64{4, 5})
	if got := h.graph.directs.waiting; !slices.Equal(got, []*direct{first, second, third}) {
		t.Errorf("the transactions wait in the order %v", got)
	}
}

// followBus is a bus on which the log is followed.
type followBus struct {
	Bus
	after chan uint64
}

func (b *followBus) FollowSpace(ctx context.Context, _ string, after uint64, _ func(model.LogEntry)) error {
	b.after <- after
	<-ctx.Done()
	return ctx.Err()
}

func (b *followBus) Epoch() uint64 { return 0 }

func TestRemoteCommits_AreFollowedFromTheSpacesPosition(t *testing.T) {
	h := owned(t)
	b := &followBus{after: make(chan uint64, 1)}
	h.loop.bus = b
	h.remote.attend(h.core, true)
	if after := <-b.after; after != 1 {
		t.Errorf("the log is followed after %d, want 1", after)
	}
	h.remote.attend(h.core, false)
	h.env.tasks.Wait()
}

// Commits that were purged before an attachment has received them must be in its state, or the attachment
// ends.
func TestRemoteCommits_PurgedBeforeTheirReceptionEndAnAttachment(t *testing.T) {
	for after, ends := range map[uint64]bool{0: false, 1: true, 2: true} {
		h := owned(t)
		h.env.cfg.Logger = slog.New(slog.DiscardHandler)
		passed := make(chan uint64)
		go func() { passed <- h.remote.passOver(h.ctx, h.core, after, model.ErrPurged) }() // ends with the call
		<-h.inbox.wake
		h.inbox.mu.Lock()
		calls := h.inbox.calls
		h.inbox.mu.Unlock()
		for _, f := range calls {
			f()
		}
		<-passed
		if (h.failed != nil) != ends {
			t.Errorf("the space is at 1, and the purge begins after %d: %v", after, h.failed)
		}
	}
}

// A late value of a mirror that has ended does not replace the value of its successor.
func TestMirror_ALateValueOfAnEndedMirrorIsIgnored(t *testing.T) {
	h := newTestHost(t, 0)
	ref := Ref{Space: "t", Doc: "d"}
	over, end := context.WithCancel(t.Context())
	end()
	h.inbox.mirror(ref, mirrored{ctx: t.Context(), value: model.Int(2)})
	h.inbox.mirror(ref, mirrored{ctx: over, value: model.Int(1)})
	if got := h.inbox.mirrored[ref].value.String(); got != "2" {
		t.Errorf("the space receives %s, want 2", got)
	}
}

// headBus returns the end of a space's log.
type headBus struct {
	Bus
	head uint64
}

func (b *headBus) Head(context.Context, string) (uint64, error) { return b.head, nil }

// One commit that a loaded space has not received is enough to make it read the log.
func TestMissedCommits_OneIsEnough(t *testing.T) {
	for head, looks := range map[uint64]bool{1: false, 2: true, 3: true} {
		h := owned(t)
		h.saver.stored.seen.Store(1)
		m := missedCommits{last: 5}
		if err := m.look(t.Context(), &headBus{head: head}, []*storedSpace{&h.saver.stored}, 9); err != nil {
			t.Fatal(err)
		}
		if n := len(h.inbox.calls); (n == 1) != looks {
			t.Errorf("the space has seen 1 and the log ends at %d: %d calls", head, n)
		}
	}
}

// logBus is a bus with a readable log.
type logBus struct {
	Bus
	log []model.LogEntry
}

func (b *logBus) ReadLog(_ context.Context, _ string, after uint64, limit int) ([]model.LogEntry, error) {
	rest := b.log[min(after, uint64(len(b.log))):]
	return rest[:min(len(rest), limit)], nil
}

// A space reads all commits of other runtimes, even more than fit into one read.
func TestRemoteCommits_AHostReadsAllThatItHasMissed(t *testing.T) {
	h := newTestHost(t, 0)
	h.core.TakeOver()
	own := h.core.Settle(0).Append
	b := &logBus{log: []model.LogEntry{{Space: "s", Seq: 1, ID: own.Commit.ID(), Data: own.Data}}}
	other, err := newTestCore("other", ledger.Limits{})
	if err == nil {
		err = errors.Join(h.core.Confirm(1), other.Integrate(b.log...))
	}
	if err != nil {
		t.Fatal(err)
	}
	other.Attach()
	for len(b.log) < readPage+2 {
		a := other.Settle(0).Append
		b.log = append(b.log, model.LogEntry{Space: "s", Seq: uint64(len(b.log) + 1), Prev: uint64(len(b.log)), ID: a.Commit.ID(), Data: a.Data})
		if err := other.Confirm(uint64(len(b.log))); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Transact("app", func(tx *space.Tx) error { tx.Set("n", len(b.log)); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	h.loop.bus = b
	for h.remote.readMissed(h.core); ; {
		h.env.tasks.Wait()
		calls := h.inbox.calls
		if h.inbox.calls = nil; len(calls) == 0 {
			break
		}
		for _, f := range calls {
			f()
		}
	}
	if got := h.core.Seq(); got != uint64(len(b.log)) || h.failed != nil {
		t.Errorf("it has read up to %d of %d: %v", got, len(b.log), h.failed)
	}
}

// A read that was current as of a commit that was refused since starts again: the commit that it waited for
// never lands.
func TestRead_RestartsAfterARefusal(t *testing.T) {
	h := owned(t)
	r := &documentRead{ctx: t.Context(), docs: []string{"n"}, current: true, done: make(chan []model.DocumentState, 1), seen: []Freshness{{}}, due: 5}
	if err := h.graph.core.Observe("n"); err != nil {
		t.Fatal(err)
	}
	h.core.Settle(0)
	h.graph.reads.refused = 1
	if !h.tryAnswer(r) {
		t.Error("the read waits for refused appends")
	}
}

// unready is a core whose documents have yet to be computed.
type unready struct{ Graph }

func (unready) Freshness(string) Freshness { return Freshness{Pending: true} }

// A current read that was up to date, and waits for its commit to be confirmed, looks again if another runtime has
// committed since: what it would answer with may follow from nothing in the log.
func TestRead_LooksAgainAfterACommitOfAnotherRuntime(t *testing.T) {
	h := newTestHost(t, 0)
	h.core.TakeOver()
	takeover := h.core.Settle(0).Append
	log := replica.New("s")
	_, err := log.Apply(1, takeover.Commit)
	if err := errors.Join(err, h.core.Confirm(1)); err != nil {
		t.Fatal(err)
	}
	other, err := newTestCoreOf("other", ledger.Limits{}, log)
	if err != nil {
		t.Fatal(err)
	}
	other.Attach()
	joins := other.Settle(0).Append
	read := func() *documentRead {
		return &documentRead{ctx: t.Context(), docs: []string{"n"}, current: true, done: make(chan []model.DocumentState, 1), seen: []Freshness{{}}}
	}
	h.graph.core = unready{h.graph.core}
	if !h.tryAnswer(read()) {
		t.Error("a read that was up to date is not answered")
	}
	if err := h.integrator().Integrate(model.LogEntry{Space: "s", Seq: 2, Prev: 1, ID: joins.Commit.ID(), Data: joins.Data}); err != nil {
		t.Fatal(err)
	}
	if h.tryAnswer(read()) {
		t.Error("a read is answered with what was seen before another runtime committed")
	}
}

// Another runtime commits first. The host reads its commit, and then takes the space over.
func TestHost_ARefusedTakeoverIsRetried(t *testing.T) {
	h := newTestHost(t, 0)
	h.core.TakeOver()
	if h.core.Settle(0).Append == nil {
		t.Fatal("the host does not take over")
	}
	other, err := newTestCore("other", ledger.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	other.Attach()
	a := other.Settle(0).Append
	h.env.bus = &logBus{log: []model.LogEntry{{Space: "s", Seq: 1, ID: a.Commit.ID(), Data: a.Data}}}
	h.core.Refuse()
	if err := h.catchUp(); err != nil {
		t.Fatal(err)
	}
	if r := h.core.Settle(0); r.Append == nil || !r.Append.Commit.Takeover || r.Append.Expect != 1 {
		t.Errorf("then the host appends %+v", r.Append)
	}
}

// purgeBus has the mark of one space.
type purgeBus struct {
	headBus
	stored time.Time
	below  uint64
}

func (b *purgeBus) Partitions() int { return 1 }

func (b *purgeBus) LoadMark(context.Context, string) (model.StateDoc, time.Time, error) {
	return model.StateDoc{Seq: b.head}, b.stored, nil
}

func (b *purgeBus) PurgeLog(_ context.Context, _ string, below uint64) error {
	b.below = below
	return nil
}

// The log of an evicted space is purged once its checkpoint is old enough.
func TestRetention_TheCheckpointOfAnEvictedSpaceMustBeOldEnough(t *testing.T) {
	now := time.Now()
	for age, want := range map[time.Duration]uint64{time.Second: 0, time.Minute: 7, time.Hour: 7} {
		b := &purgeBus{headBus: headBus{head: 7}, stored: now.Add(-age)}
		r := &retention{bus: b, cfg: &Config{Options: Options{PurgeDelay: time.Minute}}}
		if err := r.sleeper(t.Context(), "s", 100, now); err != nil || b.below != want {
			t.Errorf("with a checkpoint of age %v: purged below %d, %v, want %d", age, b.below, err, want)
		}
	}
}

// After one event that was left in the stream, all later ones are left, even if there is room by then: the
// order is kept.
func TestInbox_AfterOneThatWasLeftAllAreLeft(t *testing.T) {
	h := newTestHost(t, 0)
	h.inbox.leave(5)
	if !h.inbox.tryOffer(model.Message{Space: "s", Stream: "x", ID: "e6", Seq: 6}) {
		t.Error("the reader waits for room although one event was left already")
	}
	if len(h.inbox.events) != 0 || h.inbox.left != 6 {
		t.Errorf("%d events in the inbox, left up to %d", len(h.inbox.events), h.inbox.left)
	}
}

// While spaces with events wait, one in eight that is loaded is to be read; if it is not the time of a read yet, its turn is not lost for the others.
func TestResidency_ReadsHaveATurn(t *testing.T) {
	served := func(pace *rate.Limiter) (names []string) {
		r := &residency{pace: pace}
		for i := range 40 {
			r.queue = append(r.queue, loadRequest{space: "event" + strconv.Itoa(i)})
		}
		for i := range 3 {
			r.reads = append(r.reads, loadRequest{space: "read" + strconv.Itoa(i), lookup: true})
		}
		for range 24 {
			w, ok := r.next()
			if !ok {
				t.Fatal("nothing is loaded")
			}
			names = append(names, w.space)
		}
		return names
	}
	count := func(names []string) (reads int) {
		for _, n := range names {
			if strings.HasPrefix(n, "read") {
				reads++
			}
		}
		return reads
	}
	if names := served(nil); count(names) != 3 {
		t.Errorf("loaded are %v", names)
	}
	if names := served(rate.NewLimiter(0, 1)); count(names) != 1 || names[23] != "event22" {
		t.Errorf("with a pace, loaded are %v", names)
	}
}

// storedCore is a core with documents that are stored before the floor that is wanted.
type storedCore struct {
	savedCore
	before []string
	looks  int
	floor  uint64
}

func (c *storedCore) StoredBefore(uint64, map[string]uint64) []string { c.looks++; return c.before }
func (c *storedCore) RaiseFloor(rev uint64)                           { c.floor = rev }
func (c *storedCore) Again(ids []string, _ map[string]uint64) (docs []model.StateDoc) {
	for _, id := range ids {
		docs = append(docs, model.StateDoc{Doc: id})
	}
	return docs
}

// The floor is raised when a checkpoint was saved after which no document is left before it: a document of the checkpoint may
// have been refused. It is not raised for fewer markers than documents that have to be stored again.
func TestRaising_RaisesTheFloorWhenAllIsStoredBehindIt(t *testing.T) {
	r, core, m := &raising{least: 1}, &storedCore{before: []string{"a", "b"}}, &markers{}
	m.note([]model.StateDoc{{Doc: "gone", Seq: 5, Rev: 50}})
	if docs := r.again(core, m, nil); len(docs) != 0 {
		t.Errorf("for one marker, %d documents are stored again", len(docs))
	}
	if r.stored(core, nil); core.floor != 0 {
		t.Errorf("and the floor is %d", core.floor)
	}
	m.note([]model.StateDoc{{Doc: "too", Seq: 6, Rev: 60}})
	if docs := r.again(core, m, nil); len(docs) != 2 || core.floor != 0 {
		t.Errorf("for two, %d are stored again, and the floor is %d before that", len(docs), core.floor)
	}
	core.before = []string{"a"} // an earlier owner had stored it
	if r.stored(core, nil); core.floor != 0 {
		t.Errorf("the floor is %d, and a document is stored before it", core.floor)
	}
	if docs := r.again(core, m, nil); len(docs) != 1 {
		t.Errorf("%d more are stored again, want 1", len(docs))
	}
	core.before = nil
	if r.stored(core, nil); core.floor != 60 {
		t.Errorf("the floor is %d, want that of the last marker", core.floor)
	}
}

// As long as there are more documents before the markers, they are not all looked at for each checkpoint.
func TestRaising_LooksAtTheDocumentsWhenMarkersHaveDoubled(t *testing.T) {
	r, core, m := &raising{least: 1}, &storedCore{before: make([]string, 1000)}, &markers{}
	for i := range uint64(1000) {
		m.note([]model.StateDoc{{Doc: "d" + strconv.FormatUint(i, 10), Seq: i + 1, Rev: i + 1}})
		if docs := r.again(core, m, nil); len(docs) != 0 && i < 999 {
			t.Fatalf("for %d markers, %d documents are stored again", i+1, len(docs))
		}
	}
	if docs := r.again(core, m, nil); len(docs) != floorStep { // and the rest with later ones
		t.Errorf("a checkpoint stores %d documents again, want %d", len(docs), floorStep)
	}
	if core.looks > 13 || r.to != 1000 {
		t.Errorf("looked at %d times, and the floor is raised to %d", core.looks, r.to)
	}
}

// markedBus is a bus with one mark.
type markedBus struct {
	Bus
	mark   model.StateDoc
	purged []string
}

func (b *markedBus) LoadMark(context.Context, string) (model.StateDoc, time.Time, error) {
	return b.mark, time.Time{}, nil
}

func (b *markedBus) PurgeState(_ context.Context, _ string, gone []model.StateDoc) error {
	for _, d := range gone {
		b.purged = append(b.purged, d.Doc)
	}
	return nil
}

// Another runtime, or an earlier version, may have replaced the mark by one without the floor.
func TestRetention_PurgesNoMarkerThatTheStoredMarksFloorDoesNotAllow(t *testing.T) {
	gone := []model.StateDoc{{Doc: "a", Seq: 5, Rev: 50}, {Doc: "b", Seq: 6, Rev: 60}}
	for floor, want := range map[uint64]int{0: 0, 50: 1, 60: 2} {
		data, err := (&model.Mark{Version: model.MarkVersion, Floor: floor}).Encode()
		if err != nil {
			t.Fatal(err)
		}
		bus := &markedBus{mark: model.StateDoc{Seq: 9, Rev: 90, Data: data}}
		r, s := &retention{bus: bus}, &storedSpace{}
		s.markers.note(gone)
		if err := r.purgeMarkers(t.Context(), s, slices.Clone(gone)); err != nil || len(bus.purged) != want || len(s.markers.gone) != len(gone)-want {
			t.Errorf("with the floor %d: %v (%v); %d are left", floor, bus.purged, err, len(s.markers.gone))
		}
	}
}
