package sim

import (
	"errors"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
)

// Clients redrive dead letters, or dismiss them.

func (p *plan) letters() {
	for i := range p.times("letters", 6) {
		c := keyed(p.seed, "letter", i)
		p.add(item{at: p.when(c), do: oneOf(c, "redrive", "redrive", "dismiss"), who: anyUser(c), moment: c.below(1000)})
	}
}

// listings adds clients that list the dead letters.
func (p *plan) listings() {
	if !p.isNewest() || !p.has("letters") {
		return
	}
	for i := range 1 + keyed(p.seed, "times", "listings").below(4) {
		c := keyed(p.seed, "listing", i)
		it := item{at: p.when(c), do: "letters", who: anyUser(c)}
		if c.below(2) == 0 {
			it.space = p.anySpace(c)
		}
		p.add(it)
	}
}

// list lists the dead letters of a space, or of all spaces.
func (w *world) list(p *process, o *op) error {
	for d, err := range p.client.Space(o.space).DeadLetters(p.ctx) {
		if err != nil {
			return err
		}
		o.letters = append(o.letters, d)
	}
	return nil
}

// checkListed: each listed event has ended that way, and each listed redrive or dismissal was made.
func (w *world) checkListed(o *op) {
	if o.err != nil {
		w.violate("answers", "%s got the answer: %v", o, o.err)
		return
	}
	w.count("dead letters gone through")
	for i := range o.letters {
		d := &o.letters[i]
		h := w.folds[d.Space].handled[eventKey{d.Space, d.Stream, d.Event}]
		switch {
		case h == nil || h.rc.Outcome != d.Outcome || h.rc.Error != d.Error || o.space != "" && o.space != d.Space:
			w.violate("dead letters", "%s lists %s/%s/%s that %s (%s), and its receipt is %+v", o, d.Space, d.Stream, d.Event, d.Outcome, d.Error, h)
		case d.Redriven != nil:
			w.count("dead letters that were listed as sent again")
			again := w.folds[d.Space].handled[eventKey{d.Space, d.Stream, d.Redriven.Event}]
			if s := d.Redriven.State; (s == lineage.Handled || s == lineage.Failed || s == lineage.Refused) && (again == nil || string(again.rc.Outcome) != string(s)) {
				w.violate("dead letters", "%s says that %s, sent again for %s, is %s, and its receipt is %+v", o, d.Redriven.Event, d.Event, s, again)
			}
		case d.Dismissed != nil:
			w.count("dead letters that were listed as dismissed")
		}
	}
}

// letterOf returns the letter for an item: one of the existing letters.
func (w *world) letterOf(i item) *model.DeadLetter {
	var list []model.DeadLetter
	for _, d := range w.server.ReadDead("", 0, 1<<30) {
		if !d.IsNote() {
			list = append(list, d)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return &list[i.moment%len(list)]
}

func (w *world) redrive(p *process, o *op) (model.SendResult, error) {
	d := w.letterOf(o.item)
	if o.skipped = d == nil; o.skipped {
		return model.SendResult{}, nil
	}
	o.ref = history.EventRef{Space: d.Space, Stream: d.Stream, Event: d.Event}
	if o.do == "dismiss" {
		_, _, err := p.client.Space(d.Space).Dismiss(p.ctx, d.Stream, settle.ID(d.Event), "as it should")
		return model.SendResult{}, err
	}
	ref, r, err := p.client.Space(d.Space).Redrive(p.ctx, d.Stream, settle.ID(d.Event))
	if err == nil {
		o.ref = ref
	}
	return r, err
}

func (w *world) checkLetter(o *op) {
	var tooLong *history.MissingError
	switch {
	case o.skipped || errors.As(o.err, &tooLong) || errors.Is(o.err, model.ErrLaneFull) || errors.Is(o.err, history.ErrForgotten):
	case history.IsGone(o.err) && w.plan.has("stale"):
		// The letter has no payload, and a replica that is behind does not have the event: the
		// coordinator may have queried such a replica, too.
		w.count("letters without a payload that could not be found")
	case o.err != nil:
		w.violate("answers", "%s of %s got the answer: %v", o, o.of(), o.err)
	case o.do == "dismiss":
		w.count("dead letters dismissed")
	default:
		h := w.folds[o.ref.Space].handled[eventKey{o.ref.Space, o.ref.Stream, o.ref.Event}]
		if h == nil {
			w.violate("lost", "%s was acknowledged as %s, and is not handled", o, o.of())
			return
		}
		w.count("dead letters sent again: " + string(h.rc.Outcome))
	}
}
