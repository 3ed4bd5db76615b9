package wire

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/faults"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/model"
)

func TestPast_OnlyNewerMessagesAreRemembered(t *testing.T) {
	var p past
	p.Note("LOG", Anchor{Seq: 7, Subject: "seven"})
	p.Note("LOG", Anchor{Seq: 5, Subject: "five"})
	if got := p.Anchor("LOG"); got.Seq != 7 {
		t.Errorf("an older message has replaced a newer one: %+v", got)
	}
	p.Note("LOG", Anchor{Seq: 9, Subject: "nine"})
	if got := p.Anchor("LOG"); got.Seq != 9 {
		t.Errorf("a newer message is not remembered: %+v", got)
	}
}

// A message received from a stream that may have gone back does not show what is in the stream now.
func TestPast_MessagesOfASuspectedStreamAreNotRemembered(t *testing.T) {
	var p past
	p.Note("LOG", Anchor{Seq: 7})
	p.SuspectAll()
	p.Note("LOG", Anchor{Seq: 8})
	if got := p.Anchor("LOG").Seq; got != 7 {
		t.Errorf("message %d is remembered, want 7", got)
	}
}

func TestPast_NothingIsStoredBeforeStreamsWereCompared(t *testing.T) {
	var p past
	p.Note("LOG", Anchor{Seq: 7})
	p.SuspectAll()
	if !p.HoldsBack("LOG", false) {
		t.Error("a stream that may have gone back takes messages")
	}
	if !p.HoldsBack("LANE", true) {
		t.Error("what rests on what was read is stored while a stream may have gone back")
	}
	if p.HoldsBack("LANE", false) {
		t.Error("what rests on nothing waits for other streams")
	}
}

// The comparisons after an earlier disconnect do not show what happened at the last one.
func TestPast_StreamsAreSettledByTheLastComparisons(t *testing.T) {
	var p past
	p.Note("LOG", Anchor{Seq: 7})
	p.SuspectAll()
	p.SuspectAll()
	p.settled(1)
	if !p.HoldsBack("LANE", true) {
		t.Error("the comparisons of the first disconnect have settled the second one")
	}
	p.settled(2)
	if p.HoldsBack("LANE", true) {
		t.Error("the streams are compared, and not settled")
	}
}

// A stream without a leader delays others only for a while. A stream that a leader contradicts does so until the
// contradiction is confirmed or withdrawn.
func TestPast_NothingIsSettledWhileALeaderContradicts(t *testing.T) {
	for name, decide := range map[string]func(p *past){
		"withdrawn": func(p *past) { p.holds("LOG", Anchor{Seq: 7}, Anchor{Seq: 7}, p.suspicion("LOG")) },
		"believed": func(p *past) {
			p.isBack("LOG", Anchor{Seq: 7}, model.Rewind{Stream: "LOG", Known: 7, Found: "it ends at 5"})
		},
	} {
		var p past
		p.Note("LOG", Anchor{Seq: 7})
		p.SuspectAll()
		p.contradicts("LOG")
		p.settled(1)
		if !p.HoldsBack("LANE", true) {
			t.Error("a request that rests on a read value is stored, while a leader reports that the value is gone")
		}
		decide(&p)
		p.settled(1)
		if p.HoldsBack("LANE", true) {
			t.Errorf("it is %s, and others still wait", name)
		}
	}
}

func TestPast_MessagesAreDistinguished(t *testing.T) {
	now := time.Now()
	is := Anchor{Seq: 7, Time: now, Subject: "cart", Commit: "a/0/1"}
	for name, found := range map[string]Anchor{
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
	if why := (&Anchor{Seq: 7}).differs(is); why != "" {
		t.Errorf("what is not known is compared: %s", why)
	}
}

// A follower of a stream of an earlier epoch gets an error.
func TestPast_AFollowerOfAnEarlierEpochEnds(t *testing.T) {
	b := aLink()
	b.Past.Note("LOG", Anchor{Seq: 7})
	b.Past.isBack("LOG", Anchor{Seq: 7}, model.Rewind{Stream: "LOG", Known: 7, Found: "it ends at 5"})
	f := newFollower(b, &Tail{Stream: "LOG"}, func(Delivery) bool { return true })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.watch(ctx, make(chan struct{}), 0); !errors.Is(err, model.ErrRewound) {
		t.Errorf("got %v", err)
	}
}

// aPublisher returns a publisher without a server, with a request in flight.
func aPublisher(p *past) (*publisher, *Request) {
	r := &Request{Task: Task{Msg: &nats.Msg{Header: nats.Header{}}}, token: 1, tries: 1}
	return &publisher{past: p, pending: map[uint64]*Request{1: r}}, r
}

// A request that may have been stored is in doubt: its own earlier try may be the reason for a refusal.
func TestPublisher_AMessageThatMayBeStoredIsInDoubt(t *testing.T) {
	for name, then := range map[string]func(p *publisher, r *Request){
		"the connection broke": func(p *publisher, _ *Request) { p.disconnected() },
		"it is sent again":     func(p *publisher, r *Request) { p.begin(r) },
		"the answer is unclear": func(p *publisher, r *Request) {
			r.Judge = func(Answer, bool) Ruling { return Ruling{} }
			r.Done = func(uint64, error) {}
			p.answered(r, Answer{Outcome: Unclear})
		},
	} {
		p, r := aPublisher(&past{})
		if then(p, r); !r.doubt {
			t.Errorf("%s, and the request is not in doubt", name)
		}
	}
}

// Messages that may not have arrived are sent again when the connection is back, except those that are being
// looked up.
func TestPublisher_AfterAReconnectItSendsAgain(t *testing.T) {
	for state, want := range map[requestState]int{onTheWire: 1, waitingToRetry: 1, asking: 0} {
		p, r := aPublisher(&past{})
		attempts := 0
		p.faults = func(faults.Attempt) faults.Fault { attempts++; return faults.DropRequest }
		r.state = state
		if p.reconnected(); attempts != want {
			t.Errorf("a request in state %d is sent %d times, want %d", state, attempts, want)
		}
	}
}

// Every delivered message is compared with the stream after a disconnect.
func TestPast_FollowedMessagesAreRemembered(t *testing.T) {
	b := aLink()
	f := newFollower(b, &Tail{Stream: "FOLLOWED"}, func(Delivery) bool { return true })
	f.receive(message(1))
	if got := b.Past.Anchor("FOLLOWED").Seq; got != 100 {
		t.Errorf("message %d of the followed stream is remembered, want 100", got)
	}
}

// aLink returns a link without a connection.
func aLink() *Streams {
	return &Streams{Link: NewLink(LinkConfig{Prefix: "settle", AckTimeout: time.Minute, Log: slog.New(slog.DiscardHandler)})}
}

// The end of a comparison sends the messages that it held back, but none that pauses between two attempts:
// otherwise a stream that accepts nothing would get requests without a pause.
func TestPublisher_AComparisonSendsOnlyWhatItHeldBack(t *testing.T) {
	attempts := 0
	s := connected(t, func(a faults.Attempt) faults.Fault {
		if a.Subject == "held" {
			attempts++
			return faults.DropRequest
		}
		return faults.Deliver
	})
	for held, want := range map[bool]int{false: 0, true: 1} {
		r := &Request{Task: Task{Stream: "PLAIN", Msg: nats.NewMsg("held"), Done: func(uint64, error) {}}, token: 1 << 40, state: waitingToRetry, held: held}
		s.Pub.mu.Lock()
		s.Pub.pending[r.token] = r
		s.Pub.mu.Unlock()
		attempts = 0
		if s.Compare(t.Context(), "PLAIN"); attempts != want {
			t.Errorf("a request that is held back, %v, is sent %d times, want %d", held, attempts, want)
		}
		s.Pub.Withdraw(r)
	}
}

// A client that sees the inbox of another one cannot name the next answers in it: the names do not count up. The order of requests is kept beside them.
func TestPublisher_NamesOfAnswersCannotBeGuessed(t *testing.T) {
	s := connected(t, nil)
	var all []*Request
	for i := range 20 {
		r := &Request{Task: Task{Stream: "PLAIN", Msg: nats.NewMsg("x"), Done: func(uint64, error) {}}}
		if err := s.Pub.register(r); err != nil {
			t.Fatal(err)
		}
		if len(all) > 0 && r.order != all[len(all)-1].order+1 || r.token < 1<<20 {
			t.Errorf("request %d has the place %d and the name %d", i, r.order, r.token)
		}
		all = append(all, r)
	}
	for _, r := range all {
		s.Pub.Withdraw(r)
	}
}

// connected returns a bus on its own server with a stream PLAIN, of which it knows the only message.
func connected(t *testing.T, faults faults.Func) *Streams {
	t.Helper()
	server := natstest.StartServer(t, embedded.Config{})
	nc, err := nats.Connect("", server.ConnOption())
	if err != nil {
		t.Fatal(err)
	}
	s := aLink()
	if err := s.Open(nc, APISettings{}, faults); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if _, err := s.JS.CreateStream(t.Context(), jetstream.StreamConfig{Name: "PLAIN", Subjects: []string{"plain"}}); err != nil {
		t.Fatal(err)
	}
	ack, err := s.JS.Publish(t.Context(), "plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Past.Note("PLAIN", Anchor{Seq: ack.Sequence})
	return s
}
