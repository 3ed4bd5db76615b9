package wire

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus/faults"
	"github.com/settlehq/settle/model"
)

// Task is a message to be stored, with the interpretation of its answers.
type Task struct {
	Op faults.Op
	// Msg is the same in every attempt, down to the reply subject.
	Msg *nats.Msg
	// Judge decides what an answer means. doubt reports that an earlier attempt may
	// have been stored without confirmation.
	Judge func(a Answer, doubt bool) Ruling
	// Done receives the definite result, exactly once.
	Done func(seq uint64, err error)

	// Stream is the stream to store the message in, and subject its subject there: a stream that
	// may have gone back is compared with its remembered message before anything is sent.
	Stream, Subject string
	// Holder is the stream of a message that names none before it is sent.
	Holder string
	// Bound reports that the message depends on earlier reads: it is not sent in a later
	// epoch than this one.
	Bound bool
	Epoch uint64
}

// Ruling is the consequence of an answer: the end of the task (zero again and
// lookup), another attempt, or a lookup that must be made first.
type Ruling struct {
	Seq    uint64
	Err    error
	Again  bool
	Lookup func(context.Context) Ruling
}

// publisher sends tasks until each has a definite answer.
//
// All replies arrive at one wildcard subscription, whose last token names the
// request, so a request costs no subscription and no goroutine. Its goroutines
// are the sweeper, and one for every running lookup; stop ends them. If a
// callback would run inside the call that it answers, it gets its own goroutine, which
// ends with it.
type publisher struct {
	NC      *nats.Conn
	sub     *nats.Subscription
	prefix  string // of reply subjects
	timeout time.Duration
	faults  faults.Func
	past    *past
	suspect func(stream string) // has a stream compared
	log     *slog.Logger
	Ctx     context.Context // ends with stop
	cancel  context.CancelFunc
	running sync.WaitGroup // the sweeper and the lookups

	mu      sync.Mutex
	closed  bool
	next    uint64
	pending map[uint64]*Request
	idle    signal // raised when nothing is pending
	refused unstored

	// answers queries a stream, and returns nil if it is there. asked is when that was last done for each
	// stream that does not answer store requests.
	answers func(ctx context.Context, stream string) error
	asked   map[string]time.Time
}

// LastRefusal returns when the server last did not store a message, and why; the zero time if it never happened.
func (p *publisher) LastRefusal() (at time.Time, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused.at, p.refused.why
}

// Request is a task in flight. The publisher's mutex guards it, except for task,
// token, order and the message, which never change.
type Request struct {
	Task
	token uint64 // random: what names it can be taken for the answer
	order uint64 // of registration

	state       requestState
	sent        time.Time // the last attempt
	silent      time.Time // the first attempt since the last answer, zero if none
	tries       int
	retries     int
	dropReplies int  // number of answers to ignore, for Faults
	doubt       bool // an attempt may have been stored without confirmation
	held        bool // it waits without a timer until its stream has been compared
	reason      string
}

type requestState int

const (
	onTheWire      requestState = iota // an answer is awaited
	waitingToRetry                     // a timer, or the end of a comparison, will send it again
	asking                             // an answer or a lookup is being judged
)

func newPublisher(nc *nats.Conn, timeout time.Duration, faults faults.Func, past *past, log *slog.Logger, answers func(context.Context, string) error) (*publisher, error) {
	ctx, cancel := context.WithCancel(context.Background())
	p := &publisher{
		NC: nc, prefix: nc.NewInbox() + ".", timeout: timeout, faults: faults, past: past, log: log,
		Ctx: ctx, cancel: cancel, pending: map[uint64]*Request{}, answers: answers, asked: map[string]time.Time{},
	}
	sub, err := nc.Subscribe(p.prefix+"*", p.receive)
	if err != nil {
		cancel()
		return nil, err
	}
	p.sub = sub
	_ = sub.SetPendingLimits(-1, -1) // acknowledgements are small, and losing one is costly
	p.running.Go(p.sweep)            // ends with p.ctx
	return p, nil
}

// Start sends a task for the first time. It may be called from any goroutine and
// calls done from another one.
func (p *publisher) Start(t Task) *Request {
	if size, limit := payload(t.Msg), p.NC.MaxPayload(); int64(size) > limit {
		go t.Done(0, TooLargeError(string(t.Op), size, int(limit))) // ends when done returns
		return nil
	}
	r := &Request{Task: t}
	if err := p.register(r); err != nil {
		go t.Done(0, err) // ends when done returns
		return nil
	}
	p.transmit(r)
	return r
}

// payload returns the size that the server compares with max_payload.
func payload(m *nats.Msg) int { return m.Size() - len(m.Subject) - len(m.Reply) }

func (p *publisher) register(r *Request) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return model.ErrStopped
	}
	if r.Bound && r.Epoch != p.past.Now() {
		return ErrOtherEpoch
	}
	p.next++
	r.order, r.token = p.next, rand.Uint64()
	for p.pending[r.token] != nil {
		r.token = rand.Uint64()
	}
	r.Msg.Reply = p.prefix + strconv.FormatUint(r.token, 36)
	p.pending[r.token] = r
	return nil
}

// transmit makes one attempt.
func (p *publisher) transmit(r *Request) {
	fault, ok := p.prepare(r)
	if !ok || fault == faults.DropRequest {
		return
	}
	err := p.NC.PublishMsg(r.Msg)
	if err == nil && fault == faults.Duplicate {
		err = p.NC.PublishMsg(r.Msg)
	}
	if err != nil {
		go p.notSent(r, err) // ends at once; it may call back, which start must not do
	}
}

// prepare records that an attempt is about to be made, unless r has ended. The
// fault is chosen without the mutex, since a test may block an attempt.
func (p *publisher) prepare(r *Request) (faults.Fault, bool) {
	try, ok := p.begin(r)
	if !ok {
		return faults.Deliver, false
	}
	fault := p.faults.Of(faults.Attempt{Op: r.Op, Subject: r.Msg.Subject, Try: try})
	if fault == faults.Deliver {
		return fault, true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch fault {
	case faults.DropAck:
		r.dropReplies++
	case faults.Duplicate:
		r.doubt = true
	}
	return fault, p.pending[r.token] == r
}

// begin counts the attempt. If another one is in flight, either may be stored and
// the refusal of the other arrive first.
func (p *publisher) begin(r *Request) (try int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending[r.token] != r {
		return 0, false
	}
	if r.held = p.past.HoldsBack(r.Stream, r.Bound); r.held {
		r.state = waitingToRetry // until the stream has been compared
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

// notSent handles an attempt that could not be passed to the connection.
func (p *publisher) notSent(r *Request, err error) {
	if errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrConnectionDraining) {
		p.settle(r, 0, model.ErrStopped)
		return
	}
	p.answered(r, notSentAnswer(err))
}

// receive handles all replies, on the one goroutine of the subscription.
func (p *publisher) receive(m *nats.Msg) {
	token, err := strconv.ParseUint(m.Subject[len(p.prefix):], 36, 64)
	if err != nil {
		return
	}
	if r := p.listening(token); r != nil {
		p.answered(r, readAnswer(m, cmp.Or(r.Stream, r.Holder)))
	}
}

// forbid answers the requests to a subject to which this user may not publish: the server
// reports that to the connection only, not as a reply.
func (p *publisher) forbid(subject string, err error) {
	p.mu.Lock()
	var dropped []*Request
	for _, r := range p.pending { // any order: each on its own
		if r.Msg.Subject == subject {
			dropped = append(dropped, r)
		}
	}
	p.mu.Unlock()
	for _, r := range dropped {
		p.answered(r, Answer{Outcome: Forbidden, Reason: err.Error()})
	}
}

// listening returns the request of that token, unless it has ended or must ignore this
// answer.
func (p *publisher) listening(token uint64) *Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.pending[token]
	if r != nil && r.dropReplies > 0 {
		r.dropReplies--
		return nil
	}
	return r
}

// answered acts on an answer. "stored" counts whenever it arrives; any
// other answer only while one is awaited, since it may belong to an earlier attempt.
func (p *publisher) answered(r *Request, a Answer) {
	p.mu.Lock()
	if a.Outcome == Full || a.Outcome == Unclear {
		p.refused = unstored{time.Now(), r.Msg.Subject + ": " + a.Reason}
	}
	r.silent = time.Time{}
	if p.pending[r.token] != r || (r.state != onTheWire && a.Outcome != Stored) {
		p.mu.Unlock()
		return
	}
	if a.Outcome == Unclear {
		r.doubt = true
	}
	r.state, r.reason = asking, a.Reason
	doubt := r.doubt
	p.mu.Unlock()
	if a.Outcome == Unavailable && p.suspect != nil { // the stream may be gone, and return with an earlier state
		p.suspect(r.Stream)
	}
	p.act(r, r.Judge(a, doubt))
}

func (p *publisher) act(r *Request, v Ruling) {
	switch {
	case v.Lookup != nil:
		p.ask(r, v.Lookup)
	case v.Again:
		p.scheduleRetry(r)
	default:
		p.settle(r, v.Seq, v.Err)
	}
}

// ask runs a lookup on a goroutine of its own, which ends with the lookup or with
// p.ctx, and acts on its ruling.
func (p *publisher) ask(r *Request, lookup func(context.Context) Ruling) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.pending[r.token] != r {
		return
	}
	r.state = asking
	p.running.Go(func() {
		if v := lookup(p.Ctx); p.Ctx.Err() == nil {
			p.act(r, v)
		}
	})
}

// scheduleRetry waits before the next attempt.
func (p *publisher) scheduleRetry(r *Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending[r.token] != r {
		return
	}
	r.state, r.held = waitingToRetry, false
	r.retries++
	p.logSlow(r)
	rests := r.retries
	time.AfterFunc(Pause(rests), func() { p.retryDue(r, rests) }) // a no-op once r has ended
}

func (p *publisher) retryDue(r *Request, rests int) {
	p.mu.Lock()
	due := p.pending[r.token] == r && r.state == waitingToRetry && r.retries == rests
	p.mu.Unlock()
	if due {
		p.transmit(r)
	}
}

// Pause doubles from 5 ms to 1 s, with a random factor, so that colliding
// requests do not collide again.
func Pause(n int) time.Duration {
	d := min(5*time.Millisecond<<min(n-1, 10), time.Second)
	return d/2 + rand.N(d)
}

// settle ends a request, unless it has ended already.
func (p *publisher) settle(r *Request, seq uint64, err error) {
	if p.forget(r) {
		if err == nil && seq > 0 {
			p.past.Note(r.Stream, Anchor{Seq: seq, Subject: r.Subject, Commit: Header(r.Msg.Header, HeaderCommit)})
		}
		r.Done(seq, err)
	}
}

// Withdraw ends a request without calling done. A sent message may still be stored.
func (p *publisher) Withdraw(r *Request) {
	if r != nil {
		p.forget(r)
	}
}

func (p *publisher) forget(r *Request) bool {
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

// sweep resends requests without a timely answer, until p.ctx ends.
func (p *publisher) sweep() {
	tick := time.NewTicker(max(p.timeout/4, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			p.resend(func(r *Request) bool { return r.state == onTheWire && now.Sub(r.sent) > p.patience(r) })
			p.judgeSilence(now)
		case <-p.Ctx.Done():
			return
		}
	}
}

// patience returns how long to wait for an answer. An answer that a fault loses on purpose is lost only after
// it has arrived, so that the test knows that the server has acted on the request.
func (p *publisher) patience(r *Request) time.Duration {
	if r.dropReplies > 0 {
		return max(p.timeout, lostAckPatience)
	}
	return p.timeout
}

// lostAckPatience limits that: a single answer may simply get lost.
const lostAckPatience = 30 * time.Second

// disconnected puts every request in flight in doubt.
func (p *publisher) disconnected() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.pending { // any order: each on its own
		r.silent = time.Time{} // the disconnection explains the silence
		if r.state == onTheWire {
			r.doubt, r.reason = true, "the connection broke"
		}
	}
}

// reconnected resends every request that may not have arrived.
func (p *publisher) reconnected() {
	p.resend(func(r *Request) bool { return r.state != asking })
}

// resend makes another attempt for all requests that which selects, oldest first.
// Those that were in flight are in doubt from here on.
func (p *publisher) resend(which func(*Request) bool) {
	for _, r := range p.doubtful(which) {
		p.transmit(r)
	}
}

func (p *publisher) doubtful(which func(*Request) bool) []*Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []*Request
	for _, r := range p.pending { // any order: sorted below
		if !which(r) {
			continue
		}
		if r.state == onTheWire {
			r.doubt = true
			p.logSlow(r)
		}
		found = append(found, r)
	}
	slices.SortFunc(found, func(a, b *Request) int { return cmp.Compare(a.order, b.order) })
	return found
}

// logSlow logs that a request takes long: at the fourth attempt, and
// then at growing intervals. The mutex is held.
func (p *publisher) logSlow(r *Request) {
	if r.tries >= 4 && r.tries&(r.tries-1) == 0 {
		p.log.Warn("request still without a definite answer; it is sent again until there is one",
			"request", r.Op, "subject", r.Msg.Subject, "attempt", r.tries, "reason", r.reason)
	}
}

// abandon ends all requests that which selects with an error.
func (p *publisher) abandon(which func(*Request) bool, err error) {
	p.mu.Lock()
	var found []*Request
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
		empty, changed := len(p.pending) == 0, p.idle.Wait()
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

// stop ends everything that is pending with model.ErrStopped, and makes the goroutines end; wait returns when
// they have. Neither may be called from a callback.
func (p *publisher) stop() {
	p.mu.Lock()
	p.closed = true
	abandoned := p.pending
	p.pending = map[uint64]*Request{}
	p.mu.Unlock()
	p.cancel()
	for _, r := range abandoned { // any order: callbacks of different requests are independent
		r.Done(0, model.ErrStopped)
	}
}

func (p *publisher) wait() { p.running.Wait() }
