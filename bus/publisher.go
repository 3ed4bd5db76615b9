package bus

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/model"
)

// task is a message that is to be stored, and what its answers mean.
type task struct {
	op Op
	// msg is the same in every attempt, down to the reply subject.
	msg *nats.Msg
	// judge decides what an answer means. doubt says that an earlier attempt may
	// have been stored without our hearing of it.
	judge func(a answer, doubt bool) ruling
	// done gets the definite answer, exactly once.
	done func(seq uint64, err error)

	// stream is where the message is to be stored, and subject under which name: a stream that
	// may have gone back is compared with what is remembered of it before anything is sent.
	stream, subject string
	// holder is the stream of a message that names none before it is sent.
	holder string
	// bound says that the message follows from what was read before: it is not sent in another
	// epoch than this one.
	bound bool
	epoch uint64
}

// ruling is what follows from an answer: the end of the task (the zero again and
// lookup), another attempt, or a question that must be asked first.
type ruling struct {
	seq    uint64
	err    error
	again  bool
	lookup func(context.Context) ruling
}

// publisher sends tasks and sees to it that each gets a definite answer.
//
// All replies arrive at one wildcard subscription, whose last token names the
// request, so a request costs no subscription and no goroutine. Its goroutines
// are the sweeper, and one for every lookup under way; stop ends them. Where a
// callback would run inside the call that it answers, it gets a goroutine, which
// ends with it.
type publisher struct {
	nc      *nats.Conn
	sub     *nats.Subscription
	prefix  string // of reply subjects
	timeout time.Duration
	faults  Faults
	past    *past
	suspect func(stream string) // has a stream compared
	log     *slog.Logger
	ctx     context.Context // ends with stop
	cancel  context.CancelFunc
	running sync.WaitGroup // the sweeper and the lookups

	mu      sync.Mutex
	closed  bool
	next    uint64
	pending map[uint64]*request
	idle    signal // raised when nothing is pending any more
	refused unstored

	// answers asks for a stream, and returns nil if it is there. asked is when that was done last of each
	// stream that does not answer what is to be stored.
	answers func(ctx context.Context, stream string) error
	asked   map[string]time.Time
}

// unstored is when the server was found last not to store something, and why: there was no room, it has
// failed to, or it does not answer.
type unstored struct {
	at  time.Time
	why string
}

// Refusal is when the server has last not stored something, for want of room or because it has failed to,
// and why; the zero time if it never has. A server that does not answer what is to be stored, and all else,
// is one of these.
func (b *Bus) Refusal() (at time.Time, why string) {
	b.pub.mu.Lock()
	defer b.pub.mu.Unlock()
	return b.pub.refused.at, b.pub.refused.why
}

// request is a task under way. The publisher's mutex guards it, but for task,
// token and the message, which never change.
type request struct {
	task
	token uint64

	state  requestState
	sent   time.Time // the last attempt
	silent time.Time // the first attempt since which no answer has come, zero if there is none
	tries  int
	rests  int
	deaf   int  // answers to ignore, for Faults
	doubt  bool // an attempt may have been stored that nobody confirmed
	held   bool // it rests until its stream has been compared, without a timer
	reason string
}

type requestState int

const (
	onTheWire requestState = iota // an answer is awaited
	resting                       // a timer will send it again, or the end of a comparison
	asking                        // an answer or a lookup is being judged
)

func newPublisher(nc *nats.Conn, timeout time.Duration, faults Faults, past *past, log *slog.Logger, answers func(context.Context, string) error) (*publisher, error) {
	ctx, cancel := context.WithCancel(context.Background())
	p := &publisher{
		nc: nc, prefix: nc.NewInbox() + ".", timeout: timeout, faults: faults, past: past, log: log,
		ctx: ctx, cancel: cancel, pending: map[uint64]*request{}, answers: answers, asked: map[string]time.Time{},
	}
	sub, err := nc.Subscribe(p.prefix+"*", p.receive)
	if err != nil {
		cancel()
		return nil, err
	}
	p.sub = sub
	_ = sub.SetPendingLimits(-1, -1) // acknowledgements are small, and losing one is dear
	p.running.Go(p.sweep)            // ends with p.ctx
	return p, nil
}

// start sends a task for the first time. It may be called from any goroutine and
// calls done from another one.
func (p *publisher) start(t task) *request {
	if size, limit := payload(t.msg), p.nc.MaxPayload(); int64(size) > limit {
		go t.done(0, tooLargeError(string(t.op), size, int(limit))) // ends when done returns
		return nil
	}
	r := &request{task: t}
	if err := p.register(r); err != nil {
		go t.done(0, err) // ends when done returns
		return nil
	}
	p.transmit(r)
	return r
}

// payload is the size that the server compares with max_payload.
func payload(m *nats.Msg) int { return m.Size() - len(m.Subject) - len(m.Reply) }

func (p *publisher) register(r *request) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return model.ErrStopped
	}
	if r.bound && r.epoch != p.past.now() {
		return errOtherEpoch
	}
	p.next++
	r.token = p.next
	r.msg.Reply = p.prefix + strconv.FormatUint(r.token, 36)
	p.pending[r.token] = r
	return nil
}

// transmit makes one attempt.
func (p *publisher) transmit(r *request) {
	fault, ok := p.prepare(r)
	if !ok || fault == DropRequest {
		return
	}
	err := p.nc.PublishMsg(r.msg)
	if err == nil && fault == Duplicate {
		err = p.nc.PublishMsg(r.msg)
	}
	if err != nil {
		go p.notSent(r, err) // ends at once; it may call back, and start may not
	}
}

// prepare notes that an attempt is about to be made, unless r has ended. The
// fault is chosen without the mutex, for a test may hold up an attempt.
func (p *publisher) prepare(r *request) (Fault, bool) {
	try, ok := p.begin(r)
	if !ok {
		return Deliver, false
	}
	fault := p.faults.of(Attempt{Op: r.op, Subject: r.msg.Subject, Try: try})
	if fault == Deliver {
		return fault, true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch fault {
	case DropAck:
		r.deaf++
	case Duplicate:
		r.doubt = true
	}
	return fault, p.pending[r.token] == r
}

// begin counts the attempt. If another one is on the wire, either may be stored and
// the refusal of the other be heard first.
func (p *publisher) begin(r *request) (try int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending[r.token] != r {
		return 0, false
	}
	if r.held = p.past.holdsBack(r.stream, r.bound); r.held {
		r.state = resting // until the stream has been compared
		return 0, false
	}
	if r.tries > 0 && r.state == onTheWire {
		r.doubt = true
	}
	r.state, r.sent = onTheWire, time.Now()
	if r.silent.IsZero() {
		r.silent = r.sent
	}
	r.tries++
	return r.tries, true
}

// notSent deals with an attempt that could not be handed to the connection.
func (p *publisher) notSent(r *request, err error) {
	if errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrConnectionDraining) {
		p.settle(r, 0, model.ErrStopped)
		return
	}
	p.answered(r, notSentAnswer(err))
}

// receive gets all replies, on the one goroutine of the subscription.
func (p *publisher) receive(m *nats.Msg) {
	token, err := strconv.ParseUint(m.Subject[len(p.prefix):], 36, 64)
	if err != nil {
		return
	}
	if r := p.listening(token); r != nil {
		p.answered(r, readAnswer(m))
	}
}

// forbid answers the requests to a subject to which this user may not publish: the server
// says so to the connection, and nothing to whoever waits for a reply.
func (p *publisher) forbid(subject string, err error) {
	p.mu.Lock()
	var dropped []*request
	for _, r := range p.pending { // any order: each on its own
		if r.msg.Subject == subject {
			dropped = append(dropped, r)
		}
	}
	p.mu.Unlock()
	for _, r := range dropped {
		p.answered(r, answer{outcome: forbidden, why: err.Error()})
	}
}

// listening is the request of that token, unless it has ended or is to miss this
// answer.
func (p *publisher) listening(token uint64) *request {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.pending[token]
	if r != nil && r.deaf > 0 {
		r.deaf--
		return nil
	}
	return r
}

// answered acts on an answer. One that says "stored" counts whenever it comes; any
// other only while an answer is awaited, for it may be about an earlier attempt.
func (p *publisher) answered(r *request, a answer) {
	p.mu.Lock()
	if a.outcome == full || a.outcome == unclear {
		p.refused = unstored{time.Now(), r.msg.Subject + ": " + a.why}
	}
	r.silent = time.Time{}
	if p.pending[r.token] != r || (r.state != onTheWire && a.outcome != stored) {
		p.mu.Unlock()
		return
	}
	if a.outcome == unclear {
		r.doubt = true
	}
	r.state, r.reason = asking, a.why
	doubt := r.doubt
	p.mu.Unlock()
	if a.outcome == unavailable && p.suspect != nil { // it may be gone, and come back as what it once was
		p.suspect(r.stream)
	}
	p.act(r, r.judge(a, doubt))
}

func (p *publisher) act(r *request, v ruling) {
	switch {
	case v.lookup != nil:
		p.ask(r, v.lookup)
	case v.again:
		p.rest(r)
	default:
		p.settle(r, v.seq, v.err)
	}
}

// ask runs a lookup on a goroutine of its own, which ends with the lookup or with
// p.ctx, and acts on what it finds.
func (p *publisher) ask(r *request, lookup func(context.Context) ruling) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.pending[r.token] != r {
		return
	}
	r.state = asking
	p.running.Go(func() {
		if v := lookup(p.ctx); p.ctx.Err() == nil {
			p.act(r, v)
		}
	})
}

// rest waits a little before the next attempt.
func (p *publisher) rest(r *request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending[r.token] != r {
		return
	}
	r.state, r.held = resting, false
	r.rests++
	p.complain(r)
	rests := r.rests
	time.AfterFunc(pause(rests), func() { p.rested(r, rests) }) // a no-op once r has ended
}

func (p *publisher) rested(r *request, rests int) {
	p.mu.Lock()
	due := p.pending[r.token] == r && r.state == resting && r.rests == rests
	p.mu.Unlock()
	if due {
		p.transmit(r)
	}
}

// pause doubles from 5 ms to 1 s, give or take half, so that those who collided
// once do not collide again.
func pause(n int) time.Duration {
	d := min(5*time.Millisecond<<min(n-1, 10), time.Second)
	return d/2 + rand.N(d)
}

// settle ends a request, unless it has ended already.
func (p *publisher) settle(r *request, seq uint64, err error) {
	if p.forget(r) {
		if err == nil && seq > 0 {
			p.past.note(r.stream, anchor{seq: seq, subject: r.subject, commit: header(r.msg.Header, headerCommit)})
		}
		r.done(seq, err)
	}
}

// withdraw ends a request without calling done. What was sent may still be stored.
func (p *publisher) withdraw(r *request) {
	if r != nil {
		p.forget(r)
	}
}

func (p *publisher) forget(r *request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending[r.token] != r {
		return false
	}
	delete(p.pending, r.token)
	if len(p.pending) == 0 {
		p.idle.raise()
	}
	return true
}

// sweep sends again what was not answered in time, until p.ctx ends.
func (p *publisher) sweep() {
	tick := time.NewTicker(max(p.timeout/4, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			p.resend(func(r *request) bool { return r.state == onTheWire && now.Sub(r.sent) > p.patience(r) })
			p.judgeSilence(now)
		case <-p.ctx.Done():
			return
		}
	}
}

// patience is how long an answer is awaited. One that is to be lost on purpose is lost when
// it has come, so that whoever injects that knows that the server did as it was told.
func (p *publisher) patience(r *request) time.Duration {
	if r.deaf > 0 {
		return max(p.timeout, lostAckPatience)
	}
	return p.timeout
}

// lostAckPatience bounds that: an answer that is to be lost may get lost by itself.
const lostAckPatience = 30 * time.Second

// disconnected puts everything in doubt that was on the wire.
func (p *publisher) disconnected() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.pending { // any order: each on its own
		r.silent = time.Time{} // that is why
		if r.state == onTheWire {
			r.doubt, r.reason = true, "the connection broke"
		}
	}
}

// reconnected sends everything again that may not have arrived.
func (p *publisher) reconnected() {
	p.resend(func(r *request) bool { return r.state != asking })
}

// resend makes another attempt for all requests that which selects, oldest first.
// Those that were on the wire are in doubt from here on.
func (p *publisher) resend(which func(*request) bool) {
	for _, r := range p.doubtful(which) {
		p.transmit(r)
	}
}

func (p *publisher) doubtful(which func(*request) bool) []*request {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []*request
	for _, r := range p.pending { // any order: sorted below
		if !which(r) {
			continue
		}
		if r.state == onTheWire {
			r.doubt = true
			p.complain(r)
		}
		found = append(found, r)
	}
	slices.SortFunc(found, func(a, b *request) int { return int(a.token) - int(b.token) })
	return found
}

// complain says in the log that a request takes long: at the fourth attempt, and
// then ever more rarely. The mutex is held.
func (p *publisher) complain(r *request) {
	if r.tries >= 4 && r.tries&(r.tries-1) == 0 {
		p.log.Warn("request still without a definite answer; it is sent again until there is one",
			"op", r.op, "subject", r.msg.Subject, "tries", r.tries, "reason", r.reason)
	}
}

// abandon ends all requests that which selects with an error.
func (p *publisher) abandon(which func(*request) bool, err error) {
	p.mu.Lock()
	var found []*request
	for _, r := range p.pending { // any order: each on its own
		if which(r) {
			found = append(found, r)
		}
	}
	p.mu.Unlock()
	for _, r := range found {
		p.settle(r, 0, err)
	}
}

// drain returns when nothing is pending, or when ctx ends.
func (p *publisher) drain(ctx context.Context) {
	for {
		p.mu.Lock()
		empty, changed := len(p.pending) == 0, p.idle.wait()
		p.mu.Unlock()
		if empty {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// stop ends everything that is pending with model.ErrStopped, and tells the
// goroutines to end; wait returns when they have. Neither may be called from a
// callback.
func (p *publisher) stop() {
	p.mu.Lock()
	p.closed = true
	abandoned := p.pending
	p.pending = map[uint64]*request{}
	p.mu.Unlock()
	p.cancel()
	for _, r := range abandoned { // any order: callbacks of different requests are independent
		r.done(0, model.ErrStopped)
	}
}

func (p *publisher) wait() { p.running.Wait() }
