package sim

import (
	"fmt"
	"time"

	"github.com/settlehq/settle/model"
)

// rest waits for the deployment to come to rest, and reports whether it has.
func (w *world) rest() bool {
	healed, still, commits := w.story.now(), 0, -1
	for i := 0; ; i++ {
		w.until(healed + time.Duration(i+1)*130*time.Millisecond + 7)
		why, total := w.unrest()
		if total == commits && why == "" {
			still++
		} else {
			still, commits = 0, total
		}
		if still == 3 {
			w.story.note("CHECK", "at rest")
			return true
		}
		if w.story.now()-healed > w.plan.restBound() {
			if why == "" {
				why = "the logs go on growing"
			}
			w.violate("rest", "not at rest %v after everything was healed: %s", w.plan.restBound(), why)
			return false
		}
	}
}

// unrest returns the first reason why the deployment is not at rest, "" if it is, and the number of commits.
func (w *world) unrest() (why string, commits int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.folds { // any order: a sum
		commits += f.commits
	}
	return w.waiting(), commits
}

func (w *world) waiting() string {
	for i := range w.plan.spaces {
		f := w.folds[spaceName(i)]
		for _, m := range f.lane {
			if key := (eventKey{f.space, m.Stream, m.ID}); f.handled[key] == nil && !f.waitsFar(key) {
				return fmt.Sprintf("event %s/%s/%s at lane sequence %d waits", f.space, m.Stream, m.ID, m.Seq)
			}
		}
		if x := f.waits(); x != nil {
			return fmt.Sprintf("%s of space %s waits, due at %d", x.ID, f.space, x.NotBefore)
		}
		if key := f.pending(); key != "" {
			return fmt.Sprintf("task %s of space %s is pending", key, f.space)
		}
		if why := f.clerk.unfinished(); why != "" {
			return why
		}
		if len(f.own) > 0 {
			return fmt.Sprintf("follow-up %s of space %s waits", f.own[0].ID, f.space)
		}
		for doc := range f.history { // any order: whether there is one
			if why := f.unsaved(doc); why != "" && f.writer(doc) == "" {
				return why // an owner that has lost the space again and again takes it over later, and saves it
			}
		}
		if id, from := w.untold(f); id != "" {
			return fmt.Sprintf("space %s has refused %s, of which space %s is not told", f.space, id, from)
		}
		for id, s := range f.sends { // any order: whether there is one
			if to := w.folds[s.send.To]; s.send.To != f.space && to.handled[eventKey{s.send.To, s.send.Stream, id}] == nil && !to.waitsFar(eventKey{s.send.To, s.send.Stream, id}) {
				return fmt.Sprintf("%s, which space %s has sent, is not handled in %s", id, f.space, s.send.To)
			}
		}
	}
	if have, want := w.letterCount(), w.badEndings(); have != want {
		return fmt.Sprintf("%d dead letters for %d events that failed or were refused", have, want)
	}
	for part := range w.plan.partitions {
		if at, end := w.server.LoadPosition(part, "lane"), w.server.LaneEnd(part); at < end {
			return fmt.Sprintf("the lane position of partition %d is %d, its end %d", part, at, end)
		}
	}
	if why := w.unsavedOfAttached(); why != "" {
		return why
	}
	for _, o := range w.ops {
		if o.ended == 0 && o.p.died == 0 && !(o.isPatient() && w.folds[o.space].handled[o.key()] == nil) && !(o.do == "wait-tree" && w.waitsFarIn(o.key())) {
			return fmt.Sprintf("%s waits", o)
		}
	}
	for _, v := range w.watches {
		if v.over || v.p.died > 0 {
			continue
		}
		if want := w.current(v.space, v.doc); len(v.values) == 0 || !model.Equal(v.values[len(v.values)-1], want) {
			return fmt.Sprintf("%s has not seen that %s of %s is %s", v.p.name, v.doc, v.space, want)
		}
	}
	return ""
}

// unsavedOfAttached returns the name of an unsaved document that a still attached application has
// written: the owner saves it as soon as it knows of the attachment, whose first lease may be lost.
func (w *world) unsavedOfAttached() string {
	for _, p := range w.procs { // any order: whether there is one
		if p.attachment == nil || p.died > 0 || p.left > 0 {
			continue
		}
		f := w.folds[p.space]
		for doc := range f.history { // any order: whether there is one
			if why := f.unsaved(doc); why != "" && f.writer(doc) == p.id {
				return why
			}
		}
	}
	return ""
}

// badEndings counts the events that failed or were refused.
func (w *world) badEndings() (n int) {
	for _, f := range w.folds { // any order: a sum
		for _, h := range f.handled { // any order: a sum
			if h.rc.Outcome.Lost() {
				n++
			}
		}
	}
	return n
}

// current returns the right value of a document.
func (w *world) current(space, doc string) model.Value {
	f := w.folds[space]
	if f.seq == 0 { // a watch does not create the space, and sees what is in logs
		return model.Value{}
	}
	return (&oracle{f: f, docs: f.docs, edition: w.edition}).Get(doc)
}
