package ordered

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/internal/misroute"
	"github.com/settlehq/settle/internal/truncation"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

var errStore = errors.New("the store is out of order")

// fakeBus answers as a test says. What it has no answer for fails the test.
type fakeBus struct {
	Bus
	log       [][]model.LogEntry // what each reading of the log brings; then nothing
	readErr   error
	head      uint64
	saves     []error // what each save returns; then nil
	saved     [][]model.StateDoc
	marks     int
	epoch     uint64
	position  uint64
	positions map[string]uint64
	posErr    error
	lanePurge time.Duration
	logPurges map[string]uint64
	state     model.LogState
	spaces    []string
	spaceMark uint64
	parts     int // partitions, 1 if 0
	laneEnd   uint64
	followed  []uint64 // where the lane was followed from
}

func (b *fakeBus) ReadLog(context.Context, string, uint64, int) ([]model.LogEntry, error) {
	if b.readErr != nil || len(b.log) == 0 {
		return nil, b.readErr
	}
	page := b.log[0]
	b.log = b.log[1:]
	return page, nil
}

func (b *fakeBus) Head(context.Context, string) (uint64, error) { return b.head, nil }
func (b *fakeBus) Epoch() uint64                                { return b.epoch }
func (b *fakeBus) Partitions() int                              { return max(b.parts, 1) }
func (b *fakeBus) Hindsight() time.Duration                     { return 0 }
func (b *fakeBus) Forget(string)                                {}
func (b *fakeBus) Append(model.Append, func(uint64, error))     {}

func (b *fakeBus) LogTail(context.Context, int, int) ([]model.LogEntry, error) { return nil, nil }
func (b *fakeBus) LaneEnd(context.Context, int) (uint64, error)                { return b.laneEnd, nil }

func (b *fakeBus) FollowLane(_ context.Context, _ int, after uint64, _ func(model.Message)) error {
	b.followed = append(b.followed, after)
	return errStore
}
func (b *fakeBus) MaxPayload() int        { return 64 << 10 }
func (b *fakeBus) Horizon() time.Duration { return time.Hour }

func (b *fakeBus) SaveState(_ context.Context, _ string, docs []model.StateDoc, mark *model.StateDoc) error {
	b.saved = append(b.saved, docs)
	if mark != nil {
		b.marks++
	}
	if len(b.saves) == 0 {
		return nil
	}
	err := b.saves[0]
	b.saves = b.saves[1:]
	return err
}

func (b *fakeBus) SavePosition(_ context.Context, _ int, name string, seq uint64) error {
	if b.posErr == nil {
		b.positions[name] = seq
	}
	return b.posErr
}

func (b *fakeBus) LoadPosition(context.Context, int, string) (uint64, error) { return b.position, nil }

func (b *fakeBus) LoadAhead(context.Context, int) (model.Ahead, error) { return model.Ahead{}, nil }

func (b *fakeBus) PurgeLane(_ context.Context, _ int, _ uint64, age time.Duration) (bool, error) {
	b.lanePurge = age
	return false, nil
}

func (b *fakeBus) LogState(context.Context, int, time.Duration) (model.LogState, error) {
	return b.state, nil
}

func (b *fakeBus) LogSpaces(context.Context, int) ([]string, error) { return b.spaces, nil }

func (b *fakeBus) LoadMark(context.Context, string) (model.StateDoc, time.Time, error) {
	return model.StateDoc{Seq: b.spaceMark}, time.Time{}, nil
}

func (b *fakeBus) PurgeLog(_ context.Context, key string, below uint64) error {
	b.logPurges[key] = below
	return nil
}

// unitHost is a host of the key k that nobody runs.
func unitHost(t *testing.T) (*host, *fakeBus) {
	t.Helper()
	b := &fakeBus{positions: map[string]uint64{}, logPurges: map[string]uint64{}}
	s := &server{bus: b, cfg: Config{
		id: "o1", Handlers: map[string]Handler{}, Attempts: 5, Heartbeat: time.Hour, Idle: time.Second, MaxAwake: 10, Checkpoint: time.Second,
		RetryMin: time.Millisecond, RetryMax: time.Millisecond, MaxChain: 100, Logger: slog.New(slog.DiscardHandler),
	}}
	if err := s.cfg.forLedgers(b.MaxPayload()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	s.ctx, s.cancel = ctx, cancel
	p := &partition{s: s, bus: b, began: time.Now(), ctx: ctx, cancel: cancel, leaving: make(chan struct{}), over: make(chan struct{}), hosts: map[string]*host{}, due: newDues()}
	p.strays = misroute.New(b, 0, s.cfg.Logger)
	h := newHost(p, "k", 0)
	p.hosts["k"] = h
	rep := replica.New("k")
	h.core = newCore(&s.cfg, rep, &h.code, nil)
	h.saver = newSaver(model.SpaceState{}, rep)
	return h, b
}

// taken is one that has taken its key over, at 1.
func taken(t *testing.T) (*host, *fakeBus) {
	t.Helper()
	h, b := unitHost(t)
	takeOver(h)
	if err := h.answered(answer{seq: 1}); err != nil || !h.core.owned() {
		t.Fatal(err)
	}
	h.busy = time.Time{}
	return h, b
}

// takeOver has a host on its way to take its key over.
func takeOver(h *host) {
	h.core.TakeOver()
	h.under = h.core.Append().Commit
}

// offered are n events in the lane of a host.
func offered(h *host, n int) {
	for i := range n {
		h.core.Lane().Offer(model.Event{Space: "k", Stream: "x", ID: fmt.Sprint("e", i+1), Lane: uint64(i + 1)})
	}
}

// takeoverBy is another's takeover as it stands in the log.
func takeoverBy(runtime string, seq, prev uint64) model.LogEntry {
	c := &model.Commit{Version: model.CommitVersion, Space: "k", Runtime: runtime, Takeover: true, Attempt: seq}
	return model.LogEntry{Space: "k", Seq: seq, Prev: prev, ID: c.ID(), Data: model.AppendCommit(nil, c, nil)}
}

// What a save has come to is remembered, whether it has failed or not: revisions, and up to where
// the lane was done when the checkpoint was taken.
func TestSaver_TakesInTheAnswerToASave(t *testing.T) {
	h, _ := unitHost(t)
	h.saver.under = &replica.Checkpoint{Docs: []model.StateDoc{{Doc: "d", Rev: 7}}}
	if err := h.saved(model.ErrStopped); err != nil {
		t.Fatal(err)
	}
	if got := h.saver.revs["d"]; got != 7 {
		t.Errorf("after a save that has failed d is known under revision %d, want 7", got)
	}
	h.core.Replica().Cursor.Floor = 9
	h.saver.under, h.saver.underLane = &replica.Checkpoint{Mark: model.StateDoc{Seq: 1}}, 5
	if err := h.saved(nil); err != nil {
		t.Fatal(err)
	}
	if h.saver.lane != 5 || h.saver.seq != 1 {
		t.Errorf("it is saved up to %d of the lane and %d of the log, want 5 and 1", h.saver.lane, h.saver.seq)
	}
}

func TestSaver_OutdatedDocumentsDoNotKeepTheMarkFromBeingSaved(t *testing.T) {
	h, b := unitHost(t)
	b.saves = []error{errors.Join(fmt.Errorf("save a: %w", model.ErrOutdated), fmt.Errorf("save b: %w", model.ErrOutdated))}
	err := h.p.save("k", &replica.Checkpoint{Docs: []model.StateDoc{{Doc: "a"}, {Doc: "b"}}, Mark: model.StateDoc{Seq: 3}})
	if err != nil || b.marks != 2 || len(b.saved[1]) != 0 {
		t.Errorf("%d saves with a mark, %v", b.marks, err)
	}
	h, b = unitHost(t)
	b.saves = []error{errors.Join(model.ErrOutdated, errStore)}
	if err := h.p.save("k", &replica.Checkpoint{}); !errors.Is(err, errStore) || b.marks != 1 {
		t.Errorf("beside another error: %d saves with a mark, %v", b.marks, err)
	}
	for err, want := range map[error]bool{model.ErrOutdated: true, errStore: false, errors.Join(errStore, model.ErrOutdated): false} {
		if onlyOutdated(err) != want {
			t.Errorf("%v: %v", err, !want)
		}
	}
}

// What is saved by others need not be saved again, and who has saved it is left alone for a while.
func TestSaver_AHostThatWasOvertaken(t *testing.T) {
	h, b := taken(t)
	b.log = [][]model.LogEntry{{takeoverBy("o2", 2, 1)}}
	if err := h.overtaken(2); err != nil {
		t.Fatal(err)
	}
	if h.core.owned() || h.lost != 1 || h.lostWait() <= 0 {
		t.Errorf("it owns the key: %v; it was lost %d times, and is left for %v", h.core.owned(), h.lost, h.lostWait())
	}
	if h.saver.seq != 2 {
		t.Errorf("it is saved up to %d, want 2", h.saver.seq)
	}
	h.core.Replica().Seq = 3 // there is something to save
	if h.takesOver() {
		t.Error("it takes the key back at once")
	}
	h.away = time.Now().Add(-24 * time.Hour)
	if !h.takesOver() {
		t.Error("it does not take the key back when the time has come")
	}
}

// An append that was refused says that there is a commit which this host has not seen: it reads
// until it has.
func TestHost_AfterARefusalItReadsWhatHasWon(t *testing.T) {
	h, b := unitHost(t)
	takeOver(h)
	b.readErr = errStore
	if err := h.answered(answer{err: model.ErrRefused}); !errors.Is(err, errStore) {
		t.Errorf("it could not read what has won, and goes on: %v", err)
	}
	h, b = unitHost(t)
	takeOver(h)
	b.log = [][]model.LogEntry{nil, nil, {takeoverBy("o2", 1, 0)}} // a replica that is behind
	if err := h.answered(answer{err: model.ErrRefused}); err != nil || h.core.Replica().Seq != 1 {
		t.Errorf("it has read up to %d: %v", h.core.Replica().Seq, err)
	}
}

func TestHost_AnEventBehindOneThatWasLeftInTheStreamIsLeftToo(t *testing.T) {
	h, _ := unitHost(t)
	h.left = 5
	h.offer(model.Message{Space: "k", Stream: "x", ID: "e6", Seq: 6})
	if len(h.inbox) != 0 || h.left != 6 {
		t.Errorf("%d events in the inbox, left up to %d", len(h.inbox), h.left)
	}
}

// The position of the lane waits for what is not saved, and for what is not handled.
func TestHost_WhatIsLeftToDoHoldsTheLaneBack(t *testing.T) {
	h, _ := taken(t)
	h.publish()
	if h.low.Load() == allDone {
		t.Error("the log is at 1, nothing is saved, and the key is done with all")
	}
	h.saver.seq = 1
	h.publish()
	if h.low.Load() != allDone {
		t.Fatal("nothing is left to do, and the key is not done")
	}
	h.offer(model.Message{Space: "k", Stream: "x", ID: "e7", Seq: 7})
	h.publish()
	if got := h.low.Load(); got != 6 {
		t.Errorf("event 7 is in the inbox, and the key is done up to %d", got)
	}
}

// A key does not leave memory before all of it is saved, nor with something in its inbox.
func TestHost_LeavesWhenNothingIsLeftToDo(t *testing.T) {
	h, _ := taken(t)
	h.saver.due = time.Now().Add(time.Hour)
	if left, err := h.leave(); left || err != nil {
		t.Errorf("it has left, and nothing is saved: %v, %v", left, err)
	}
	h.saver.seq = 1
	h.offer(model.Message{Space: "k", Stream: "x", ID: "e7", Seq: 7})
	if left, err := h.leave(); left || err != nil {
		t.Errorf("it has left, and an event waits: %v, %v", left, err)
	}
	h.inbox = nil
	if left, err := h.leave(); !left || err != nil {
		t.Errorf("nothing is left to do, and it stays: %v, %v", left, err)
	}
}

// The answer to what a former life has sent is not for the next one.
func TestHost_BeginsAgainWhenItsFormerLifeHasItsAnswers(t *testing.T) {
	h, _ := unitHost(t)
	takeOver(h)
	h.answers <- answer{seq: 1}
	h.saver.saving = true
	h.saves <- nil
	h.awaitUnderway()
	if len(h.answers) != 0 || len(h.saves) != 0 || h.under != nil || h.saver.saving {
		t.Error("an answer is left for the next life")
	}
}

func TestHost_ALogThatEndsBeforeWhatIsKnownIsRefused(t *testing.T) {
	h, b := unitHost(t)
	for head, lost := range map[uint64]bool{0: true, 4: true, 5: false, 6: false} {
		b.head = head
		if err := h.checkHead(5); errors.As(err, new(*model.LossError)) != lost {
			t.Errorf("5 is known and the log ends at %d: %v", head, err)
		}
	}
}

// An event that finds no room in a commit is handled in the next one, and those behind it share commits again.
func TestCore_WhatHasNoRoomIsHandledInTheNextCommit(t *testing.T) {
	h, _ := taken(t)
	c := h.core
	h.p.s.cfg.Handlers["x"] = func(tx *Tx, ev *model.Event) (any, error) {
		size := map[string]int{"e1": 10 << 10, "e2": 20 << 10, "e3": 10 << 10, "e4": 20 << 10}[ev.ID] // of 28 KiB that a commit takes
		tx.Set(ev.ID, strings.Repeat("x", size))
		return nil, nil
	}
	offered(h, 6)
	var got []string
	crowded := false
	for range 8 {
		c.work(6, 0, time.Now())
		crowded = crowded || c.Crowded()
		if a := c.Append(); a != nil {
			together := ""
			for i := range a.Commit.Txs {
				together += a.Commit.Txs[i].Receipt.Event
			}
			got = append(got, together)
			c.work(6, 0, time.Now()) // beside what is under way
			if _, err := c.Confirm(a.Expect + 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	if want := fmt.Sprint([]string{"e1", "e2", "e3", "e4", "e5e6"}); fmt.Sprint(got) != want || !crowded {
		t.Errorf("handled are %v, want %v", got, want)
	}
}

// An attempt that was given up is counted once, also if the next life of the host, which has marked it, ends before
// the event does.
func TestCore_AnAttemptThatWasGivenUpIsCountedOnce(t *testing.T) {
	h, _ := unitHost(t)
	h.p.s.cfg.Handlers["x"] = func(*Tx, *model.Event) (any, error) { return nil, Transient(errStore) }
	h.overran = &overrun{stream: "x", event: "e1", limit: time.Second}
	seq := uint64(0)
	tries := func(now time.Duration) (tries int) {
		h.core.work(1, now, time.Now())
		h.append()
		if h.under == nil {
			return 0
		}
		if h.under.Trying != nil {
			tries = h.under.Trying.Tries
		}
		seq++
		if err := h.answered(answer{seq: seq}); err != nil {
			t.Fatal(err)
		}
		return tries
	}
	want := []int{0, 0, 2, 1} // the takeover, a pause, the mark, and it is taken back
	for life := range 2 {
		h.core = newCore(&h.p.s.cfg, h.core.Replica(), &h.code, h.overran)
		offered(h, 1)
		var got []int
		for i := range want {
			got = append(got, tries(time.Duration(i)*time.Minute))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("life %d: the marks are of %v attempts, want %v", life+1, got, want)
		}
	}
}

// A handler sees what it has written.
func TestTx_SeesWhatItHasWritten(t *testing.T) {
	h, _ := taken(t)
	var seen string
	h.p.s.cfg.Handlers["x"] = func(tx *Tx, _ *model.Event) (any, error) {
		tx.Set("n", 1)
		tx.Set("n", 2)
		seen = tx.Get("n").String()
		tx.Delete("n")
		seen += " " + tx.Get("n").String()
		return nil, nil
	}
	offered(h, 1)
	if h.core.work(1, 0, time.Now()); seen != "2 absent" {
		t.Errorf("it sees %s", seen)
	}
}

func TestEvent_WhatCannotBeHandledIsRefused(t *testing.T) {
	h, _ := unitHost(t)
	now := time.Now()
	old := model.TimedEventID(now.Add(-24*time.Hour), "e")
	minted := (model.TxID{Space: "other", Epoch: 1, N: 1}).Event(0)
	for name, c := range map[string]struct {
		m       model.Message
		refused bool
	}{
		"a plain one":                  {model.Message{ID: "e1", Stored: now}, false},
		"an old id":                    {model.Message{ID: old, Stored: now}, true},
		"a position without an origin": {model.Message{ID: "e1", Position: 3, Stored: now}, true},
		"an origin without a position": {model.Message{ID: minted, Stored: now}, true},
	} {
		c.m.Space, c.m.Stream = "k", "x"
		ev := h.event(&c.m)
		if (ev.Invalid != "") != c.refused {
			t.Errorf("%s: refused with %q", name, ev.Invalid)
		}
		if c.refused && ev.Position != 0 {
			t.Errorf("%s: it waits for its predecessor", name)
		}
	}
}

func TestConfig_NegativeSettingsAreRefused(t *testing.T) {
	handlers := map[string]Handler{"x": func(*Tx, *model.Event) (any, error) { return nil, nil }}
	for name, cfg := range map[string]Config{
		"attempts": {Attempts: -1}, "keys": {MaxAwake: -1}, "pause": {RetryMin: -1}, "most pause": {RetryMax: -1}, "heartbeat": {Heartbeat: -1},
		"ttl": {TTL: -1}, "handover": {Handover: -1}, "checkpoint": {Checkpoint: -1}, "idle": {Idle: -1}, "history": {History: -1},
	} {
		if cfg.Handlers = handlers; cfg.fill(time.Hour) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A partition of an earlier epoch does not go on with its lane: it begins anew.
func TestPartition_OfAnEarlierEpochBeginsAnew(t *testing.T) {
	h, b := unitHost(t)
	p := h.p
	p.bus = &fakeBus{epoch: 3}
	b.epoch = 4
	close(p.leaving) // it is given up anyway
	if err := p.followLane(t.Context()); !errors.Is(err, model.ErrStopped) {
		t.Errorf("it follows its lane: %v", err)
	}
}

// The position is what all keys are done with, and was saved.
func TestPartition_ThePositionWaits(t *testing.T) {
	h, b := unitHost(t)
	p := h.p
	p.read = 9
	h.low.Store(6)
	b.posErr = errStore
	if err := p.savePosition(t.Context()); !errors.Is(err, errStore) || p.saved != 0 {
		t.Errorf("saved up to %d, %v", p.saved, err)
	}
	b.posErr = nil
	if err := p.savePosition(t.Context()); err != nil || p.saved != 6 || b.positions[positionLane] != 6 {
		t.Errorf("saved up to %d, %v, %v", p.saved, b.positions, err)
	}
	h.low.Store(allDone)
	p.doubt = &truncation.Range{After: 2, UpTo: 9}
	if err := p.savePosition(t.Context()); err != nil || p.saved != 9 || p.doubt != nil {
		t.Errorf("saved up to %d, %v, in doubt is %v", p.saved, err, p.doubt)
	}
}

// A host that something has come for is not let go.
func TestPartition_DismissesNoHostThatHasSomethingToDo(t *testing.T) {
	h, _ := unitHost(t)
	h.left = 7
	if h.p.dismiss(h) {
		t.Error("an event is left in the stream, and the host is gone")
	}
	h.left = 0
	h.offer(model.Message{Space: "k", Stream: "x", ID: "e1", Seq: 8})
	if h.p.dismiss(h) || h.p.hosts["k"] != h {
		t.Error("an event is in the inbox, and the host is gone")
	}
}

// Events stay for the horizon, by whatever clock of the deployment.
func TestPurge_EventsStayForTheHorizonAndTheSkewOfClocks(t *testing.T) {
	h, b := unitHost(t)
	h.p.saved = 5
	if err := h.p.purgeLane(); err != nil || b.lanePurge != b.Horizon()+model.MaxClockSkew {
		t.Errorf("purged is what is older than %v, %v", b.lanePurge, err)
	}
}

// A commit goes when it is released, old, and covered by a checkpoint that was there before.
func TestPurge_CommitsThatNobodyNeeds(t *testing.T) {
	for name, c := range map[string]struct{ before, mark, released, old, want uint64 }{
		"all are the same":             {10, 20, 20, 20, 10},
		"released is less":             {10, 20, 4, 20, 5},
		"old is less":                  {10, 20, 20, 6, 7},
		"the checkpoint is new":        {0, 20, 20, 20, 0},
		"nothing is released":          {10, 20, 0, 20, 0},
		"nothing is old":               {10, 20, 20, 0, 0},
		"a newer checkpoint is no use": {3, 20, 20, 20, 3},
		"the bucket is an older one":   {10, 4, 20, 20, 4},
	} {
		h, b := unitHost(t)
		b.spaces, b.spaceMark, b.position, b.head = []string{"k"}, c.mark, c.released, c.mark
		b.state = model.LogState{First: 1, Last: 30, Old: c.old}
		h.p.marks = map[string]uint64{"k": c.before}
		if err := h.p.retain(); err != nil || b.logPurges["k"] != c.want {
			t.Errorf("%s: purged below %d, want %d (%v)", name, b.logPurges["k"], c.want, err)
		}
	}
}

// A lane that is followed again is read on, and what was read and not handled does not count as saved.
func TestPartition_FollowsTheLaneAgainFromWhereItWas(t *testing.T) {
	h, b := unitHost(t)
	b.position, b.laneEnd = 3, 20
	h.p.read, h.p.saved = 9, 3
	if err := h.p.followLane(t.Context()); !errors.Is(err, errStore) {
		t.Fatal(err)
	}
	if len(b.followed) != 1 || b.followed[0] != 9 || h.p.saved != 3 {
		t.Errorf("it is followed behind %v, saved is %d", b.followed, h.p.saved)
	}
}

// What belongs to another partition is not done before it is there.
func TestPartition_WhatBelongsElsewhereHoldsThePositionBack(t *testing.T) {
	h, b := unitHost(t)
	b.parts = 2
	astray := model.Message{Stream: "x", ID: "e1", Seq: 5}
	for i := 0; astray.Space == ""; i++ {
		if key := fmt.Sprint("k", i); model.PartitionOf(key, 2) == 1 {
			astray.Space = key
		}
	}
	h.low.Store(allDone)
	h.p.deliver(astray)
	h.p.read = 9
	if err := h.p.savePosition(t.Context()); err != nil || h.p.saved != 4 {
		t.Errorf("saved up to %d, %v; event 5 is still here", h.p.saved, err)
	}
}

// A key that sleeps is loaded, to be saved, if the log says more than its checkpoint, or if it has
// none.
func TestPurge_KeysThatAreNotSavedAreWoken(t *testing.T) {
	for name, c := range map[string]struct {
		head, saved uint64
		wakes       bool
	}{"saved": {5, 5, false}, "behind": {5, 3, true}, "never saved": {5, 0, true}, "nothing": {0, 0, false}} {
		h, b := unitHost(t)
		b.head = c.head
		err := h.p.wakeUnsaved("other", c.saved)
		h.p.mu.Lock()
		woken := h.p.hosts["other"] != nil
		h.p.mu.Unlock()
		if err != nil || woken != c.wakes {
			t.Errorf("%s: woken %v, %v", name, woken, err)
		}
		h.p.cancel()
		h.p.serving.Wait()
	}
}
