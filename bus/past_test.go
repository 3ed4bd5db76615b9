package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/faults"
	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/model"
)

const pastLog = "SETTLE_LOG_0"

// storedLog returns a bus whose log has three commits of the space cart.
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
	s := natstest.StartServer(t, embedded.Config{})
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

func TestPast_AStreamHasGoneBackIfItEndsEarlierOrHasAnotherMessage(t *testing.T) {
	t.Parallel()
	b := storedLog(t, Config{})
	for name, was := range map[string]wire.Anchor{
		"it ends one message earlier":     {Seq: 4},
		"another commit has the sequence": {Seq: 3, Commit: "b/0/1"},
	} {
		if _, why, err := b.streams.LookBack(t.Context(), pastLog, was); err != nil || why == "" {
			t.Errorf("%s, and that is not noticed: %v", name, err)
		}
	}
	for name, was := range map[string]wire.Anchor{
		"the remembered commit has the sequence": b.streams.Past.Anchor(pastLog),
		"nothing is remembered":                  {},
	} {
		if _, why, err := b.streams.LookBack(t.Context(), pastLog, was); err != nil || why != "" {
			t.Errorf("%s: %s, %v", name, why, err)
		}
	}
}

// A stream that is missing after a reconnect has lost everything. The first answer reports that.
func TestPast_AStreamThatIsGoneAfterAReconnectHasGoneBack(t *testing.T) {
	t.Parallel()
	b := storedLog(t, Config{})
	b.streams.Past.SuspectAll() // as with the disconnect
	if err := b.streams.JS.DeleteStream(t.Context(), pastLog); err != nil {
		t.Fatal(err)
	}
	b.streams.CompareAll() // as with the reconnect
	if err := b.streams.Steady(t.Context(), pastLog, 0); !errors.Is(err, model.ErrRewound) {
		t.Errorf("what was read of the log is relied on: %v", err)
	}
	if got := b.Rewinds(); len(got) != 1 || got[0].Stream != pastLog || got[0].Known != 3 || got[0].Found != wire.NoSuchStream {
		t.Errorf("what is known of it is %+v", got)
	}
	if b.streams.Compare(t.Context(), pastLog); b.Epoch() != 1 {
		t.Errorf("the rewind is reported again without a known message: epoch %d", b.Epoch())
	}
}

// A stream may also be deleted, or replaced by another one, while the connection stays up.
func TestPast_AFollowerOfADeletedStreamIsNotified(t *testing.T) {
	t.Parallel()
	b := storedLog(t, Config{})
	b.HurryUp()
	delivered, ended := make(chan uint64, 3), make(chan error, 1)
	go func() { // ends with the follow
		ended <- b.FollowLog(t.Context(), 0, 0, func(e model.LogEntry) { delivered <- e.Seq })
	}()
	for range 3 {
		<-delivered
	}
	if err := b.streams.JS.DeleteStream(t.Context(), pastLog); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, model.ErrRewound) {
		t.Errorf("the follow has ended with %v", err)
	}
}

// A message that finds no stream does not wait for a stream that replaces the lost one.
func TestPast_ARequestWithoutAStreamStartsAComparison(t *testing.T) {
	t.Parallel()
	b := storedLog(t, Config{})
	if err := b.streams.JS.DeleteStream(t.Context(), pastLog); err != nil {
		t.Fatal(err)
	}
	if _, err := appendTo(b, model.Append{Space: "cart", ID: "a/0/4", Expect: 3}); !errors.Is(err, model.ErrRewound) {
		t.Errorf("the append ended with %v", err)
	}
	if err := b.FollowSpace(t.Context(), "cart", 3, func(model.LogEntry) {}); err == nil {
		t.Error("a space without a log is followed")
	}
}

// A feed has no consumer that would end with the log.
func TestPast_AFeedWithoutItsLogStartsAComparison(t *testing.T) {
	t.Parallel()
	b := storedLog(t, Config{})
	if err := b.streams.JS.DeleteStream(t.Context(), pastLog); err != nil {
		t.Fatal(err)
	}
	changed := b.streams.Past.Changed.Wait()
	if err := b.FollowSpace(t.Context(), "cart", 3, func(model.LogEntry) {}); err == nil {
		t.Error("a space without a log is followed")
	}
	<-changed
	if got := b.Rewinds(); len(got) != 1 || got[0].Stream != pastLog {
		t.Errorf("the rewinds are %v", got)
	}
}

// A process that started after the newest messages has received none, and still knows how far the streams
// reach.
func TestPast_TheEndsOfLanesAndLogsAreRemembered(t *testing.T) {
	t.Parallel()
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
	for stream, want := range map[string]uint64{pastLog: 3, b.streams.Names.LaneStream(0): 1} {
		if got := b.streams.Past.Anchor(stream).Seq; got != want {
			t.Errorf("%s is known up to %d, want %d", stream, got, want)
		}
	}
}

// A stream that has gone back starts a new epoch: everything that depends on the earlier state ends, and
// nothing of it is remembered.
func TestPast_ARewindEndsWhatDependsOnTheEarlierState(t *testing.T) {
	t.Parallel()
	b := storedLog(t, Config{AckTimeout: 10 * time.Second, Faults: func(a faults.Attempt) faults.Fault {
		if a.Op == faults.OpSave && a.Try == 1 {
			return faults.DropRequest
		}
		return faults.Deliver
	}})
	answers := make(chan put, 1)
	b.startPut(0, b.Epoch(), item{"cart.doc", &model.StateDoc{Doc: "doc", Seq: 1, Data: []byte("1")}}, answers)
	b.seen.note("cart.other", 1, 1)
	b.streams.Past.Note(pastLog, wire.Anchor{Seq: 9})
	b.streams.Compare(t.Context(), pastLog)
	if got := b.Epoch(); got != 1 {
		t.Fatalf("epoch %d, want 1", got)
	}
	if n := b.seen.len(); n != 0 {
		t.Errorf("%d revisions of the former state are remembered", n)
	}
	if p := <-answers; !errors.Is(p.err, model.ErrRewound) {
		t.Errorf("it ended with %v", p.err)
	}
}

// An append is refused by a log that ends before what was expected only after the stream was
// compared: it may have gone back.
func TestPast_AnAppendAfterTheEndOfTheLogComparesIt(t *testing.T) {
	t.Parallel()
	b := storedLog(t, Config{})
	b.streams.Past.Note(pastLog, wire.Anchor{Seq: 9})
	if _, err := appendTo(b, model.Append{Space: "cart", ID: "a/0/4", Expect: 9}); !errors.Is(err, model.ErrRewound) {
		t.Errorf("the append ended with %v", err)
	}
}

// Each stream that has gone back is reported, with the time of its last rewind.
func TestPast_EveryRewindIsReported(t *testing.T) {
	t.Parallel()
	b := embeddedBus(t, Config{})
	goBack := func(stream string, known uint64, why string) {
		t.Helper()
		was := wire.Anchor{Seq: known}
		b.streams.Past.Note(stream, was)
		b.streams.WentBack(stream, was, why)
	}
	goBack("A", 9, "it ends at 5")
	goBack("B", 7, "it ends at 4")
	goBack("A", 6, "it ends at 1")
	b.streams.WentBack("C", wire.Anchor{Seq: 3}, "nothing was known of it")
	var got []string
	for _, r := range b.Rewinds() {
		got = append(got, fmt.Sprint(r.Stream, " ", r.Known, ", ", r.Found))
		if r.At.IsZero() {
			t.Errorf("the rewind of %s has no time", r.Stream)
		}
	}
	if text := strings.Join(got, "; "); text != "B 7, it ends at 4; A 6, it ends at 1" {
		t.Errorf("it tells %q", text)
	}
}

// Nothing is removed from a stream that may have gone back.
func TestPast_PurgesWaitUntilTheStreamWasCompared(t *testing.T) {
	t.Parallel()
	b := storedLog(t, Config{})
	b.streams.Past.SuspectAll()
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

// Everything that was delivered or loaded is compared with the stream after a disconnect.
func TestPast_FollowedAndLoadedMessagesAreRemembered(t *testing.T) {
	t.Parallel()
	first := storedLog(t, Config{})
	docs := []model.StateDoc{{Doc: "doc", Seq: 3, Data: []byte("1")}}
	if err := first.SaveState(t.Context(), "cart", docs, nil); err != nil {
		t.Fatal(err)
	}
	b := joined(t, Config{Server: first.cfg.Server, Partitions: 1})
	if _, err := b.LoadState(t.Context(), "cart"); err != nil {
		t.Fatal(err)
	}
	bucket := wire.BucketStream(b.streams.Names.StateBucket(0))
	if got := b.streams.Past.Anchor(bucket).Seq; got != docs[0].Rev {
		t.Errorf("revision %d of the bucket is remembered, want %d", got, docs[0].Rev)
	}
}

// A message that depends on an earlier state of the store is not sent.
func TestPublisher_ARequestOfAnotherEpochIsNotSent(t *testing.T) {
	t.Parallel()
	b := storedLog(t, Config{})
	b.streams.Past.Note(pastLog, wire.Anchor{Seq: 9})
	b.streams.Compare(t.Context(), pastLog) // it has gone back
	if _, err := appendTo(b, model.Append{Space: "cart", ID: "a/0/4", Expect: 3}); !errors.Is(err, model.ErrRewound) {
		t.Errorf("the append of the former epoch ended with %v", err)
	}
	docs := []model.StateDoc{{Doc: "doc", Seq: 3, Data: []byte("1")}}
	err := b.saveItems(t.Context(), 0, 0, []item{{"cart.doc", &docs[0]}})
	if !errors.Is(err, model.ErrRewound) {
		t.Errorf("the save of the former epoch ended with %v", err)
	}
}

func TestPublisher_AMessageThatIsTooLargeIsNotSent(t *testing.T) {
	t.Parallel()
	attempts := 0
	b := embeddedBus(t, Config{Faults: func(faults.Attempt) faults.Fault { attempts++; return faults.Deliver }})
	_, err := appendTo(b, model.Append{Space: "cart", ID: "a/0/1", Data: make([]byte, b.MaxPayload())})
	if !errors.Is(err, model.ErrTooLarge) || attempts != 0 {
		t.Errorf("after %d attempts: %v", attempts, err)
	}
}
