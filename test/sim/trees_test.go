package sim

import (
	"errors"
	"slices"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
)

// Clients query the tree of an event, and wait until all of it has ended.

func (p *plan) trees() {
	events := slices.DeleteFunc(p.sentEvents(), func(it item) bool { // their effects may last longer than the run
		return onTime[it.stream] != nil || ofAsleep[it.stream] != nil
	})
	if len(events) == 0 {
		return
	}
	for i := range p.times("trees", 5) {
		c := keyed(p.seed, "tree", i)
		of := events[c.below(len(events))]
		p.add(item{at: of.at + c.between(0, 400*time.Millisecond), do: oneOf(c, "tree", "wait-tree"), who: anyUser(c), space: of.space, stream: of.stream, id: of.id})
	}
}

func (w *world) askTree(p *process, o *op) (err error) {
	if o.do == "tree" {
		o.tree, err = p.client.Tree(p.ctx, history.TreeQuery{Space: o.space, Stream: o.stream, Event: o.id})
		return err
	}
	o.tree, err = p.client.Space(o.space).WaitTree(p.ctx, o.stream, settle.ID(o.id))
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count("trees that were waited for")
	if o.tree.States[lineage.Forgotten] > 0 {
		w.count("trees of which a part was forgotten") // and it reports that
		return nil
	}
	if open, why := w.openIn(o.key()); open {
		w.violate("tree", "%s has ended, and %s has not", o, why)
	}
	return nil
}

// openIn returns an event that has not ended, among an event and everything that it has caused. w.mu is
// held.
func (w *world) openIn(root eventKey) (open bool, why string) {
	seen := map[eventKey]bool{}
	for list := []eventKey{root}; len(list) > 0; list = list[1:] {
		key := list[0]
		if seen[key] {
			continue
		}
		seen[key] = true
		f := w.folds[key.space]
		h := f.handled[key]
		if h == nil {
			return true, key.space + "/" + key.stream + "/" + key.id
		}
		for i := range h.sends {
			if s := &h.sends[i]; s.Timer == "" {
				list = append(list, eventKey{s.To, s.Stream, s.ID})
			}
		}
	}
	return false, ""
}

// waitsFarIn reports whether anything that an event has caused waits for longer than the run lasts, such as the end of a long
// sleep of a run. w.mu is held.
func (w *world) waitsFarIn(root eventKey) bool {
	seen := map[eventKey]bool{}
	for list := []eventKey{root}; len(list) > 0; list = list[1:] {
		key := list[0]
		f := w.folds[key.space]
		if seen[key] {
			continue
		}
		seen[key] = true
		h := f.handled[key]
		if h == nil {
			if f.waitsFar(key) {
				return true
			}
			continue
		}
		for i := range h.sends {
			list = append(list, eventKey{h.sends[i].To, h.sends[i].Stream, h.sends[i].ID})
		}
	}
	return false
}

// checkTree: a tree agrees with the log about events that have ended.
func (w *world) checkTree(o *op) {
	var none *history.MissingError
	switch {
	case errors.As(o.err, &none) || errors.Is(o.err, history.ErrForgotten):
		w.count("trees of unknown events")
		return
	case o.err != nil && w.plan.history > 0 && errors.Is(o.err, model.ErrPurged):
		return
	case o.err != nil:
		w.violate("answers", "%s got the answer: %v", o, o.err)
		return
	}
	w.count("trees that were read")
	w.checkNode(o, o.tree.Root)
}

func (w *world) checkNode(o *op, n *history.TreeNode) {
	f := w.folds[n.Space]
	if f == nil {
		w.violate("tree", "%s has an event of space %s", o, n.Space)
		return
	}
	h := f.handled[eventKey{n.Space, n.Stream, n.Event}]
	receipt := n.State == lineage.Handled || n.State == lineage.Failed || n.State == lineage.Refused || n.State == lineage.Expired
	switch {
	case !receipt:
	case h == nil:
		w.violate("tree", "%s says that %s/%s/%s is %s, and the log does not", o, n.Space, n.Stream, n.Event, n.State)
	case string(h.rc.Outcome) != string(n.State):
		w.violate("tree", "%s says that %s/%s/%s is %s, and the log that it is %s", o, n.Space, n.Stream, n.Event, n.State, h.rc.Outcome)
	}
	for _, k := range n.Caused {
		w.checkNode(o, k)
	}
}
