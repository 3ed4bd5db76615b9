package sim

import (
	"errors"
	"strings"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Events are cancelled in any state, even at the head of their lane, and events expire.

func (p *plan) cancels() {
	if !p.has("cancels") {
		return
	}
	p.expireSome()
	events := p.sentEvents()
	for i := range p.times("cancels", 5) {
		c := keyed(p.seed, "cancel", i)
		it := item{at: p.when(c), do: "skip", who: anyUser(c), space: p.anySpace(c)}
		if len(events) > 0 && c.below(3) > 0 {
			of := events[c.below(len(events))]
			it.at, it.do, it.space, it.stream, it.id = max(of.at+c.between(-20*time.Millisecond, 300*time.Millisecond), 0), "cancel", of.space, of.stream, of.id
		}
		p.add(it)
	}
	for i := range 2 {
		c := keyed(p.seed, "cancel what waits", i)
		if waiting := p.waitingEvents(); len(waiting) > 0 {
			of := waiting[c.below(len(waiting))]
			p.add(item{at: of.at + c.between(0, 600*time.Millisecond), do: "cancel", who: anyUser(c), space: of.space, stream: of.stream, id: of.id})
		}
	}
}

// waitingEvents returns the events that clients send to be handled at a time.
func (p *plan) waitingEvents() (list []item) {
	for _, it := range p.items {
		if it.due > 0 && it.stream != "" && it.do != "await" {
			list = append(list, it)
		}
	}
	return list
}

// expireSome gives some events an end. An event that is sent again has the same.
func (p *plan) expireSome() {
	ends := map[string]time.Duration{}
	for i := range p.items {
		it := &p.items[i]
		c := keyed(p.seed, "expires", it.id)
		sent := it.do == "queue" || it.do == "send" || it.do == "call" || it.do == "astray"
		if !sent || it.stream == "huge" || c.below(5) > 0 {
			continue
		}
		if ends[it.id] == 0 {
			ends[it.id] = max(it.at, it.due) + c.between(0, 800*time.Millisecond)
		}
		it.expires = ends[it.id]
	}
}

// takeBack cancels an event.
func (w *world) takeBack(p *process, o *op) (err error) {
	o.ref = history.EventRef{Space: o.space, Stream: o.stream, Event: o.id}
	if o.do == "skip" {
		if o.ref = w.next(o.space); o.ref.Event == "" {
			o.skipped = true
			return nil
		}
	}
	if o.do == "spare" {
		o.ref.Stream, o.ref.Event = work, w.spared(o.space)
		if o.ref.Event == "" {
			o.skipped = true
			return nil
		}
	}
	o.rc, err = p.client.Cancel(p.ctx, o.ref, "as it should")
	return err
}

// next returns the event of its lane that a space has yet to handle.
func (w *world) next(name string) history.EventRef {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.folds[name]
	for _, m := range f.lane {
		if key := (eventKey{name, m.Stream, m.ID}); f.handled[key] == nil && !f.agenda.lanes[key] {
			return history.EventRef{Space: name, Stream: m.Stream, Event: m.ID}
		}
	}
	return history.EventRef{}
}

// checkCancel: a cancel returns how the event has ended.
func (w *world) checkCancel(o *op) {
	if o.skipped {
		return
	}
	h := w.folds[o.ref.Space].handled[eventKey{o.ref.Space, o.ref.Stream, o.ref.Event}]
	var none *history.MissingError
	switch {
	case errors.As(o.err, &none), errors.Is(o.err, history.ErrForgotten), errors.Is(o.err, model.ErrPurged):
		w.count("events that could not be cancelled")
	case o.do == "spare" && o.err != nil && h == nil && w.folds[o.ref.Space].agenda.hasLeft(o.ref.Event):
		w.count("deadlines that could not be cancelled, as their task had ended")
	case o.err != nil:
		w.violate("answers", "%s of %s got the answer: %v", o, o.of(), o.err)
	case h == nil || o.rc == nil || o.rc.Event != h.rc.Event || o.rc.Outcome != h.rc.Outcome:
		w.violate("answers", "%s of %s got the receipt %+v, the log has %+v", o, o.of(), o.rc, h)
	default:
		w.count("cancelled events: " + string(o.rc.Outcome))
	}
}

// isCanceller reports whether a runtime exists only to cancel an event, and so has no program.
func isCanceller(runtime string) bool { return strings.HasPrefix(runtime, "cancel-") }

// unhandled reports whether an event must no longer be handled, and returns the receipt with which it
// ends.
func (o *oracle) unhandled(stream string, ev *model.Event, rc *model.Receipt) bool {
	key := space.CancelKey(stream, ev.ID)
	wall := o.f.w.wall()
	switch {
	case !o.f.docs[space.CancelDoc].Get(key).IsAbsent():
		o.Delete(space.CancelDoc, key)
		o.outcome = model.Cancelled
	case rc.Outcome == model.Expired:
		if ev.Expires == 0 || ev.Expires >= wall {
			o.f.wrong("early", "%s has expired at %d, and expires at %d", ev.ID, wall, ev.Expires)
		}
		o.outcome = model.Expired
	default:
		if at, told := rc.Result.Get("now").AsInt(); told && ev.Expires > 0 && at > ev.Expires {
			o.f.wrong("oracle", "%s is handled at %d, and had expired at %d", ev.ID, at, ev.Expires)
		}
		return false
	}
	return true
}
