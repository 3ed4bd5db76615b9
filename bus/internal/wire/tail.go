package wire

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// Tail describes a subscription to a stream.
type Tail struct {
	Stream  string
	Pattern string // of the subjects; "" is all of them
	After   uint64 // deliver messages after this sequence
	// Latest requests the last message of every subject first, and then all
	// later ones. after is then 0.
	Latest bool
	// Reached, if set, is called once when everything has been delivered that
	// existed when the subscription began, or its replacement.
	Reached func()
	// Heads, if set, decides for each consumer whether it delivers messages without their data.
	Heads func() bool
	// Again, if set, is called after each delivery, and reports whether another consumer should continue, because Heads has changed.
	Again func() bool
}

// Delivery is a message of a followed stream.
type Delivery struct {
	*nats.Msg
	Seq     uint64    // in the stream
	nth     uint64    // of this consumer's deliveries, from 1
	Time    time.Time // when it was stored, by the server's clock
	pending uint64    // how many more exist
}

// errInterrupted: the consumer is unreliable; another one continues
// after the last delivery.
var errInterrupted = errors.New("consumer interrupted")

// errReconnected: the same, and all streams are being compared.
var errReconnected = fmt.Errorf("%w: the connection is another one", errInterrupted)

// errReplaced: the consumer works, and another one is to continue.
var errReplaced = fmt.Errorf("%w: another one delivers more, or less, of each message", errInterrupted)

// Follow delivers a stream in order, each message once, until ctx ends, the bus is
// stopped, the store was found to have gone back, or the stream has been missing for a while.
// deliver is called from one goroutine at a time, and not after the return.
//
// It uses a push consumer without acknowledgements, in memory and with one replica:
// the server numbers a consumer's deliveries, so a message lost on
// the way leaves a gap, and a consumer that is lost itself stops its
// heartbeat. Flow control keeps the server from running ahead of deliver.
func (s *Streams) Follow(ctx context.Context, t Tail, deliver func(Delivery)) error {
	return s.FollowIf(ctx, t, func(d Delivery) bool { deliver(d); return true })
}

// FollowIf is Follow for a deliver that returns false if it could not take a message: that is delivered again, after a pause.
func (s *Streams) FollowIf(ctx context.Context, t Tail, deliver func(Delivery) bool) error {
	if s.Imported() {
		return fmt.Errorf("follow stream %s: %w: that needs a user of the account that has the streams, such as one of the role backup or operator; this account imports them (`settle permissions`)", t.Stream, model.ErrForbidden)
	}
	var gone absence
	epoch := port.EpochOf(ctx, s.Past.Now())
	for try := 1; ; try++ {
		err := s.Steady(ctx, t.Stream, epoch)
		if err == nil {
			err = s.followOnce(ctx, &t, epoch, func(d Delivery) bool {
				taken := deliver(d)
				if taken {
					try = 0
				}
				return taken
			})
		}
		if over := s.Over(ctx); over != nil {
			return over
		}
		if errors.Is(err, model.ErrRewound) {
			return fmt.Errorf("follow stream %s: %w", t.Stream, err)
		}
		if !errors.Is(err, errReconnected) && !errors.Is(err, errReplaced) {
			s.Suspect(t.Stream) // the consumer may have ended with the stream, and another stream be in its place
		}
		if gone.time(err) > s.Timing.GoneAfter {
			return fmt.Errorf("follow stream %s: %w; it was deleted, or this is another account: check the connection, then provision", t.Stream, err)
		}
		if !errors.Is(err, errInterrupted) {
			s.Faults.Warn("cannot follow a stream just now; trying again", t.Stream+" "+t.Pattern, "stream", t.Stream, "after", t.After, "error", err)
		}
		if try == 0 { // it worked for a while: start again at once
			continue
		}
		if err := s.Sleep(ctx, Pause(try)); err != nil {
			return err
		}
	}
}

// absence measures how long a stream has been missing.
type absence struct{ since time.Time }

// time returns how long that is, given the outcome of one more try.
func (a *absence) time(err error) time.Duration {
	switch {
	case !errors.Is(err, ErrNoStream):
		a.since = time.Time{}
		return 0
	case a.since.IsZero():
		a.since = time.Now()
	}
	return time.Since(a.since)
}

// followOnce subscribes with one consumer, until that is interrupted.
func (s *Streams) followOnce(ctx context.Context, t *Tail, epoch uint64, deliver func(Delivery) bool) error {
	reconnected := s.Reconnects.Wait()
	f := newFollower(s, t, deliver)
	inbox := s.NC.NewInbox()
	sub, err := s.NC.Subscribe(inbox, f.receive)
	if err != nil {
		return Transient(err)
	}
	defer f.stop(sub)
	_ = sub.SetPendingLimits(-1, -1) // flow control is the limit
	consumer, err := s.createTail(ctx, t, inbox)
	if err != nil {
		return err
	}
	defer s.DeleteTail(t.Stream, consumer.Name)
	f.hasFound(consumer.NumPending + consumer.Delivered.Consumer)
	return f.watch(ctx, reconnected, epoch)
}

// createTries is how often one consumer is requested. A busy server would otherwise have to create
// ever more of them, each for a caller that has given up.
const createTries = 3

// createTail creates the consumer. If there is no answer in time, the same one is requested again.
func (l *Link) createTail(ctx context.Context, t *Tail, inbox string) (*jetstream.ConsumerInfo, error) {
	cfg := l.tailConfig(t, inbox)
	for try := 1; ; try++ {
		consumer, late, err := l.tryTail(ctx, t.Stream, cfg)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			return nil, ErrNoStream
		case late && try < createTries && l.Over(ctx) == nil:
			continue
		case err != nil:
			l.DeleteTail(t.Stream, cfg.Name) // it may have been created
			return nil, fmt.Errorf("create consumer: %w", err)
		}
		return consumer.CachedInfo(), nil
	}
}

// tryTail requests it once. late reports that there was no answer.
func (l *Link) tryTail(ctx context.Context, stream string, cfg jetstream.ConsumerConfig) (c jetstream.PushConsumer, late bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.AckTimeout)
	defer cancel()
	c, err = l.JS.CreatePushConsumer(ctx, stream, cfg)
	return c, errors.Is(err, context.DeadlineExceeded), err
}

// TailPrefix is the prefix of the names of Settle's own consumers.
const TailPrefix = "settle-"

func (l *Link) tailConfig(t *Tail, inbox string) jetstream.ConsumerConfig {
	c := jetstream.ConsumerConfig{
		Name:              TailPrefix + ShortID(),
		DeliverSubject:    inbox,
		FilterSubject:     t.Pattern,
		AckPolicy:         jetstream.AckNonePolicy,
		MaxDeliver:        1,
		FlowControl:       true,
		IdleHeartbeat:     l.Timing.Heartbeat,
		InactiveThreshold: 10 * time.Second, // it is deleted after use; this is for a lost deletion
		MemoryStorage:     true,
		Replicas:          1,
		HeadersOnly:       t.Heads != nil && t.Heads(),
	}
	switch {
	case t.Latest && t.After == 0:
		c.DeliverPolicy = jetstream.DeliverLastPerSubjectPolicy
		if c.FilterSubject == "" { // the server insists on one here
			c.FilterSubject = ">"
		}
	case t.After == 0:
		c.DeliverPolicy = jetstream.DeliverAllPolicy
	default:
		c.DeliverPolicy, c.OptStartSeq = jetstream.DeliverByStartSequencePolicy, t.After+1
	}
	return c
}

// DeleteTail deletes a consumer without waiting for the answer.
func (l *Link) DeleteTail(stream, consumer string) {
	_ = l.NC.Publish(l.API+"CONSUMER.DELETE."+stream+"."+consumer, nil)
}

// follower is one consumer's receiving end.
type follower struct {
	streams     *Streams
	t           *Tail
	deliver     func(Delivery) bool
	interrupted chan struct{} // closed when the consumer is not used any more
	once        sync.Once
	replaced    bool // set before it is closed because of t.Again

	mu        sync.Mutex // held during deliver
	stopped   bool
	nth       uint64
	delivered bool // since the last check of watch
	end       end
}

func newFollower(s *Streams, t *Tail, deliver func(Delivery) bool) *follower {
	f := &follower{streams: s, t: t, deliver: deliver, interrupted: make(chan struct{})}
	if t.Latest && t.After == 0 {
		f.end.subjects = map[string]bool{}
	}
	return f
}

// receive handles the consumer's messages, on the one goroutine of the subscription.
func (f *follower) receive(m *nats.Msg) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return
	}
	f.delivered = true
	if !strings.HasPrefix(m.Reply, "$JS.ACK.") {
		f.control(m)
		return
	}
	d, ok := readDelivery(m)
	if !ok || d.nth != f.nth+1 {
		f.interrupt()
		return
	}
	f.streams.Past.Note(f.t.Stream, Anchor{Seq: d.Seq, Time: d.Time, Subject: d.Subject, Commit: Header(d.Header, HeaderCommit)})
	if !f.deliver(d) {
		f.interrupt()
		return
	}
	f.nth, f.t.After = d.nth, d.Seq
	f.delivered = true
	f.end.delivered(d)
	f.perhapsReached()
	if f.t.Again != nil && f.t.Again() {
		f.replaced = true
		f.interrupt()
	}
}

// control answers flow control, after everything before it has been delivered,
// and reads a heartbeat, which names the last delivery.
func (f *follower) control(m *nats.Msg) {
	if isFlowControl(m.Reply) {
		_ = m.Respond(nil) // if that gets lost, the heartbeat shows it
		return
	}
	if stalled := Header(m.Header, "Nats-Consumer-Stalled"); isFlowControl(stalled) {
		_ = f.streams.NC.Publish(stalled, nil)
	}
	if last := Header(m.Header, "Nats-Last-Consumer"); last != "" && last != strconv.FormatUint(f.nth, 10) {
		f.interrupt()
	}
	f.perhapsReached()
}

// interrupt ends this consumer's use. f.mu is held.
func (f *follower) interrupt() {
	f.stopped = true
	f.once.Do(func() { close(f.interrupted) })
}

// hasFound records how many messages the consumer found when it was created.
func (f *follower) hasFound(n uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end.found, f.end.known = n, true
	f.perhapsReached()
}

// perhapsReached calls t.reached once, at the end. f.mu is held.
func (f *follower) perhapsReached() {
	if f.t.Reached != nil && !f.stopped && f.end.reached(f.streams.Timing.Heartbeat) {
		reached := f.t.Reached
		f.t.Reached, f.end.subjects = nil, nil
		reached()
	}
}

// watch returns when the consumer is unreliable: after a gap, a
// reconnect, a new epoch, or three missing heartbeats.
func (f *follower) watch(ctx context.Context, reconnected <-chan struct{}, epoch uint64) error {
	tick := time.NewTicker(3 * f.streams.Timing.Heartbeat)
	defer tick.Stop()
	for {
		changed := f.streams.Past.Changed.Wait()
		if f.streams.Past.Now() != epoch {
			return model.ErrRewound
		}
		select {
		case <-changed:
		case <-f.interrupted:
			if f.replaced {
				return errReplaced
			}
			return errInterrupted
		case <-reconnected:
			return errReconnected
		case <-f.streams.Stopped:
			return errInterrupted
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			if !f.alive() {
				return errInterrupted
			}
		}
	}
}

// alive reports whether anything was received since the last call. A slow deliver
// holds the mutex, and the messages that it delays count as received.
func (f *follower) alive() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	heard := f.delivered
	f.delivered = false
	return heard
}

// stop waits for a running deliver and prevents further ones.
func (f *follower) stop(sub *nats.Subscription) {
	_ = sub.Unsubscribe() // fails only if the connection is closed
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = true
}

// readDelivery reads the numbers in the reply subject of a delivered message:
//
//	$JS.ACK.<stream>.<consumer>.<tries>.<seq>.<nth>.<time>.<pending>
//	$JS.ACK.<domain>.<account>.<stream>.<consumer>.<tries>.<seq>.<nth>.<time>.<pending>[.<more>]
func readDelivery(m *nats.Msg) (Delivery, bool) {
	var at [12]string
	n := splitDots(m.Reply, at[:])
	first := 5 // of the numbers from seq on
	if n >= 11 {
		first = 7
	}
	if n < 9 || at[0] != "$JS" || at[1] != "ACK" {
		return Delivery{}, false
	}
	seq, err1 := strconv.ParseUint(at[first], 10, 64)
	nth, err2 := strconv.ParseUint(at[first+1], 10, 64)
	nano, err3 := strconv.ParseInt(at[first+2], 10, 64)
	pending, err4 := strconv.ParseUint(at[first+3], 10, 64)
	d := Delivery{Msg: m, Seq: seq, nth: nth, Time: time.Unix(0, nano).UTC(), pending: pending}
	return d, errors.Join(err1, err2, err3, err4) == nil
}

// splitDots splits without allocating; parts beyond the room are left out.
func splitDots(s string, into []string) (n int) {
	for ; n < len(into); n++ {
		part, rest, more := strings.Cut(s, ".")
		into[n] = part
		if !more {
			return n + 1
		}
		s = rest
	}
	return n
}
