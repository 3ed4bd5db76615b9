package sim

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/internal/runlimit"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// Code that does not return within its limit (docs/adr/0034): handlers, a computation and an effect that hang
// for a time or for good, while events wait behind them, processes die, leave and pause, applications join, and
// events are cancelled. The promises:
//
//	the space           handles the rest of its lane, once and in order (all other checks)
//	the event           is handled, or becomes a dead letter after its attempts and not before
//	abandoned code      has written and sent nothing, and cannot use its transaction; its host calls nothing any more
//	late code           has failed, whatever it returns; code in time has not
//	an abandoned node   rests, and handlers read its last output
//	the worker          counts the goroutines that are left in such code

// hangs are what a plan decides about code that hangs.
type hangs struct {
	// limit is the limit of the handler, within that Program.Within sets it; otherwise it is the worker's,
	// which for attachments is longer than a run.
	limit  time.Duration
	within bool
	// nodes gives the program a computation and an effect that hang.
	nodes bool
}

const (
	slow     = "slow"      // the computation
	slowSink = "slow-sink" // the effect
	// attachedLimit is the default of worker.Config.RunLimit, which applies to attachments.
	attachedLimit = 30 * time.Second
	// eventRetries is the default of space.Config.EventRetries.
	eventRetries = 5
	// abandoned are what only code writes that is given up, or returns too late.
	abandonedBefore, abandonedAfter = "abandoned-before", "abandoned-after"
)

func (p *plan) chooseHangs() {
	if !p.has("hangs") {
		return
	}
	c := keyed(p.seed, "hangs")
	p.hangs = hangs{limit: c.between(150*time.Millisecond, 1200*time.Millisecond), within: c.below(2) == 0, nodes: c.below(4) == 0}
	if p.idle < 0 {
		p.idle = c.between(5*time.Millisecond, 150*time.Millisecond)
	}
}

// hang adds the items: an event whose handler hangs, events behind it, and faults of its space in the
// meantime.
func (p *plan) hang() {
	for i := range p.times("hangs", 3) {
		c := keyed(p.seed, "hang", i)
		ev := item{
			at: c.between(0, p.chaos*3/4), do: oneOf(c, "queue", "send", "call"), who: anyUser(c), space: p.anySpace(c),
			stream: "hang", id: fmt.Sprint("hang", i+1), payload: fmt.Sprint(oneOf(c, 1, 1, 2, 9)),
		}
		p.add(ev)
		for k := range 1 + c.below(4) {
			behind := ev
			behind.at, behind.do, behind.who, behind.id = ev.at+c.between(1, 600*time.Millisecond), oneOf(c, "queue", "send", "call"), anyUser(c), fmt.Sprint("behind", i+1, "x", k)
			behind.stream = oneOf(c, "add", "pay", "get", "put")
			behind.payload = p.payload(c, behind.stream)
			p.add(behind)
		}
		meanwhile := ev.at + c.between(0, p.hangs.limit+2*runlimit.Grace)
		who := fmt.Sprint("w", 1+c.below(workers))
		switch c.below(10) {
		case 0:
			p.add(item{at: meanwhile, do: "kill", who: who})
			p.add(item{at: meanwhile + c.between(0, time.Second), do: "start", who: who})
		case 1:
			p.add(item{at: meanwhile, do: "leave", who: who})
			p.add(item{at: meanwhile + c.between(0, time.Second), do: "start", who: oneOf(c, "w1", "w2", "w3")})
		case 2:
			p.add(item{at: meanwhile, do: "pause", who: who, span: c.about(p.ttl * 2 / 3)})
		case 3: // the new worker takes partitions over
			p.add(item{at: meanwhile, do: "start", who: oneOf(c, "w2", "w3")})
		case 4:
			p.add(item{at: meanwhile, do: "cancel", who: anyUser(c), space: ev.space, stream: ev.stream, id: ev.id})
		case 5, 6:
			app := fmt.Sprint("a", 1+c.below(2))
			p.add(item{at: max(ev.at-c.between(0, 300*time.Millisecond), 0), do: "start", who: app, space: ev.space, a: c.below(3) > 0})
			for k := range 1 + c.below(4) {
				p.add(item{at: ev.at + c.between(0, 2*time.Second), do: "transact", who: app, id: fmt.Sprint(app, "h", i+1, "x", k)})
			}
		case 7, 8: // no watch keeps the space in memory when it is at rest
			p.items = slices.DeleteFunc(p.items, func(it item) bool { return it.space == ev.space && (it.do == "watch" || it.do == "start") })
		}
	}
	if !p.hangs.nodes {
		return
	}
	for i := range 2 + keyed(p.seed, "times", "glimpses").below(4) {
		c := keyed(p.seed, "glimpse", i)
		p.add(item{at: p.when(c), do: oneOf(c, "queue", "send", "call"), who: anyUser(c), space: p.anySpace(c), stream: "glimpse", id: fmt.Sprint("glimpse", i+1)})
	}
	for i := range 1 + keyed(p.seed, "times", "slow watches").below(3) {
		c := keyed(p.seed, "slow watch", i)
		w := item{at: p.when(c), do: "watch", who: anyUser(c), space: p.anySpace(c), doc: slow}
		if c.below(2) == 0 {
			w.span = p.when(c)
		}
		p.add(w)
	}
}

// hangBound returns how much code that hangs adds to the bound on rest: for each event, three attempts
// and the pauses between them, or five attempts that heed their context, and as many in an application,
// whose limit is longer; for nodes, two pauses.
func (p *plan) hangBound() (d time.Duration) {
	if !p.has("hangs") {
		return 0
	}
	for _, it := range p.items {
		if it.stream == "hang" || it.do == "redrive" {
			d += 15 * time.Second
			if !p.hangs.within {
				d += eventRetries * attachedLimit
			}
		}
	}
	if p.hangs.nodes {
		d += 4 * time.Minute
	}
	return d
}

// ofHangs are the streams, and the effects of their handlers when they return.
var ofHangs = map[string]func(v view, ev *model.Event) (model.Value, error){
	"hang": func(v view, _ *model.Event) (model.Value, error) {
		v.Send("s1", "add", 6)
		return count(v, 2000), nil
	},
	// reads the computation that hangs.
	"glimpse": func(v view, _ *model.Event) (model.Value, error) {
		v.Set("glimpsed", v.Get(slow))
		return count(v, 1), nil
	},
}

// computeSlow returns the result of the computation if it returns.
func computeSlow(v view) model.Value {
	n, _ := v.Get("n").AsInt()
	return model.Int(n + 7)
}

// attempts are those at one event, or runs of one node of a space, over all processes.
type attempts struct {
	calls, bad, returned, late int
}

// lost returns the number of attempts that have not returned.
func (a *attempts) lost() int { return a.calls - a.returned }

// hanging is code that is running. w.mu guards it.
type hanging struct {
	space string
	p     *process
	since time.Duration
	late  time.Duration // from then on it is given up
}

// limits returns when code is over its limit, at the latest, and when it is given up: time is measured
// in checks.
func limits(limit time.Duration) (over, late time.Duration) {
	look := min(max(limit/8, time.Millisecond), time.Second)
	return limit + 2*look, limit + runlimit.Grace + 2*look
}

// isTakenBack reports whether the plan may cancel an event. Its grace may begin with the cancellation,
// just before the limit is noticed, and is measured in separate checks.
func (p *plan) isTakenBack(key eventKey) bool {
	return slices.ContainsFunc(p.items, func(it item) bool {
		return it.space == key.space && (it.do == "skip" || it.do == "cancel" && it.stream == key.stream && it.id == key.id)
	})
}

// try makes one attempt: it hangs as often as the event, or the node, has to, and then returns in time. An
// error means that the process is dead, or is the result of the handler.
func (w *world) try(p *process, tx *space.Tx, key eventKey, bad int, limit time.Duration) error {
	w.mu.Lock()
	a := w.attempts[key]
	if a == nil {
		a = &attempts{}
		w.attempts[key] = a
	}
	a.calls++
	if p.tried == nil {
		p.tried = map[eventKey]int{}
	}
	p.tried[key]++
	hangs := a.bad < bad && p.died == 0
	c := keyed(w.plan.seed, "try", p.name, key.space, key.stream, key.id, p.tried[key])
	if key.stream == "" && (w.healed || c.below(2) == 0) { // nodes rest for longer than the chaos lasts
		hangs = false
	}
	if hangs {
		a.bad++
	}
	over, late := limits(limit)
	if w.plan.isTakenBack(key) {
		late += runlimit.Grace / 4
	}
	h := &hanging{space: key.space, p: p, since: w.story.now(), late: w.story.now() + late}
	w.hangings[h] = true
	w.mu.Unlock()
	w.story.note(p.name, "%s/%s/%s is called; it hangs: %v", key.space, key.stream, key.id, hangs)
	err := w.takeTime(h, tx, key, c, hangs, limit, over)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.hangings, h)
	switch {
	case p.ctx.Err() != nil:
		return errDead
	case errors.Is(err, errGivenUp):
		return err
	case err != nil:
		a.late++
	}
	a.returned++
	return err
}

// Outcomes of attempts that did not return in time. An attempt with errTooLate writes, and its caller gets no
// error.
var (
	errDead    = errors.New("the process is dead")
	errGivenUp = errors.New("given up, and returns without an error")
	errTooLate = errors.New("too late")
)

// takeTime is how an attempt spends its time.
func (w *world) takeTime(h *hanging, tx *space.Tx, key eventKey, c *chance, hangs bool, limit, over time.Duration) error {
	p := h.p
	if !hangs {
		if takes := c.between(time.Millisecond, limit*4/5); c.below(2) == 0 {
			w.pass(p.ctx, takes)
			w.count("code that took its time, and returned within its limit")
		}
		return nil
	}
	how := oneOf(c, neverReturns, usesLate, usesLate, returnsLate, returnsLate, heeds, heeds, overdue)
	if node := key.stream == ""; !node && keyed(w.plan.seed, "is never given up", key.space, key.id).below(4) == 0 {
		how = oneOf(c, heeds, overdue)
	}
	longer, within, notices := c.between(1, 2*time.Second), c.between(over, max(limit+runlimit.Grace*9/10, over+1)), c.between(1, time.Millisecond)
	if how == overdue && over > limit+runlimit.Grace/2 {
		how = heeds // there is no time between two looks
	}
	switch how {
	case neverReturns:
		<-p.ctx.Done()
		w.count("code that never returned")
	case usesLate, returnsLate:
		w.pass(p.ctx, h.late-h.since+longer)
		w.mu.Lock()
		delete(w.hangings, h)
		w.givenUp[tx.Guard()] = true
		w.mu.Unlock()
		switch {
		case p.ctx.Err() != nil:
			w.count("code that hung when its process died")
		case how == returnsLate:
			w.count("code that returned after it was given up")
			return errGivenUp
		default:
			w.count("code that used its transaction after it was given up")
			tx.Get("n") // which ends it
			w.violate("given up", "code of space %s goes on in %s that was called at %v, and given up by %v", h.space, p.name, h.since, h.late)
		}
	case heeds:
		ctx := worker.Context(tx)
		select {
		case <-ctx.Done():
			w.pass(p.ctx, notices)
			w.count("code that heeded its context")
		case <-p.ctx.Done():
		}
		if c.below(2) == 0 {
			return ctx.Err()
		}
	case overdue:
		w.pass(p.ctx, within)
		w.count("code that returned between its limit and being given up")
	}
	return errTooLate
}

// How code hangs.
const (
	neverReturns = iota
	usesLate
	returnsLate
	heeds
	overdue
)

// checkHost: a host that was given up calls nothing any more.
func (w *world) checkHost(p *process, tx *space.Tx, what string) {
	if !w.plan.has("hangs") {
		return
	}
	w.mu.Lock()
	gone := w.givenUp[tx.Guard()] && p.died == 0
	w.mu.Unlock()
	if gone {
		w.violate("given up", "the host of space %s in %s was given up, and calls %s", tx.Space(), p.name, what)
	}
}

// tryHandler is an attempt at an event, which says how often its handler hangs.
func (w *world) tryHandler(p *process, tx *space.Tx, ev *model.Event) error {
	k, _ := ev.Payload.AsInt()
	key := eventKey{tx.Space(), ev.Stream, ev.ID}
	w.mu.Lock()
	a := w.attempts[key]
	bad := a == nil || a.bad < int(k)
	w.mu.Unlock()
	tx.Get("double") // which may have to be computed
	if bad {         // no attempt that writes this is to be in the log
		tx.Set(abandonedBefore, ev.ID)
		tx.Send("s1", "add", 1_000_000)
	}
	limit := w.plan.hangs.limit
	if !w.plan.hangs.within {
		limit = p.runLimit
	}
	err := w.try(p, tx, key, int(k), limit)
	if errors.Is(err, errTooLate) {
		tx.Set(abandonedAfter, ev.ID)
		return nil // without effect
	}
	return err
}

// tryNode is a run of a node that sometimes hangs. It returns false for a run that must return at once.
func (w *world) tryNode(p *process, tx *space.Tx, node string) bool {
	bad := oneOf(keyed(w.plan.seed, "bad runs", tx.Space(), node), 0, 1, 1, 2)
	err := w.try(p, tx, eventKey{tx.Space(), "", node}, bad, p.runLimit)
	if errors.Is(err, errGivenUp) || errors.Is(err, errDead) {
		return false
	}
	tx.Get("n") // a node heeds its context by going on
	return true
}

// addHangs adds the handlers and nodes that hang to a program.
func (w *world) addHangs(p0 *process, p *space.Program, edition int) error {
	if !w.plan.has("hangs") {
		return nil
	}
	err := p.Handle("hang", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
		switch err := w.tryHandler(p0, tx, ev); {
		case errors.Is(err, errGivenUp):
			return model.Value{}, nil
		case err != nil:
			return model.Value{}, err
		}
		return ofHangs["hang"](edited{tx, edition}, ev)
	})
	if err == nil && w.plan.hangs.within {
		err = p.Within("hang", w.plan.hangs.limit)
	}
	if err != nil || !w.plan.hangs.nodes {
		return err
	}
	glimpse := func(tx *space.Tx, ev *model.Event) (model.Value, error) {
		return ofHangs["glimpse"](edited{tx, edition}, ev)
	}
	return errors.Join(
		p.Handle("glimpse", glimpse),
		p.Add(space.NodeSpec{ID: slow, Kind: space.Computation, Output: slow, Version: w.plan.nodeVersion(slow, edition), Run: func(tx *space.Tx) (model.Value, error) {
			if !w.tryNode(p0, tx, slow) {
				return model.Int(-1), nil
			}
			return computeSlow(edited{tx, edition}), nil
		}}),
		p.Add(space.NodeSpec{ID: slowSink, Kind: space.Effect, Version: w.plan.nodeVersion(slowSink, edition), Run: func(tx *space.Tx) (model.Value, error) {
			tx.Get("n")
			w.tryNode(p0, tx, slowSink)
			return model.Value{}, nil
		}}),
	)
}

// noteGivenUp counts code that a worker or an application gives up.
func (w *world) noteGivenUp(r slog.Record) {
	if !strings.HasPrefix(r.Message, "a handler or node is given up") {
		return
	}
	var in string
	var limit *space.LimitError
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "space" {
			in = a.Value.String()
		}
		if err, is := a.Value.Any().(error); is {
			errors.As(err, &limit)
		}
		return true
	})
	switch {
	case limit == nil:
		w.violate("given up", "space %s: it is not said what: %s", in, r.Message)
	case limit.Node == "":
		w.count("given up: handlers")
	default:
		w.count("given up: " + limit.Node)
		w.mu.Lock()
		w.rested[space.Ref{Space: in, Doc: limit.Node}] = true
		w.mu.Unlock()
	}
}

// hangsIn lists the hanging code of a space in live processes. w.mu is held.
func (w *world) hangsIn(space string) (list []*hanging) {
	for h := range w.hangings { // any order: the caller counts
		if h.space == space && h.p.died == 0 {
			list = append(list, h)
		}
	}
	return list
}

// noteTakeover counts takeovers of a space with hanging code. w.mu is held.
func (f *fold) noteTakeover(c *model.Commit) {
	for _, h := range f.w.hangsIn(f.space) {
		if h.p.id == c.Runtime {
			f.w.count("takeovers by the process in which code hangs")
		} else {
			f.w.count("takeovers by another process than that in which code hangs")
		}
	}
}

// noteBeside counts transactions of applications in a space whose owner has hanging code. w.mu is held.
func (f *fold) noteBeside() {
	for _, h := range f.w.hangsIn(f.space) {
		if h.p.worker != nil {
			f.w.count("transactions of applications while code hangs in the owner")
			return
		}
	}
}

// noteHangingEviction counts a space that is unloaded while given-up code of it still hangs.
func (w *world) noteHangingEviction(p *process, space string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.hangsIn(space) {
		if h.p == p {
			w.count("evictions while code hangs that was given up")
		}
	}
}

// hung: an event whose handler hangs fails after its last attempt, and not before.
func (o *oracle) hung(ev *model.Event, rc *model.Receipt) {
	a := o.f.w.attempts[eventKey{o.f.space, ev.Stream, ev.ID}]
	lives := len(o.f.tried[eventKey{o.f.space, ev.Stream, ev.ID}])
	neverBack := strings.HasPrefix(rc.Error, "the handler never came back") || strings.Contains(rc.Error, " in any of ")
	switch {
	case rc.Outcome != model.Failed:
	case a == nil:
		o.f.wrong("given up", "event %s failed without an attempt: %s", ev.ID, rc.Error)
	case neverBack && lives < lostAttempts-1: // the first has no mark
		o.f.wrong("given up", "event %s failed after %d attempts of which %d came back, %d lives have marked one: %s", ev.ID, a.calls, a.returned, lives, rc.Error)
	case neverBack && a.lost() < lostAttempts:
		o.f.w.count("events that failed though an attempt that was marked had not begun")
	case neverBack:
		o.f.w.count("events that failed as their handler was given up")
	case !strings.Contains(rc.Error, "has not returned within") || a.late == 0 || a.calls+lives < eventRetries: // an attempt that is marked may not have begun
		o.f.wrong("given up", "event %s failed after %d attempts, %d of them late: %s", ev.ID, a.calls, a.late, rc.Error)
	default:
		o.f.w.count("events that failed as their handler returned too late")
	}
}

// noteHung counts how an event ends whose handler was given up, and the events behind it. w.mu is held.
func (f *fold) noteHung(ev *model.Event, rc *model.Receipt) {
	a := f.w.attempts[eventKey{f.space, ev.Stream, ev.ID}]
	if a == nil || a.lost() == 0 {
		return
	}
	f.w.count("events whose handler was given up: " + string(rc.Outcome))
	for _, m := range f.lane {
		if m.Seq > rc.Lane && f.handled[eventKey{f.space, m.Stream, m.ID}] == nil {
			f.w.count("events that waited behind one whose handler was given up")
		}
	}
}

// checkHangs: code that was given up has no effects, and workers count how much of it has not returned.
func (w *world) checkHangs() {
	if !w.plan.has("hangs") {
		return
	}
	left := map[*process]int{}
	for _, p := range w.alive() {
		if p.worker != nil {
			left[p] = p.worker.Stats().Abandoned
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.plan.spaces {
		f := w.folds[spaceName(i)]
		for _, doc := range []string{abandonedBefore, abandonedAfter} {
			if len(f.history[doc]) > 0 {
				w.violate("given up", "what code has written that did not return in time is in the log of %s: %s", f.space, f.history[doc][0].value)
			}
		}
	}
	for p, n := range left { // any order: each on its own
		surely, perhaps := 0, 0
		for h := range w.hangings { // any order: a sum
			if h.p == p {
				if perhaps++; h.late < w.story.now() {
					surely++
				}
			}
		}
		if n < surely || n > perhaps {
			w.violate("given up", "%s says that %d goroutines are left in code that was given up; there are %d, and %d that may be", p.name, n, surely, perhaps)
		}
	}
}

// mindAttachment restarts an application whose attachment has ended because a handler was given up.
func (w *world) mindAttachment(p *process, i item) {
	if !w.plan.has("hangs") {
		return
	}
	select {
	case <-p.attachment.Done():
	case <-p.ctx.Done():
		return
	}
	_, err := p.attachment.Get(p.ctx, "n")
	var limit *space.LimitError
	if !errors.As(err, &limit) {
		return
	}
	w.count("applications whose attachment was given up")
	w.set(&p.up, false)
	w.story.note(p.name, "is not attached any more: %v", err)
	again := item{who: p.who, space: i.space, a: i.a}
	again.at = w.story.now() + keyed(w.plan.seed, "supervisor", p.name).between(100*time.Millisecond, time.Second)
	time.AfterFunc(again.at-w.story.now(), func() {
		w.mu.Lock()
		is := w.procs[p.who] == p && !w.over
		w.mu.Unlock()
		if is {
			w.start(again)
		}
	})
}

// glimpsedAtRest reports whether a handler has read the last output of the hanging computation, as it
// may while that is paused.
func (f *fold) glimpsedAtRest(after map[string]model.Value) bool {
	got, ok := after["glimpsed"]
	if !ok {
		got = f.docs["glimpsed"]
	}
	if !f.w.rested[space.Ref{Space: f.space, Doc: slow}] || !model.Equal(got, f.docs[slow]) {
		return false
	}
	f.w.count("handlers that read what a node that rests came to last")
	return true
}
