package sim

import (
	"context"
	"fmt"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
)

// Clients query workers for documents at the head of the log, while appends are refused, owners change
// and stores fail.

func (p *plan) queries() {
	for i := range p.times("queries", 8) {
		c := keyed(p.seed, "query", i)
		p.add(item{at: p.when(c), do: "query", who: anyUser(c), space: p.anySpace(c), doc: oneOf(c, "n", "double", "double")})
	}
}

// asksOwners makes a process ask the owners of other spaces about documents there that are in no log, where workers answer queries. computed asks.
func (w *world) asksOwners(computed func(ctx context.Context, space, document string) (bool, error)) func(ctx context.Context, space, document string) (bool, error) {
	if !w.plan.has("queries") {
		return nil
	}
	return func(ctx context.Context, space, document string) (exists bool, err error) {
		exists, err = computed(ctx, space, document)
		switch {
		case err != nil:
			w.count("absent documents of which a leaving worker did not learn")
		case exists:
			w.count("absent documents that were computed meanwhile")
		case ctx.Err() != nil:
			w.count("absent documents about which there was no answer in time")
		default:
			w.count("absent documents that their owners do not have")
		}
		return exists, err
	}
}

// query queries a document.
func (w *world) query(p *process, o *op) error {
	f := w.folds[o.space]
	w.mu.Lock()
	o.from, o.refused = f.seq, f.refusals
	w.mu.Unlock()
	cur, err := p.client.Space(o.space).GetCurrent(p.ctx, o.doc)
	w.mu.Lock()
	defer w.mu.Unlock()
	o.value, o.rev, o.stale = cur.Value, cur.Revision, cur.Reason
	o.to = f.seq
	if err == nil {
		w.count("queries that were answered")
		if f.refusals > o.refused {
			w.count("queries over refusals")
		}
	}
	return err
}

// checkQuery: an answer is the value in the log at its revision, or what follows from nothing for a space without a log; it reflects everything that was in the
// log when the query was sent, and nothing that was added after the answer arrived.
func (w *world) checkQuery(o *op) {
	f := w.folds[o.space]
	unborn := o.rev == 0 && o.from == 0 // answered from nothing, in memory
	if unborn {
		w.count("queries of spaces that did not exist")
	} else if f.changedAt(o.doc, o.rev) != o.rev || !model.Equal(f.valueAt(o.doc, o.rev), o.value) {
		w.violate("query", "%s was answered with %s at %d, where it was %s, changed at %d", o, o.value, o.rev, f.valueAt(o.doc, o.rev), f.changedAt(o.doc, o.rev))
		return
	}
	if o.stale != "" || w.plan.has("stale") { // a deposed leader does not know how far the log goes
		w.count("queries that were answered with what was there")
		return
	}
	for seq := o.from; seq <= o.to; seq++ {
		n, _ := f.valueAt("n", seq).AsInt()
		want := model.Int(2 * n)
		if o.doc == "n" {
			want = f.valueAt("n", seq)
		}
		if model.Equal(want, o.value) {
			return
		}
	}
	w.violate("query", "%s was answered with %s at %d, which follows from none of the states %d to %d; n was %s and is %s", o, o.value, o.rev, o.from, o.to, f.valueAt("n", o.from), f.valueAt("n", o.to))
}

// asked is the request and the answer of an operation of the newer kinds.
type asked struct {
	from, to uint64 // the log of its space when it began and ended
	refused  int
	stale    string
	ref      history.EventRef
	tree     *history.Tree
	letters  []history.Dead
	skipped  bool // there was no object for it
}

func (a *asked) of() string { return fmt.Sprint(a.ref.Space, "/", a.ref.Stream, "/", a.ref.Event) }
