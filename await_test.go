package settle_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// fates is a program whose events end in every way that a handler can cause.
func fates() *settle.Program {
	return counter().
		Handle("panic", func(*settle.Tx, *settle.Event) (settle.Value, error) { panic("as it should") }).
		Handle("exhaust", func(*settle.Tx, *settle.Event) (settle.Value, error) {
			return settle.Value{}, settle.Transient(errors.New("not today"))
		}).
		Handle("bloat", func(*settle.Tx, *settle.Event) (settle.Value, error) {
			return settle.ValueOf(strings.Repeat("x", 2<<20))
		}).
		Handle("note", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			tx.Send("s", "add", settle.Value{})
			tx.Send("elsewhere", "add", settle.Value{})
			return settle.Value{}, nil
		})
}

// story is what happens to one event and to the clients that wait for its receipt.
type story struct {
	*world
	stream, id string
	caller     *settle.Client
	callerBus  *membus.Bus
	other      *settle.Client
	ctx        context.Context
	cancel     context.CancelFunc
}

// serve starts a worker. hook, which may be nil, decides about its requests.
func (s *story) serve(id string, hook membus.Hook) (crash func()) {
	s.Helper()
	return s.start(id, fates(), hook)
}

// atCommit is a hook that does something when a worker appends its first commit that
// is no takeover, and then lets that have its fate.
func (s *story) atCommit(do func(), fate membus.Fate) membus.Hook {
	appends := 0
	return func(op membus.Op) membus.Fate {
		if op.Label != "append" || op.Space != "s" {
			return membus.Deliver
		}
		if appends++; appends != 2 {
			return membus.Deliver
		}
		do()
		return fate
	}
}

// foreign appends a commit of another runtime.
func (s *story) foreign(c *model.Commit) {
	c.Space, c.Runtime = "s", "another"
	s.Append(c)
}

// answer is how a wait ended.
type answer struct {
	rc  *model.Receipt
	err error
}

func (a answer) String() string {
	switch {
	case errors.Is(a.err, context.Canceled):
		return "error: canceled"
	case errors.Is(a.err, model.ErrStopped):
		return "error: stopped"
	case a.err != nil:
		return "error: " + a.err.Error()
	case a.rc.Outcome == model.Handled:
		return "handled " + a.rc.Result.String()
	}
	return string(a.rc.Outcome) + ": " + a.rc.Error
}

// Every way in which an event, or a wait for it, can end. Three clients wait: the caller, one in another
// process that waits before the event is sent, and one that waits after everything is over. Each gets one
// answer, the same for all clients that are not stopped.
var endings = []struct {
	name   string
	stream string // "add" if empty
	// while is what happens while the call is under way.
	while func(s *story)
	// raw is what is sent past the client, which would refuse it.
	raw model.Message
	// id is the event's, "e1" if empty; before is the answer to the client that waits before it is sent, if
	// that is not want.
	id, before string
	want       string
	// caller is the answer to the caller, if that is not want.
	caller string
}{
	{name: "handled", while: func(s *story) { s.serve("w1", nil) }, want: "handled 1"},
	{name: "handled, by a worker that is there already", want: "handled 1"},
	{name: "failed, by an error", stream: "fail", want: "failed: as it should"},
	{name: "failed, by a panic", stream: "panic", want: "failed: handler of panic panicked: as it should"},
	{name: "failed, with its budget of retries used up", stream: "exhaust", want: "failed: not today"},
	{name: "failed, its result being too large", stream: "bloat", want: "failed: transaction too large"},
	{name: "refused, for want of a handler", stream: "nosuch", want: "refused: program counter has no handler for stream nosuch"},
	{name: "refused, being undecodable", raw: model.Message{Payload: []byte("{")}, want: "refused: the payload is not JSON"},
	{
		name: "refused, its id being too old", raw: model.Message{Payload: []byte("{}")},
		id:     settle.TimedID(time.Date(1999, 12, 24, 23, 59, 59, 0, time.UTC), "x").String(), // virtual time begins with 2000
		want:   "refused: event id at-00dc46c32418-x was made 168h0m1s ago",
		before: "error: find the receipt of event at-00dc46c32418-x to s/add: longer ago than",
	},
	{
		name: "refused, being the tombstone of a send that could not be delivered", id: "north:1:1:0",
		raw:  model.Message{Position: 1, Invalid: "too large for the lane"},
		want: "refused: too large for the lane",
	},
	{
		name: "handled before, the event being sent again",
		while: func(s *story) {
			s.serve("w1", nil)
			synctest.Wait()
			for _, c := range []*settle.Client{s.caller, s.other} {
				again := make(chan answer, 1)
				go func() { // ends with the call
					rc, err := c.Call(s.Context(), add("s", s.id))
					again <- answer{rc, err}
				}()
				s.expect("the client that sends it again", again, "handled 1")
			}
		},
		want: "handled 1",
	},
	{
		name: "handled, its worker being killed before the commit",
		while: func(s *story) {
			var crash func()
			gone := make(chan struct{})
			crash = s.serve("w1", s.atCommit(func() { close(gone) }, membus.DropRequest))
			<-gone
			crash()
			s.serve("w2", nil)
		},
		want: "handled 1",
	},
	{
		name: "handled, its worker being killed after the commit",
		while: func(s *story) {
			var crash func()
			gone := make(chan struct{})
			crash = s.serve("w1", s.atCommit(func() { close(gone) }, membus.DropAck))
			<-gone
			crash()
			s.serve("w2", nil)
		},
		want: "handled 1",
	},
	{
		name:  "handled, the acknowledgement of the commit being lost",
		while: func(s *story) { s.serve("w1", s.atCommit(func() {}, membus.DropAck)) },
		want:  "handled 1",
	},
	{
		name: "handled, after a conflict",
		while: func(s *story) {
			write := model.Write{Doc: "n", Value: model.Int(41)}
			s.serve("w1", s.atCommit(func() {
				s.foreign(&model.Commit{Epoch: s.Server.Head("s"), Txs: []model.Tx{{N: 1, By: "another writer", Writes: []model.Write{write}}}})
			}, membus.Deliver))
		},
		want: "handled 42",
	},
	{
		name: "handled, after a takeover by another worker",
		while: func(s *story) {
			s.serve("w1", s.atCommit(func() { s.foreign(&model.Commit{Takeover: true}) }, membus.Deliver))
		},
		want: "handled 1",
	},
	{
		name: "handled by another worker, faster",
		while: func(s *story) {
			s.serve("w1", s.atCommit(func() {
				s.foreign(&model.Commit{Takeover: true})
				s.foreignReceipt(&model.Receipt{Event: s.id, Lane: 1, Outcome: model.Handled, Result: model.Int(7)})
			}, membus.Deliver))
		},
		want: "handled 7",
	},
	{
		name: "handled, after an outage of the store",
		while: func(s *story) {
			s.serve("w1", s.atCommit(func() {}, membus.DropRequest))
			s.Server.Disconnect()
			s.Pass(time.Hour)
			s.Server.Reconnect()
		},
		want: "handled 1",
	},
	{
		name:   "the caller gives up",
		while:  func(s *story) { s.cancel(); synctest.Wait(); s.serve("w1", nil) },
		want:   "handled 1",
		caller: "error: canceled",
	},
	{
		name:   "the caller's client is closed",
		while:  func(s *story) { s.caller.Close(); synctest.Wait(); s.serve("w1", nil) },
		want:   "handled 1",
		caller: "error: stopped",
	},
	{
		name: "the caller's client is closed while the store is out of reach",
		while: func(s *story) {
			s.Server.Disconnect()
			s.caller.Close()
			synctest.Wait()
			s.Server.Reconnect()
			s.serve("w1", nil)
		},
		want:   "handled 1",
		caller: "error: stopped",
	},
	{
		name:   "the caller's connection is closed",
		while:  func(s *story) { s.callerBus.Close(); synctest.Wait(); s.serve("w1", nil) },
		want:   "handled 1",
		caller: "error: stopped",
	},
}

// foreignReceipt appends a commit in which another runtime has handled the event.
func (s *story) foreignReceipt(rc *model.Receipt) {
	s.Append(&model.Commit{
		Space: "s", Runtime: "another", Epoch: s.Server.Head("s"), Cursor: model.Cursor{Floor: rc.Lane},
		Txs: []model.Tx{{N: 1, By: "handle add", Receipt: rc}},
	})
}

func TestQ20_EveryWaitIsAnsweredOnceHoweverTheEventEnds(t *testing.T) {
	for _, e := range endings {
		t.Run(e.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				s := &story{world: w, stream: cmp.Or(e.stream, "add"), id: cmp.Or(e.id, "e1")}
				s.ctx, s.cancel = context.WithCancel(t.Context())
				defer s.cancel()
				s.caller, s.callerBus = w.client("caller", nil)
				s.other, _ = w.client("other", nil)
				if e.while == nil {
					s.serve("w1", nil)
				}

				before := s.wait(t.Context(), s.other)
				synctest.Wait()
				called := s.call(e.raw)
				synctest.Wait()
				if e.while != nil {
					e.while(s)
				}
				s.expect("the caller", called, cmp.Or(e.caller, e.want))
				s.expect("the client that waited before the event was sent", before, cmp.Or(e.before, e.want))
				late, _ := w.client("late", nil)
				s.expect("the client that waits when all is over", s.wait(t.Context(), late), e.want)
				again := s.wait(t.Context(), s.other)
				s.expect("the client that waits once more", again, e.want)
				if n := s.handlings(); n != 1 {
					t.Errorf("the event has %d receipts", n)
				}
			})
		})
	}
}

// call sends the event and waits for its receipt; what the client would refuse is sent
// past it.
func (s *story) call(raw model.Message) <-chan answer {
	if raw.Payload != nil || raw.Invalid != "" {
		raw.Space, raw.Stream, raw.ID = "s", s.stream, s.id
		if _, err := s.Server.Send(raw); err != nil {
			s.Fatal(err)
		}
		return s.wait(s.ctx, s.caller)
	}
	done := make(chan answer, 1)
	go func() { // ends with the call
		rc, err := s.caller.Call(s.ctx, settle.Outgoing{Space: "s", Stream: s.stream, ID: settle.ID(s.id)})
		done <- answer{rc, err}
	}()
	return done
}

func (s *story) wait(ctx context.Context, c *settle.Client) <-chan answer {
	done := make(chan answer, 1)
	go func() { // ends with the wait
		rc, err := c.Space("s").Await(ctx, s.stream, settle.ID(s.id))
		done <- answer{rc, err}
	}()
	return done
}

// expect waits for an answer: for less time than after which a client reads the log again by itself, so that
// a lost delivery is noticed.
func (s *story) expect(client string, got <-chan answer, want string) {
	s.Helper()
	select {
	case a := <-got:
		if !strings.HasPrefix(a.String(), want) {
			s.Errorf("%s received %q, want %q", client, a, want)
		}
	case <-time.After(5 * time.Minute):
		s.Errorf("%s received no answer", client)
	}
}

// handlings is how many receipts of the event the log has.
func (s *story) handlings() (n int) {
	for _, rc := range s.Receipts("s") {
		if rc.Event == s.id {
			n++
		}
	}
	return n
}

// A call whose event is not stored ends with the reason, and waits for nothing.
func TestCall_AnEventThatCannotBeStoredIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c, _ := w.client("c", nil)
		e := add("s", "e1")
		e.Payload = strings.Repeat("x", 2<<20)
		if _, err := c.Call(t.Context(), e); !errors.Is(err, model.ErrTooLarge) {
			t.Errorf("an event of 2 MiB: %v", err)
		}
		w.Server.LimitLanes(1)
		if _, err := c.Send(t.Context(), add("s", "e2")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Call(t.Context(), add("s", "e3")); !errors.Is(err, model.ErrLaneFull) {
			t.Errorf("an event to a full lane: %v", err)
		}
	})
}

// What an event has sent can be waited for by its id as well: in its own space, and in
// another one, before the coordinator has released it there.
func TestQ20_Await_WhatAHandlerHasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := &story{world: w}
		s.serve("w1", nil)
		c, _ := w.client("c", nil)
		if rc, err := c.Call(t.Context(), settle.Outgoing{Space: "s", Stream: "note", ID: settle.ID("e1")}); err != nil || rc.Outcome != model.Handled {
			t.Fatalf("%+v, %v", rc, err)
		}
		origin := model.TxID{Space: "s", Epoch: 1, N: model.BeforeFirstTx(w.Commits("s")[0].Term) + 1}
		if rc, err := c.Space("s").Await(t.Context(), "add", settle.ID(origin.Event(0))); err != nil || rc.Result.String() != "1" {
			t.Errorf("the follow-up: %+v, %v", rc, err)
		}
		other := make(chan answer, 1)
		go func() { // ends with the wait
			rc, err := c.Space("elsewhere").Await(t.Context(), "add", settle.ID(origin.Event(1)))
			other <- answer{rc, err}
		}()
		synctest.Wait()
		select {
		case a := <-other:
			t.Errorf("no coordinator has released it, and the answer is %v", a)
		default:
		}
		w.Coordinator()
		s.expect("the client that waits for the send", other, "handled 1")
	})
}

func TestAwait_RefusesNamesThatAreNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c, _ := w.client("c", nil)
		var name *model.NameError
		for _, n := range [][3]string{{"*", "add", "e1"}, {"s", ">", "e1"}, {"s", "add", "e 1"}, {"s", "add", ""}} {
			if _, err := c.Space(n[0]).Await(t.Context(), n[1], settle.ID(n[2])); !errors.As(err, &name) {
				t.Errorf("%v: %v, want a *NameError", n, err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := c.Space("s").Await(ctx, "add", settle.ID("never"))
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(fmt.Sprint(err), "event never to s/add") {
			t.Errorf("no client sends it: %v", err)
		}
	})
}

// amnesiac asks a leader of the lane that is deposed and does not know it: for some
// time, that knows of no event.
type amnesiac struct {
	*membus.Bus
	asked atomic.Int64
	nth   int64 // the question about which that is so; 0 is the first
}

func (b *amnesiac) FindEvent(ctx context.Context, space, stream, id string) (model.Message, bool, error) {
	if b.asked.Add(1) == max(b.nth, 1) {
		return model.Message{}, false, nil
	}
	return b.Bus.FindEvent(ctx, space, stream, id)
}

// The receipt was in the log before the wait began, so following the log does not
// bring it: it has to be looked for again.
func TestAwait_IsAnsweredThoughADeposedLeaderDoesNotKnowOfTheEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("w1")
		c, _ := w.client("c", nil)
		if _, err := c.Call(t.Context(), add("s", "e1")); err != nil {
			t.Fatal(err)
		}
		var bus *amnesiac
		d, _ := w.client("d", func(b *membus.Bus) port.Bus { bus = &amnesiac{Bus: b}; return bus })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if rc, err := d.Space("s").Await(ctx, "add", settle.ID("e1")); err != nil || rc.Result.String() != "1" {
			t.Errorf("%+v, %v", rc, err)
		}
		if n := bus.asked.Load(); n != 2 {
			t.Errorf("the event was looked for %d times, want 2", n)
		}
	})
}

// An event that is to be cancelled has ended according to one reading of the log; the next reading is of an
// earlier state in which it had not. The client returns the receipt all the same.
func TestCancel_OfAnEventThatHasEndedReturnsItsReceiptThoughADeposedLeaderDoesNotKnowOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("w1")
		c, _ := w.client("c", nil)
		if _, err := c.Call(t.Context(), add("s", "e1")); err != nil {
			t.Fatal(err)
		}
		var bus *amnesiac
		d, _ := w.client("d", func(b *membus.Bus) port.Bus { bus = &amnesiac{Bus: b, nth: 2}; return bus })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		rc, err := d.Cancel(ctx, history.EventRef{Space: "s", Stream: "add", Event: "e1"}, "too late")
		if err != nil || rc.Outcome != model.Handled || rc.Result.String() != "1" {
			t.Errorf("%+v, %v", rc, err)
		}
		if n := bus.asked.Load(); n < 2 {
			t.Errorf("the event was looked for %d times, and this proves nothing", n)
		}
	})
}

// lossy delivers nothing of what is followed at first, and loses it when there is a receipt.
type lossy struct {
	*membus.Bus
	handled <-chan struct{}
	follows atomic.Int64
}

func (b *lossy) FollowSpace(ctx context.Context, space string, after uint64, deliver func(model.LogEntry)) error {
	if b.follows.Add(1) == 1 {
		<-b.handled
		return errors.New("the stream is gone")
	}
	return b.Bus.FollowSpace(ctx, space, after, deliver)
}

// Commits that entered the log while no subscription existed are not delivered: the client reads them.
func TestAwait_LooksForWhatCameWhileTheLogCouldNotBeFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		handled := make(chan struct{})
		d, _ := w.client("d", func(b *membus.Bus) port.Bus { return &lossy{Bus: b, handled: handled} })
		told := make(chan answer, 1)
		go func() { // ends with the call
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			rc, err := d.Call(ctx, add("s", "e1"))
			told <- answer{rc, err}
		}()
		w.worker("w1")
		c, _ := w.client("c", nil)
		if _, err := c.Space("s").Await(t.Context(), "add", settle.ID("e1")); err != nil {
			t.Fatal(err)
		}
		close(handled)
		if a := <-told; a.String() != "handled 1" {
			t.Errorf("told %v", a)
		}
	})
}

// deposed asks a leader of the log that is deposed and does not know it: some time ago,
// it knew where the log ended.
type deposed struct {
	*membus.Bus
	asked atomic.Int64
	knows uint64
}

func (b *deposed) Head(ctx context.Context, space string) (uint64, error) {
	if n := b.asked.Add(1); n == 2 || n == 3 { // after the follower has begun at the true end
		return b.knows, nil
	}
	return b.Bus.Head(ctx, space)
}

// The receipt lies before where the log is followed from, and behind where a look into
// the past would end.
func TestAwait_LooksAtLeastUpToWhereTheLogIsFollowedFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("w1")
		c, _ := w.client("c", nil)
		if _, err := c.Call(t.Context(), add("s", "e1")); err != nil {
			t.Fatal(err)
		}
		d, _ := w.client("d", func(b *membus.Bus) port.Bus { return &deposed{Bus: b, knows: w.Server.Head("s") - 1} })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if rc, err := d.Space("s").Await(ctx, "add", settle.ID("e1")); err != nil || rc.Result.String() != "1" {
			t.Errorf("%+v, %v", rc, err)
		}
	})
}

// A wait whose receipt may lie in a commit that the client cannot read ends with an error.
func TestAwait_ACommitOfANewerFormatIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c, _ := w.client("c", nil)
		called := make(chan answer, 1)
		go func() { // ends with the call
			rc, err := c.Call(t.Context(), add("s", "e1"))
			called <- answer{rc, err}
		}()
		synctest.Wait()
		if _, err := w.Server.Append(model.Append{Space: "s", Data: []byte(`{"v":99}`)}); err != nil {
			t.Fatal(err)
		}
		if a := <-called; a.err == nil || !strings.Contains(a.err.Error(), "upgrade") {
			t.Errorf("told %v", a)
		}
	})
}
