package sim

import (
	"fmt"
	"time"

	"github.com/settlehq/settle/model"
)

// Isolated deletions in runs where the markers of deleted documents are purged: a document is created, a
// computation that reads it is observed for a while, and it is deleted without observers. A space that
// is then unloaded, or loses its owner, is loaded from a bucket that has no trace of the deletion. All
// decisions are drawn from separate keys, as in delays.

// plain is the document, and copied is computed from it alone.
const (
	plain  = "plain"
	copied = "copied"
)

// forgets reports whether a plan has such deletions.
func (p *plan) forgets() bool {
	return p.history > 0 && keyed(p.seed, "forgets").below(2) == 0
}

// forget adds the items for the document.
func (p *plan) forget() {
	if !p.forgets() {
		return
	}
	for i := range 1 + keyed(p.seed, "times", "forgets").below(4) {
		c := keyed(p.seed, "forgotten", i)
		in, user := p.anySpace(c), func() string { return fmt.Sprint("u", 1+c.below(users)) }
		at := c.between(0, p.chaos/2)
		event := func(after time.Duration, stream, payload string) {
			at += after
			p.add(item{at: at, do: oneOf(c, "queue", "send", "call"), who: user(), space: in, stream: stream, id: fmt.Sprint("f", i+1, stream, len(p.items)), payload: payload})
		}
		event(0, "note", oneOf(c, "null", fmt.Sprint(c.below(3))))
		p.add(item{at: at + c.between(0, 100*time.Millisecond), do: "watch", who: user(), space: in, doc: copied, span: c.between(200*time.Millisecond, time.Second)})
		event(c.between(0, 3*time.Second), "forget", "")
		for j := range c.below(7) { // the markers are looked at when the log has grown
			event(c.between(0, 700*time.Millisecond), "remark", fmt.Sprint(j))
		}
		p.add(item{at: at + c.between(0, 3*time.Second), do: "watch", who: user(), space: in, doc: copied})
	}
}

// ofForgotten are the streams. Their handlers touch no other document.
var ofForgotten = map[string]func(v view, ev *model.Event) (model.Value, error){
	"note": func(v view, ev *model.Event) (model.Value, error) {
		v.Set(plain, ev.Payload)
		return model.Value{}, nil
	},
	"forget": func(v view, _ *model.Event) (model.Value, error) {
		v.Delete(plain)
		return model.Value{}, nil
	},
	"remark": func(view, *model.Event) (model.Value, error) { return model.Value{}, nil },
}

// copyPlain distinguishes an absent value from null.
func copyPlain(v view) model.Value {
	x := v.Get(plain)
	if x.IsAbsent() {
		return model.String("gone")
	}
	return model.MustOf(map[string]any{"v": x})
}

// loaded counts a space that is loaded from a bucket with the observation of copied, but without a trace
// that plain was deleted since.
func (w *world) loaded(space string) {
	if !w.plan.forgets() {
		return
	}
	seen, observed := w.server.Saved(space, model.StateKeyOfNode(copied))
	_, there := w.server.Saved(space, plain)
	mark, _ := w.server.Saved(space, "")
	f := w.folds[space]
	if observed && seen.Data != nil && !there && f.valueAt(plain, mark.Seq).IsAbsent() && !f.valueAt(plain, seen.Seq).IsAbsent() {
		w.count("computations over a deletion that was forgotten")
	}
}
