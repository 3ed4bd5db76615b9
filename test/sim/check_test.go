package sim

import (
	"errors"
	"fmt"
	"slices"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
	"github.com/settlehq/settle/space"
)

// check makes the checks that are possible only at rest. The others are made at once: see fold.take and
// world.arrived.
func (w *world) check() {
	for i := range w.plan.spaces {
		w.checkReplica(w.folds[spaceName(i)])
	}
	for _, o := range w.ops {
		w.checkOp(o)
	}
	w.checkSenders()
	for _, v := range w.watches {
		w.checkWatch(v)
	}
	w.checkDead()
	w.checkDormant()
	w.checkTasks()
	w.checkRuns()
	w.checkWork()
}

// checkDead: an event without effect has a dead letter with the contents of its receipt.
func (w *world) checkDead() {
	for _, d := range w.server.ReadDead("", 0, 1<<30) {
		if d.IsNote() {
			continue
		}
		h := w.folds[d.Space].handled[eventKey{d.Space, d.Stream, d.Event}]
		if h == nil || h.rc.Outcome != d.Outcome || h.rc.Error != d.Error || h.rc.Lane != d.Lane {
			w.violate("dead letters", "there is one about %s/%s/%s that %s (%s), and its receipt is %+v", d.Space, d.Stream, d.Event, d.Outcome, d.Error, h)
		}
		w.count("dead letters")
	}
}

// checkReplica: the saved state plus the log after it gives the same result as the whole log, and after
// a good end the saved state has everything that events have changed. What was computed for an observer,
// or written by an application, is saved when the space next has an owner; so is what an attached
// runtime that has ended has written, and while it lives, rest waits for it (see waiting).
func (w *world) checkReplica(f *fold) {
	st := w.server.LoadState(f.space)
	r, err := replica.Load(f.space, st)
	if err != nil {
		w.violate("replica", "%v", err)
		return
	}
	for _, e := range w.server.ReadLog(f.space, r.Seq, 1<<30) {
		err := e.Follows(r.Seq)
		if err == nil {
			var c *model.Commit
			if c, err = model.DecodeCommit(e.Data); err == nil {
				_, err = r.Apply(e.Seq, c)
			}
		}
		if err != nil {
			w.violate("replica", "%v", err)
			return
		}
	}
	for doc := range f.history { // any order: each on its own
		if got, want := r.Doc(doc).Value, f.docs[doc]; !model.Equal(got, want) {
			w.violate("replica", "space %s: %s is %s in the log, and %s as loaded", f.space, doc, want, got)
		}
		if why := f.unsaved(doc); why != "" && f.writer(doc) == "" {
			w.violate("replica", "%s", why)
		}
	}
	f.checkAgenda(r)
	if r.Seq != f.seq || r.Epoch != f.epoch || r.Owner != f.owner {
		w.violate("replica", "space %s: loaded up to %d of %s since %d, want %d of %s since %d", f.space, r.Seq, r.Owner, r.Epoch, f.seq, f.owner, f.epoch)
	}
}

// unsaved describes how the saved state of a document differs from the log, "" if it does not or need
// not be saved.
func (f *fold) unsaved(doc string) string {
	if computations[doc] != nil || doc == "extra" || doc == rate+"-wanted" || doc == "app" || doc == "when" || doc == space.CancelDoc {
		return ""
	}
	saved, _ := f.w.server.Saved(f.space, doc)
	got := parse(saved.Data)
	if model.Equal(got, f.docs[doc]) || f.w.plan.history > 0 && f.docs[doc].IsAbsent() {
		return "" // or a deposed owner has put it back after its marker was purged; no runtime believes it
	}
	return fmt.Sprintf("space %s: %s is %s in the log, and was left as %s", f.space, doc, f.docs[doc], got)
}

// writer returns the attached runtime that has written the newest revision of a document, "" if it was the owner.
func (f *fold) writer(doc string) string {
	h := f.history[doc]
	return h[len(h)-1].attached
}

// untold returns an event that the space has refused without a notice to its sender.
func (w *world) untold(f *fold) (id, from string) {
	for key, h := range f.handled { // any order: whether there is one
		tx, minted := model.OriginOf(key.id)
		if !h.rc.Outcome.Notifies() || h.rc.Pos == 0 || !minted {
			continue
		}
		if w.folds[tx.Space].handled[eventKey{tx.Space, model.Undelivered, model.NoticeID(key.id)}] == nil {
			return key.id, tx.Space
		}
	}
	return "", ""
}

// checkOp: a client gets exactly one answer, and it is correct.
func (w *world) checkOp(o *op) {
	if o.do == "transact" {
		w.checkTransaction(o)
		return
	}
	if w.checkNewer(o) {
		return
	}
	gone := o.p.died > 0 && (o.ended == 0 || o.ended >= o.p.died)
	h := w.folds[o.space].handled[o.key()]
	switch {
	case o.times > 1:
		w.violate("answers", "%s was answered %d times", o, o.times)
	case gone:
		return
	case o.times == 0 && o.do == "await" && h == nil:
		return
	case o.times == 0:
		w.violate("answers", "%s was never answered", o)
		return
	case errors.Is(o.err, model.ErrLaneFull) && o.do != "queue" && o.do != "get":
		return // a definite answer: not stored
	case o.stream == "huge" && o.do != "await":
		if !errors.Is(o.err, model.ErrTooLarge) || h != nil {
			w.violate("answers", "%s got the answer %v", o, o.err)
		}
		w.count("events that were too large")
		return
	case errors.Is(o.err, history.ErrForgotten) && h != nil && !w.inLog(o.space, h.seq):
		w.count("receipts that were forgotten")
		return
	case o.err != nil:
		w.violate("answers", "%s got the answer: %v", o, o.err)
		return
	}
	switch o.do {
	case "queue", "send", "raw", "astray":
		w.checkAcknowledged(o, h)
	case "call", "await":
		if h == nil || o.rc == nil || o.rc.Event != h.rc.Event || o.rc.Lane != h.rc.Lane || o.rc.Outcome != h.rc.Outcome || !model.Equal(o.rc.Result, h.rc.Result) || o.rc.Error != h.rc.Error {
			w.violate("answers", "%s got the receipt %+v, the log has %+v", o, o.rc, h)
		}
		w.count("receipts: " + string(o.rc.Outcome))
	case "get":
		if f := w.folds[o.space]; f.changedAt(o.doc, o.rev) != o.rev || !model.Equal(f.valueAt(o.doc, o.rev), o.value) {
			w.violate("answers", "%s got %s at %d, where it was %s", o, o.value, o.rev, f.valueAt(o.doc, o.rev))
		}
	}
}

// checkTransaction: a transaction of an application is in the log if and only if it was answered so; one
// without an answer may be there.
func (w *world) checkTransaction(o *op) {
	there, fails := w.folds[o.p.space].apps[o.id] != 0, o.id[len(o.id)-1] == '9'
	gone := o.p.died > 0 && (o.ended == 0 || o.ended >= o.p.died)
	var late *space.ConvergenceError
	var limit *space.LimitError
	switch {
	case o.times > 1:
		w.violate("answers", "%s was answered %d times", o, o.times)
	case o.times == 1 && o.err == nil && !there:
		w.violate("lost", "%s was acknowledged, and is not in the log", o)
	case there && (fails || errors.As(o.err, &late)):
		w.violate("answers", "%s got the answer %v, and is in the log", o, o.err)
	case o.times == 0 && !gone:
		w.violate("answers", "%s was never answered", o)
	case errors.Is(o.err, errStore):
		w.count("applications that got an error of the store")
	case w.plan.history > 0 && errors.Is(o.err, model.ErrPurged):
		w.count("attachments that were left behind by a purge")
	case errors.As(o.err, &limit) && w.plan.has("hangs"):
		w.count("applications whose handler was abandoned")
	case o.times == 1 && o.err != nil && !fails && !gone && (o.p.left == 0 || o.ended < o.p.left):
		w.violate("answers", "%s got the answer: %v", o, o.err)
	}
}

// inLog reports whether a commit has not been purged.
func (w *world) inLog(space string, seq uint64) bool {
	found := w.server.ReadLog(space, seq-1, 1)
	return len(found) > 0 && found[0].Seq == seq
}

func (w *world) checkAcknowledged(o *op, h *handling) {
	switch {
	case h == nil && w.folds[o.space].waitsFar(o.key()):
	case h == nil:
		w.violate("lost", "%s was acknowledged, and is not handled", o)
	case o.do != "astray" && !o.result.Duplicate && h.lane != o.result.Seq:
		w.violate("lost", "%s was acknowledged as %d, and handled as %d", o, o.result.Seq, h.lane)
	}
}

// checkSenders: a sender keeps the order of its events to a space.
func (w *world) checkSenders() {
	type flow struct {
		p     *process
		space string
	}
	last := map[flow]*op{}
	for _, o := range w.ops {
		if o.do != "queue" || o.err != nil || o.result.Seq == 0 {
			continue
		}
		k := flow{o.p, o.space}
		if before := last[k]; before != nil && before.result.Seq > o.result.Seq {
			w.violate("order", "%s was stored before %s", o, before)
		}
		last[k] = o
	}
}

// checkWatch: a watcher sees only confirmed values, in the order of the log, up to the current one.
func (w *world) checkWatch(v *watch) {
	f := w.folds[v.space]
	if !slices.IsSorted(v.revisions) {
		w.violate("watch", "%s saw the revisions %v", v, v.revisions)
	}
	for i, rev := range v.revisions {
		if v.values[i].IsAbsent() && f.valueAt(v.doc, rev).IsAbsent() && !w.inLog(v.space, f.changedAt(v.doc, rev)) {
			w.count("deletions that were forgotten when they were seen") // it is absent as of rev, since whenever
			continue
		}
		if f.changedAt(v.doc, rev) != rev || !model.Equal(f.valueAt(v.doc, rev), v.values[i]) {
			w.violate("watch", "%s saw %s at %d, where it was %s, changed at %d", v, v.values[i], rev, f.valueAt(v.doc, rev), f.changedAt(v.doc, rev))
		}
	}
	if v.p.who[0] == 'u' && len(v.values) > 0 {
		w.count("watches that saw something")
	}
}

// checkDormant: documents without observers were not computed.
func (w *world) checkDormant() {
	for _, p := range w.all {
		if p.attachment != nil {
			for node, n := range p.attachment.Runs() { // any order: each on its own
				if node == "dormant" {
					w.violate("dormant", "%s ran dormant of space %s %d times", p.name, p.space, n)
				}
				w.runs += int(n)
			}
		}
		if p.worker == nil {
			continue
		}
		for k, n := range p.worker.Runs() { // any order: each on its own
			if k.Node == "dormant" {
				w.violate("dormant", "%s ran dormant of space %s %d times", p.name, k.Space, n)
			}
			w.runs += int(n)
		}
	}
	for i := range w.plan.spaces {
		if f := w.folds[spaceName(i)]; f.runs["dormant"] > 0 || len(f.history["dormant"]) > 0 {
			w.violate("dormant", "space %s has computed dormant", f.space)
		}
	}
}

// checkWork: wasted work is bounded.
func (w *world) checkWork() {
	events := len(w.ops)
	for _, f := range w.folds { // any order: a sum
		events += len(f.lane) + f.agenda.ever
	}
	if limit := 300 + 40*events; w.appends > limit {
		w.violate("work", "%d appends for %d events and operations; %d are the most", w.appends, events, limit)
	}
	if limit := 400 + 60*events; w.runs > limit {
		w.violate("work", "%d runs for %d events and operations; %d are the most", w.runs, events, limit)
	}
}
