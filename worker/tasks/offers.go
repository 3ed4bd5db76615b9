package tasks

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/status"
)

// Times of an offer.
const (
	// claimWithin is how long a performer may take until its first answer.
	claimWithin = 3 * time.Second
	// defaultHeartbeat is how often a performer has to be heard of after its claim; it is lost after lostAfter times as long.
	defaultHeartbeat = 10 * time.Second
	lostAfter        = 3
	// progressEvery is the least time between two commits of the progress of a task.
	progressEvery = 10 * time.Second
)

const (
	// defaultOffered is how many tasks of an action in one space performers have at a time, maxOffered those of all actions
	// and spaces of a process.
	defaultOffered = 256
	maxOffered     = 4096
	// answersRoom is how many answers to an offer may wait to be processed; more are refused.
	answersRoom = 64
	// tokenLen is long enough for the attempts at one task to differ.
	tokenLen = 12
)

// Offers hand tasks to performers, for all spaces of a process.
type Offers struct {
	offer func(action, queue string, request func(answer, cancel string) []byte, deliver func(model.Answer)) (end func(stop bool), err error)
	slots *Slots
	gates gates
}

// NewOffers returns the offers of a process, which makes them with a function: see port.Performers.
func NewOffers(offer func(action, queue string, request func(answer, cancel string) []byte, deliver func(model.Answer)) (end func(stop bool), err error)) *Offers {
	return &Offers{offer: offer, slots: NewSlots(maxOffered)}
}

// Describe adds the actions to the figures of the process whose tasks no performer takes.
func (o *Offers) Describe(f *status.Figures) { o.gates.describe(f, time.Now()) }

// remote is how the tasks of an action are handed to performers.
type remote struct {
	*Performer // its function is not called

	terms  *space.Remote
	offers *Offers
}

func (o *Offers) remote(terms *space.Remote) *remote {
	own := &Performer{Attempts: terms.Attempts, Backoff: terms.Backoff, MaxBackoff: terms.MaxBackoff, AtATime: terms.AtATime}
	if own.AtATime == 0 {
		own.AtATime = defaultOffered
	}
	return &remote{own, terms, o}
}

// admit reports how long a task of a list has to wait until it can be offered, and in which queue it is.
func (r *remote) admit(l *List, t *task) time.Duration {
	w := r.terms.WorkOf(&t.Task)
	queue, err := r.terms.QueueOf(&w)
	if err != nil {
		return 0 // the attempt reports it
	}
	if r.terms.QueueBy != "" {
		l = nil // its tasks for other performers need not wait, so it looks at each again
	}
	return r.offers.gates.admit(t.action, queue, r.terms.Rate, time.Now(), l)
}

// result is what an attempt has come to.
type result struct {
	// completion is what to report, nil if the attempt was cut off.
	completion *space.Completion
	// untaken reports that no performer has taken the task: it was no attempt.
	untaken bool
	// stored, if not nil, is called when the completion is in the log's lane, or will not be.
	stored func(bool)
	// progress is the last one of the attempt.
	progress model.Value
	// trace is the context of the span of the attempt.
	trace model.Trace
}

// offered is one offer of a task.
type offered struct {
	ctx     context.Context // of its span
	failure error           // of the attempt
	l       *List
	how     *remote
	attempt *Attempt
	t       *task
	work    space.Work
	queue   string
	token   string // in the ids of the events that report a progress
	answers chan model.Answer
	end     func(stop bool)
	claimed bool
	refused bool
	lost    *time.Timer
	limit   *time.Timer // nil without a limit, or before the claim
	report  progressReport
	waiting int // tasks of the action in the space
}

// offerTask hands a task to a performer, and returns when that has ended it, or the attempt is over for another reason.
// There are waiting tasks of its action in the space, with this one.
func (l *List) offerTask(ctx context.Context, how *remote, t *task, waiting int, begins func(context.Context) (context.Context, func(Ending, error))) (r result) {
	a := l.nextAttempt(t)
	if !how.offers.slots.enter(ctx, a) {
		return result{}
	}
	defer how.offers.slots.leave(a)
	ctx, ended := begins(ctx)
	o := &offered{ctx: ctx, l: l, how: how, attempt: a, t: t, work: how.terms.WorkOf(&t.Task), token: rand.Text()[:tokenLen], answers: make(chan model.Answer, answersRoom), waiting: waiting}
	defer func() {
		ended(endingOf(r.completion), o.failure)
		r.trace = telemetry.Of(ctx)
	}()
	var err error
	if o.queue, err = how.terms.QueueOf(&o.work); err != nil {
		return o.failed(&space.WorkError{Type: QueueError, Message: err.Error()}, true)
	}
	defer o.leaveGate()
	o.end, err = how.offers.offer(t.action, o.queue, o.request, o.deliver)
	switch {
	case errors.Is(err, model.ErrTooLarge):
		return o.failed(&space.WorkError{Type: LimitError, Message: fmt.Sprintf("the task cannot be handed to a performer: %v", err)}, true)
	case err != nil: // the process stops
		return result{}
	}
	o.lost = time.NewTimer(claimWithin)
	defer o.lost.Stop()
	r = o.wait(ctx)
	r.progress = o.report.known
	if o.limit != nil {
		o.limit.Stop()
	}
	return r
}

// leaveGate makes room for another offer.
func (o *offered) leaveGate() {
	switch g := &o.how.offers.gates; {
	case o.claimed:
		g.freed(o.t.action, o.queue)
	case !o.refused:
		g.unanswered(o.t.action, o.queue)
	}
}

// request returns the message that offers the task.
func (o *offered) request(answer, cancel string) []byte {
	fields := []model.Field{
		model.F("action", o.t.action), model.F("key", o.t.Key), model.F("space", o.l.host.Space), model.F("attempt", o.work.Attempt),
		model.F("idempotency_key", o.attempt.IdempotencyKey()), model.F("answer", answer), model.F("cancel", cancel), model.F("heartbeat_ms", o.how.heartbeat().Milliseconds()),
	}
	add := func(name string, v any, there bool) {
		if there {
			fields = append(fields, model.F(name, v))
		}
	}
	limit := o.timeout()
	add("event", o.attempt.Event, o.attempt.Event != "")
	add("run", o.work.Run, o.work.Run != "")
	add("queue", o.queue, o.queue != "")
	add("timeout_ms", limit.Milliseconds(), limit > 0)
	add("in", o.work.In, !o.work.In.IsAbsent())
	add("progress", o.t.Progress, !o.t.Progress.IsAbsent())
	return model.Object(fields...).AppendJSON(nil)
}

func (r *remote) heartbeat() time.Duration {
	if r.terms.Heartbeat > 0 {
		return r.terms.Heartbeat
	}
	return defaultHeartbeat
}

// timeout returns the limit of the attempt, 0 for none.
func (o *offered) timeout() time.Duration {
	switch a, b := o.how.terms.Timeout, o.work.Timeout; {
	case a <= 0:
		return max(b, 0)
	case b <= 0:
		return a
	default:
		return min(a, b)
	}
}

// deliver receives an answer. It must not wait.
func (o *offered) deliver(a model.Answer) {
	select {
	case o.answers <- a:
	default:
		reply(a, refused("too many answers at a time; send it again later"))
	}
}

// wait processes the answers until there is a result.
func (o *offered) wait(ctx context.Context) result {
	o.report = progressReport{send: o.sendProgress, sent: o.t.Progress}
	for {
		var limit <-chan time.Time
		if o.limit != nil {
			limit = o.limit.C
		}
		select {
		case a := <-o.answers:
			if r, over := o.answered(a); over {
				return r
			}
		case <-o.lost.C:
			if len(o.answers) > 0 { // it has been heard of, and this process was late
				o.lost.Reset(time.Millisecond)
				continue
			}
			o.end(true)
			if !o.claimed {
				return o.untaken(unclaimed)
			}
			return o.failed(&space.WorkError{Type: LostError, Message: fmt.Sprintf("the performer has claimed the task and was not heard of for %s", lostAfter*o.how.heartbeat())}, false)
		case <-limit:
			o.end(true)
			return o.failed(&space.WorkError{Type: TimeoutError, Message: fmt.Sprintf("the attempt took longer than %s", o.timeout())}, false)
		case <-o.report.due():
			o.report.flush(o.l.host.Go)
		case <-ctx.Done():
			o.end(true)
			return result{}
		}
	}
}

// answered processes an answer, and reports whether it is the last one.
func (o *offered) answered(a model.Answer) (r result, over bool) {
	if a.NoPerformer {
		if o.claimed {
			return r, false // forged
		}
		o.end(false)
		return o.untaken(absent), true
	}
	said, wrong := readAnswer(a.Data)
	switch {
	case wrong != nil:
		o.claim()
		reply(a, refused(wrong.Message))
		o.end(true)
		return o.failed(wrong, wrong.Type == LimitError), true
	case said.busy:
		reply(a, accepted)
		o.end(false)
		return o.untaken(busy), true
	case !said.ended():
		o.claim()
		o.lost.Reset(lostAfter * o.how.heartbeat())
		o.report.set(said.progress)
		reply(a, accepted)
		return r, false
	}
	o.claim()
	if said.failed != nil {
		r = o.failed(said.failed, said.permanent)
	} else {
		r = result{completion: o.how.Completion(&o.t.Task, said.out, nil)}
	}
	r.stored = func(is bool) {
		switch {
		case is && a.Last != nil:
			a.Last(accepted)
		case is:
			reply(a, accepted)
		}
		o.end(false)
	}
	return r, true
}

// claim records that a performer has the task.
func (o *offered) claim() {
	if o.claimed {
		return
	}
	o.claimed = true
	o.l.offered(true)
	if d := o.timeout(); d > 0 {
		o.limit = time.NewTimer(d)
	}
	o.how.offers.gates.taken(o.t.action, o.queue, time.Now())
}

// untaken returns the result of an offer that no performer has taken.
func (o *offered) untaken(why reason) result {
	o.l.offered(false)
	o.refused = true
	r := refusal{why, o.claimed, demand{o.l.host.Space, o.waiting}}
	if u := o.how.offers.gates.refused(o.t.action, o.queue, o.how.terms.Rate, r, time.Now()); u != nil {
		o.l.host.Logger.Warn("tasks wait for a performer", "reason", u.Reason(), "since", u.Since.Format(time.RFC3339), "action", u.Action, "space", u.Space, "tasks", u.Tasks, "remedy", u.Advice())
	}
	return result{untaken: true}
}

func (l *List) offered(taken bool) {
	if l.host.Offered != nil {
		l.host.Offered(taken)
	}
}

// failed returns the result of an attempt that has failed.
func (o *offered) failed(f *space.WorkError, permanent bool) result {
	err := errors.New(o.how.terms.TextOf(f))
	if permanent {
		err = Permanent(err)
	}
	c := o.how.Completion(&o.t.Task, model.Value{}, err)
	o.failure = err
	o.l.logFailed(o.ctx, o.t, c, err, o.how.terms.Failed != nil) // then the program reads the error
	return result{completion: c}
}

// accepted tells a performer that its answer counts, and refused that it does not and why.
var accepted = []byte(`{"ok":true}`)

func refused(why string) []byte {
	return model.Object(model.F("refused", why)).AppendJSON(nil)
}

func reply(a model.Answer, text []byte) {
	if a.Reply != nil {
		a.Reply(text)
	}
}

// sendProgress stores the progress of a task.
func (o *offered) sendProgress(v model.Value, nth int) {
	c := &space.Completion{Key: o.t.Key, N: o.t.N, Progress: v}
	id := minted(fmt.Sprintf("at%d-%s", nth, o.token), c)
	// A failure is no loss: there will be another progress, or the end.
	_ = o.l.host.Send(model.Message{Space: o.l.host.Space, Stream: o.t.action, ID: id, Payload: c.Value().AppendJSON(nil)})
}

// progressReport stores the last progress of a task from time to time.
type progressReport struct {
	send func(v model.Value, nth int)
	// sent is what was stored last, last what is to be stored, and known the last one that the performer has reported.
	sent, last, known model.Value
	n                 int
	timer             *time.Timer // nil before the first progress; it has fired if idle
	idle              bool
}

// set records a progress.
func (p *progressReport) set(v model.Value) {
	if v.IsAbsent() {
		return
	}
	p.last, p.known = v, v
	switch {
	case p.timer == nil:
		p.timer = time.NewTimer(0)
	case p.idle:
		p.idle = false
		p.timer.Reset(0)
	}
}

// due receives when flush is to be called.
func (p *progressReport) due() <-chan time.Time {
	if p.timer == nil {
		return nil
	}
	return p.timer.C
}

// flush stores the progress beside the caller, unless it is unchanged.
func (p *progressReport) flush(beside func(func())) {
	if p.last.IsAbsent() || model.Equal(p.last, p.sent) {
		p.idle = true
		return
	}
	v, n := p.last, p.n
	p.sent, p.last, p.n = v, model.Value{}, n+1
	beside(func() { p.send(v, n) }) // ends with the answer of the store
	p.timer.Reset(progressEvery)
}
