package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/model"
)

func TestPast_OnlyWhatIsNewerIsRemembered(t *testing.T) {
	var p past
	p.note("LOG", anchor{seq: 7, subject: "seven"})
	p.note("LOG", anchor{seq: 5, subject: "five"})
	if got := p.anchor("LOG"); got.seq != 7 {
		t.Errorf("an older message has replaced a newer one: %+v", got)
	}
	p.note("LOG", anchor{seq: 9, subject: "nine"})
	if got := p.anchor("LOG"); got.seq != 9 {
		t.Errorf("a newer message is not remembered: %+v", got)
	}
}

// What is heard of a stream that may have gone back says nothing about what stands in it now.
func TestPast_WhatIsHeardOfASuspectedStreamIsNotRemembered(t *testing.T) {
	var p past
	p.note("LOG", anchor{seq: 7})
	p.suspectAll()
	p.note("LOG", anchor{seq: 8})
	if got := p.anchor("LOG").seq; got != 7 {
		t.Errorf("message %d is remembered, want 7", got)
	}
}

func TestPast_NothingIsStoredBeforeStreamsWereCompared(t *testing.T) {
	var p past
	p.note("LOG", anchor{seq: 7})
	p.suspectAll()
	if !p.holdsBack("LOG", false) {
		t.Error("a stream that may have gone back takes messages")
	}
	if !p.holdsBack("LANE", true) {
		t.Error("what rests on what was read is stored while a stream may have gone back")
	}
	if p.holdsBack("LANE", false) {
		t.Error("what rests on nothing waits for other streams")
	}
}

// The comparisons of an earlier disconnect say nothing of what happened at the latest one.
func TestPast_StreamsAreSettledByTheLastComparisons(t *testing.T) {
	var p past
	p.note("LOG", anchor{seq: 7})
	p.suspectAll()
	p.suspectAll()
	p.settled(1)
	if !p.holdsBack("LANE", true) {
		t.Error("the comparisons of the first disconnect have settled the second one")
	}
	p.settled(2)
	if p.holdsBack("LANE", true) {
		t.Error("the streams are compared, and not settled")
	}
}

// A stream that has no leader does not hold up others for ever. One that a leader contradicts does, until that is
// believed or taken back.
func TestPast_NothingIsSettledWhileALeaderContradicts(t *testing.T) {
	for name, decide := range map[string]func(p *past){
		"taken back": func(p *past) { p.holds("LOG", anchor{seq: 7}, anchor{seq: 7}, p.suspicion("LOG")) },
		"believed": func(p *past) {
			p.isBack("LOG", anchor{seq: 7}, model.Rewind{Stream: "LOG", Known: 7, Found: "it ends at 5"})
		},
	} {
		var p past
		p.note("LOG", anchor{seq: 7})
		p.suspectAll()
		p.contradicts("LOG")
		p.settled(1)
		if !p.holdsBack("LANE", true) {
			t.Error("what rests on what was read is stored, while a leader says that it is gone")
		}
		decide(&p)
		p.settled(1)
		if p.holdsBack("LANE", true) {
			t.Errorf("it is %s, and others still wait", name)
		}
	}
}

func TestPast_MessagesAreToldApart(t *testing.T) {
	now := time.Now()
	is := anchor{seq: 7, time: now, subject: "cart", commit: "a/0/1"}
	for name, found := range map[string]anchor{
		"a later time":    {7, now.Add(1), "cart", "a/0/1"},
		"an earlier time": {7, now.Add(-1), "cart", "a/0/1"},
		"another subject": {7, now, "shop", "a/0/1"},
		"another commit":  {7, now, "cart", "b/0/1"},
	} {
		if is.differs(found) == "" {
			t.Errorf("with %s it counts as the same message", name)
		}
	}
	if why := is.differs(is); why != "" {
		t.Error(why)
	}
	if why := (&anchor{seq: 7}).differs(is); why != "" {
		t.Errorf("what is not known is compared: %s", why)
	}
}

const pastLog = "SETTLE_LOG_0"

// storedLog is a bus whose log has three commits of the space cart.
func storedLog(t *testing.T, cfg Config) *Bus {
	t.Helper()
	b := embeddedBus(t, cfg)
	for i, id := range []string{"a/0/1", "a/0/2", "a/0/3"} {
		if seq, err := appendTo(b, model.Append{Space: "cart", ID: id, Expect: uint64(i)}); err != nil || seq != uint64(i+1) {
			t.Fatal(seq, err)
		}
	}
	return b
}

func appendTo(b *Bus, a model.Append) (seq uint64, err error) {
	answered := make(chan struct{})
	b.Append(a, func(s uint64, e error) { seq, err = s, e; close(answered) })
	<-answered
	return seq, err
}

func embeddedBus(t *testing.T, cfg Config) *Bus {
	t.Helper()
	s, err := embedded.Start(t.Context(), embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	cfg.Server, cfg.Partitions = s, 1
	return joined(t, cfg)
}

func joined(t *testing.T, cfg Config) *Bus {
	t.Helper()
	b, err := Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPast_AStreamHasGoneBackIfItEndsEarlierOrHasAnother(t *testing.T) {
	b := storedLog(t, Config{})
	for name, was := range map[string]anchor{
		"it ends one message earlier": {seq: 4},
		"another commit stands there": {seq: 3, commit: "b/0/1"},
	} {
		if _, why, err := b.lookBack(t.Context(), pastLog, was); err != nil || why == "" {
			t.Errorf("%s, and that is not noticed: %v", name, err)
		}
	}
	for name, was := range map[string]anchor{
		"what is remembered stands there": b.past.anchor(pastLog),
		"nothing is remembered":           {},
	} {
		if _, why, err := b.lookBack(t.Context(), pastLog, was); err != nil || why != "" {
			t.Errorf("%s: %s, %v", name, why, err)
		}
	}
}

// A stream that is gone when the connection is back has lost everything. That is said with the first answer.
func TestPast_AStreamThatIsGoneAfterAReconnectHasGoneBack(t *testing.T) {
	b := storedLog(t, Config{})
	b.past.suspectAll() // as with the disconnect
	if err := b.js.DeleteStream(t.Context(), pastLog); err != nil {
		t.Fatal(err)
	}
	b.compareAll() // as with the reconnect
	if err := b.steady(t.Context(), pastLog, 0); !errors.Is(err, model.ErrRewound) {
		t.Errorf("what was read of the log is relied on: %v", err)
	}
	if got := b.Rewinds(); len(got) != 1 || got[0].Stream != pastLog || got[0].Known != 3 || got[0].Found != noSuchStream {
		t.Errorf("what is known of it is %+v", got)
	}
	if b.compare(t.Context(), pastLog); b.Epoch() != 1 {
		t.Errorf("it is said again, of nothing that is remembered: epoch %d", b.Epoch())
	}
}

// A stream may also be deleted, or another one put in its place, without an end of the connection.
func TestPast_AFollowerOfAStreamThatIsDeletedIsTold(t *testing.T) {
	b := storedLog(t, Config{})
	b.HurryUp()
	delivered, ended := make(chan uint64, 3), make(chan error, 1)
	go func() { // ends with the follow
		ended <- b.FollowLog(t.Context(), 0, 0, func(e model.LogEntry) { delivered <- e.Seq })
	}()
	for range 3 {
		<-delivered
	}
	if err := b.js.DeleteStream(t.Context(), pastLog); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, model.ErrRewound) {
		t.Errorf("the follow has ended with %v", err)
	}
}

// What finds no stream to be stored in does not wait for one that takes its place.
func TestPast_WhatFindsNoStreamHasItCompared(t *testing.T) {
	b := storedLog(t, Config{})
	if err := b.js.DeleteStream(t.Context(), pastLog); err != nil {
		t.Fatal(err)
	}
	if _, err := appendTo(b, model.Append{Space: "cart", ID: "a/0/4", Expect: 3}); !errors.Is(err, model.ErrRewound) {
		t.Errorf("the append ended with %v", err)
	}
	if err := b.FollowSpace(t.Context(), "cart", 3, func(model.LogEntry) {}); err == nil {
		t.Error("a space is followed of which there is no log")
	}
}

// A feed has no consumer that would end with the log.
func TestPast_AFeedWithoutItsLogHasItCompared(t *testing.T) {
	b := storedLog(t, Config{})
	if err := b.js.DeleteStream(t.Context(), pastLog); err != nil {
		t.Fatal(err)
	}
	changed := b.past.changed.wait()
	if err := b.FollowSpace(t.Context(), "cart", 3, func(model.LogEntry) {}); err == nil {
		t.Error("a space is followed of which there is no log")
	}
	<-changed
	if got := b.Rewinds(); len(got) != 1 || got[0].Stream != pastLog {
		t.Errorf("what has gone back is said to be %v", got)
	}
}

// A process that has begun behind the newest messages has been told of none, and knows how far the streams reach.
func TestPast_TheEndsOfLanesAndLogsAreRemembered(t *testing.T) {
	first := storedLog(t, Config{})
	sent := make(chan error, 1)
	first.Send(model.Message{Space: "cart", Stream: "add", ID: "e1"}, func(_ model.SendResult, err error) { sent <- err })
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	b := joined(t, Config{Server: first.cfg.Server, Partitions: 1})
	if _, err := b.LogState(t.Context(), 0, time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := b.LaneEnd(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	for stream, want := range map[string]uint64{pastLog: 3, b.names.laneStream(0): 1} {
		if got := b.past.anchor(stream).seq; got != want {
			t.Errorf("%s is known up to %d, want %d", stream, got, want)
		}
	}
}

// With a stream that has gone back a new epoch begins: what rests on the state before ends, and
// nothing of it is remembered.
func TestPast_ARewindEndsWhatRestsOnWhatWas(t *testing.T) {
	b := storedLog(t, Config{AckTimeout: 10 * time.Second, Faults: func(a Attempt) Fault {
		if a.Op == OpSave && a.Try == 1 {
			return DropRequest
		}
		return Deliver
	}})
	answers := make(chan put, 1)
	b.startPut(0, b.Epoch(), item{"cart.doc", &model.StateDoc{Doc: "doc", Seq: 1, Data: []byte("1")}}, answers)
	b.seen.note("cart.other", 1, 1)
	b.past.note(pastLog, anchor{seq: 9})
	b.compare(t.Context(), pastLog)
	if got := b.Epoch(); got != 1 {
		t.Fatalf("epoch %d, want 1", got)
	}
	if n := b.seen.len(); n != 0 {
		t.Errorf("%d revisions of the former state are remembered", n)
	}
	b.pub.mu.Lock()
	pending := len(b.pub.pending)
	b.pub.mu.Unlock()
	if pending != 0 {
		t.Fatal("what was on its way is not given up")
	}
	if p := <-answers; !errors.Is(p.err, model.ErrRewound) {
		t.Errorf("it ended with %v", p.err)
	}
}

// An append is refused by a log that ends before what was expected only after the stream was
// compared: it may have gone back.
func TestPast_AnAppendBehindTheEndOfTheLogComparesIt(t *testing.T) {
	b := storedLog(t, Config{})
	b.past.note(pastLog, anchor{seq: 9})
	if _, err := appendTo(b, model.Append{Space: "cart", ID: "a/0/4", Expect: 9}); !errors.Is(err, model.ErrRewound) {
		t.Errorf("the append ended with %v", err)
	}
}

// Each stream that has gone back is told, with the last time that it did.
func TestPast_EveryStreamThatHasGoneBackIsTold(t *testing.T) {
	b := embeddedBus(t, Config{})
	goBack := func(stream string, known uint64, why string) {
		t.Helper()
		was := anchor{seq: known}
		b.past.note(stream, was)
		b.wentBack(stream, was, why)
	}
	goBack("A", 9, "it ends at 5")
	goBack("B", 7, "it ends at 4")
	goBack("A", 6, "it ends at 1")
	b.wentBack("C", anchor{seq: 3}, "nothing was known of it")
	var got []string
	for _, r := range b.Rewinds() {
		got = append(got, fmt.Sprint(r.Stream, " ", r.Known, ", ", r.Found))
		if r.At.IsZero() {
			t.Errorf("it is not told when %s has gone back", r.Stream)
		}
	}
	if text := strings.Join(got, "; "); text != "B 7, it ends at 4; A 6, it ends at 1" {
		t.Errorf("it tells %q", text)
	}
}

// Nothing is removed from a stream that may have gone back.
func TestPast_PurgesWaitUntilTheStreamWasCompared(t *testing.T) {
	b := storedLog(t, Config{})
	b.past.suspectAll()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.PurgeLog(ctx, "cart", 3); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	waiting, end := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer end()
	if err := b.PurgeLog(waiting, "cart", 3); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if st, err := b.LogState(t.Context(), 0, 0); err != nil || st.Commits != 3 {
		t.Errorf("%d commits are left, want all three (%v)", st.Commits, err)
	}
}

// Whatever is delivered or loaded is compared with the stream after a disconnect.
func TestPast_WhatIsFollowedAndLoadedIsRemembered(t *testing.T) {
	first := storedLog(t, Config{})
	docs := []model.StateDoc{{Doc: "doc", Seq: 3, Data: []byte("1")}}
	if err := first.SaveState(t.Context(), "cart", docs, nil); err != nil {
		t.Fatal(err)
	}
	b := joined(t, Config{Server: first.cfg.Server, Partitions: 1})
	if _, err := b.LoadState(t.Context(), "cart"); err != nil {
		t.Fatal(err)
	}
	bucket := bucketStream(b.names.stateBucket(0))
	if got := b.past.anchor(bucket).seq; got != docs[0].Rev {
		t.Errorf("revision %d of the bucket is remembered, want %d", got, docs[0].Rev)
	}
	f := newFollower(b.streams, &tail{stream: "FOLLOWED"}, func(delivery) {})
	f.receive(message(1))
	if got := b.past.anchor("FOLLOWED").seq; got != 100 {
		t.Errorf("message %d of the followed stream is remembered, want 100", got)
	}
}

// Who follows a stream of an earlier epoch is told.
func TestPast_AFollowerOfAnEarlierEpochEnds(t *testing.T) {
	b := unconnected(Config{})
	b.past.note("LOG", anchor{seq: 7})
	b.past.isBack("LOG", anchor{seq: 7}, model.Rewind{Stream: "LOG", Known: 7, Found: "it ends at 5"})
	f := newFollower(b.streams, &tail{stream: "LOG"}, func(delivery) {})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.watch(ctx, make(chan struct{}), 0); !errors.Is(err, model.ErrRewound) {
		t.Errorf("got %v", err)
	}
}

// aPublisher is one without a server, with a request on the wire.
func aPublisher(p *past) (*publisher, *request) {
	r := &request{task: task{msg: &nats.Msg{Header: nats.Header{}}}, token: 1, tries: 1}
	return &publisher{past: p, pending: map[uint64]*request{1: r}}, r
}

// A request that may have been stored is in doubt: a refusal of it may be its own doing.
func TestPublisher_WhatMayHaveBeenStoredIsInDoubt(t *testing.T) {
	for name, then := range map[string]func(p *publisher, r *request){
		"the connection broke": func(p *publisher, _ *request) { p.disconnected() },
		"it is sent again":     func(p *publisher, r *request) { p.begin(r) },
		"the answer is unclear": func(p *publisher, r *request) {
			r.judge = func(answer, bool) ruling { return isThere }
			r.done = func(uint64, error) {}
			p.answered(r, answer{outcome: unclear})
		},
	} {
		p, r := aPublisher(&past{})
		if then(p, r); !r.doubt {
			t.Errorf("%s, and the request is not in doubt", name)
		}
	}
}

// What rests on a former state of the store is not sent.
func TestPublisher_ARequestOfAnotherEpochIsNotSent(t *testing.T) {
	b := storedLog(t, Config{})
	b.past.note(pastLog, anchor{seq: 9})
	b.compare(t.Context(), pastLog) // it has gone back
	if _, err := appendTo(b, model.Append{Space: "cart", ID: "a/0/4", Expect: 3}); !errors.Is(err, model.ErrRewound) {
		t.Errorf("the append of the former epoch ended with %v", err)
	}
	docs := []model.StateDoc{{Doc: "doc", Seq: 3, Data: []byte("1")}}
	err := b.saveItems(t.Context(), 0, 0, []item{{"cart.doc", &docs[0]}})
	if !errors.Is(err, model.ErrRewound) {
		t.Errorf("the save of the former epoch ended with %v", err)
	}
}

// What may not have arrived is sent again when the connection is back, but for what is being
// looked up.
func TestPublisher_AfterAReconnectItSendsAgain(t *testing.T) {
	for state, want := range map[requestState]int{onTheWire: 1, resting: 1, asking: 0} {
		p, r := aPublisher(&past{})
		attempts := 0
		p.faults = func(Attempt) Fault { attempts++; return DropRequest }
		r.state = state
		if p.reconnected(); attempts != want {
			t.Errorf("a request in state %d is sent %d times, want %d", state, attempts, want)
		}
	}
}

// The end of a comparison sends what was held back for it, and nothing that pauses between two attempts: a stream that is there and takes
// nothing would be asked without a pause.
func TestPublisher_AComparisonSendsWhatWasHeldBackForItAlone(t *testing.T) {
	attempts := 0
	b := storedLog(t, Config{Faults: func(a Attempt) Fault {
		if a.Subject == "held" {
			attempts++
			return DropRequest
		}
		return Deliver
	}})
	for held, want := range map[bool]int{false: 0, true: 1} {
		r := &request{task: task{stream: pastLog, msg: nats.NewMsg("held"), done: func(uint64, error) {}}, token: 1 << 40, state: resting, held: held}
		b.pub.mu.Lock()
		b.pub.pending[r.token] = r
		b.pub.mu.Unlock()
		attempts = 0
		if b.compare(t.Context(), pastLog); attempts != want {
			t.Errorf("a request that is held back, %v, is sent %d times, want %d", held, attempts, want)
		}
		b.pub.withdraw(r)
	}
}

func TestPublisher_WhatIsTooLargeIsNotSent(t *testing.T) {
	attempts := 0
	b := embeddedBus(t, Config{Faults: func(Attempt) Fault { attempts++; return Deliver }})
	_, err := appendTo(b, model.Append{Space: "cart", ID: "a/0/1", Data: make([]byte, b.MaxPayload())})
	if !errors.Is(err, model.ErrTooLarge) || attempts != 0 {
		t.Errorf("after %d attempts: %v", attempts, err)
	}
}
