package space

import (
	"fmt"
	"slices"
	"strings"

	"github.com/settlehq/settle/model"
)

// watcher checks every run of a host, through the trace hooks: whether it has a cause, and whether this is
// its turn.
type watcher struct {
	h *host
	// changes are all changes so far, and began the number of them when the last run of each node began.
	changes []ChangeInfo
	began   map[*node]int
	// again are the nodes whose last run did not complete.
	again map[*node]bool
	// made are the runs that were committed but not seen in the log yet.
	made  map[*node][]madeRun
	stack []*node
}

// madeRun is a run with a transaction, and the number of refusals before it.
type madeRun struct {
	epoch, tx, refused uint64
}

// judge begins to watch a host. The host's own hooks are still called.
func judge(h *host) {
	w := &watcher{h: h, began: map[*node]int{}, again: map[*node]bool{}, made: map[*node][]madeRun{}}
	trace := &h.cfg.Trace
	start, end := trace.RunStart, trace.RunEnd
	trace.RunStart = func(i RunInfo) { start(i); w.start(&i) }
	trace.RunEnd = func(i RunInfo) { end(i); w.end(&i) }
	trace.Changed = func(c ChangeInfo) { w.changes = append(w.changes, c) }
	trace.Violated = func(v Violation) { h.t.Fatalf("%s", v) }
	h.core.cfg.Trace = *trace
}

// watched installs every hook that the hosts of these tests do not use.
func watched(c *Config) {
	c.Trace = Trace{
		HandleStart: func(ev *model.Event) model.Trace { return ev.Trace },
		PassEnd:     func(PassInfo) {},
		Changed:     func(ChangeInfo) {},
		Invalidated: func(InvalidInfo) {},
		Iteration:   func(int) {},
		Echo:        func(EchoInfo) {},
		Violated:    func(Violation) {},
		Unsettled:   func([]string) {},
		Skipped:     func(SkipInfo) {},
		Gated:       func(GateInfo) {},
	}
}

func (w *watcher) start(i *RunInfo) {
	n := w.h.core.graph.byID[i.Node]
	if !n.live && len(w.stack) == 0 {
		w.h.t.Fatalf("%s runs, although it is not needed (I2)", i.Node)
	}
	if last, ran := w.began[n]; ran && !w.again[n] && !w.undone(n) {
		w.checkCauses(n, i.Causes, w.changes[last:])
	}
	w.checkOrder(n)
	w.began[n] = len(w.changes)
	w.stack = append(w.stack, n)
}

func (w *watcher) end(i *RunInfo) {
	n := w.stack[len(w.stack)-1]
	w.stack = w.stack[:len(w.stack)-1]
	w.again[n] = i.Waits != "" || i.NoRoom
	if i.Tx != 0 {
		w.made[n] = append(w.made[n], madeRun{w.h.core.ledger.Epoch(), i.Tx, w.h.core.Stats().Refused})
	}
}

// undone reports whether a refusal has undone a run of the node since the last call.
func (w *watcher) undone(n *node) (some bool) {
	w.made[n] = slices.DeleteFunc(w.made[n], func(r madeRun) bool {
		undone := r.refused < w.h.core.Stats().Refused && !w.logged(r)
		some = some || undone
		return undone
	})
	return some
}

func (w *watcher) logged(r madeRun) bool {
	for _, e := range w.h.w.logs[home] {
		c := w.h.w.commit(e)
		if c.Runtime == w.h.cfg.Runtime && c.Epoch == r.epoch && slices.ContainsFunc(c.Txs, func(tx model.Tx) bool { return tx.N == r.tx }) {
			return true
		}
	}
	return false
}

// checkCauses checks that a run has causes, and that each is an address that another writer has changed since
// the last run began (I3, P5).
func (w *watcher) checkCauses(n *node, causes []string, changes []ChangeInfo) {
	if len(causes) == 0 {
		w.h.t.Fatalf("%s runs again without a cause\n%s%v\n%v\nsince %+v\nmade %+v refused %d", n.id(), w.dump(), w.h.story, w.stack, changes, w.made[n], w.h.core.Stats().Refused)
	}
	for _, cause := range causes {
		explains := func(c ChangeInfo) bool {
			return c.Node != n.id() && (c.Group == "" || c.Group != n.spec.Group) && isCause(&c, cause)
		}
		if !slices.ContainsFunc(changes, explains) {
			w.h.t.Fatalf("%s runs again because of %s, which has not changed for it since: %+v", n.id(), cause, changes)
		}
	}
}

// isCause reports whether the change makes a difference at the address.
func isCause(c *ChangeInfo, cause string) bool {
	if cause == "*" {
		return true // there were many
	}
	rest, ok := strings.CutPrefix(cause, c.Doc)
	if !ok || rest != "" && rest[0] != '/' && rest[0] != '#' {
		return false
	}
	pointer, flat := strings.CutSuffix(rest, "#")
	path, err := model.ParsePath(pointer)
	return err == nil && touches(c.Before, c.After, path, flat)
}

// checkOrder checks that every known writer of what the node reads is up to date, unless it must wait (I9),
// or is itself being brought up to date and waits for this run: a circle with reads that are not known yet.
// For places that only a materializer may write it looks one step ahead, and nodes downstream of a circle
// have no order.
func (w *watcher) checkOrder(n *node) {
	core := w.h.core
	upstream(n, func(u *node, direct bool) {
		ready := u.due() && !u.waiting && !u.held && !u.running && !u.seeking && core.runner.budgets.mayRun(u)
		if ready && (direct || !u.materializer()) && !circular(u) {
			w.h.t.Fatalf("%s runs before %s, which it reads from and which is to run (I9), within %d\n%s%v", n.id(), u.id(), len(w.stack), w.dump(), w.h.story)
		}
	})
}

// upstream visits everything that n reads from, directly or indirectly. It ignores edges that close a circle.
func upstream(n *node, visit func(u *node, direct bool)) {
	seen := map[*node]bool{n: true}
	for work := []*node{n}; len(work) > 0; work = work[1:] {
		r := work[0]
		for _, d := range r.deps {
			if !d.indexed || d.back {
				continue
			}
			d.eachWriter(true, func(s *surface) {
				if u := s.node; !seen[u] {
					seen[u] = true
					work = append(work, u)
					visit(u, r == n)
				}
			})
		}
	}
}

// circular reports whether a circle ends in u or upstream of it.
func circular(u *node) bool {
	closes := func(n *node) bool { return slices.ContainsFunc(n.deps, func(d *dep) bool { return d.back }) }
	found := closes(u)
	upstream(u, func(n *node, _ bool) { found = found || closes(n) })
	return found
}

func (w *watcher) dump() string {
	var b strings.Builder
	for _, n := range w.h.core.graph.nodes {
		if n == nil {
			continue
		}
		fmt.Fprintf(&b, "%s h%d %s live %v queued %v held %v running %v runs %d:", n.id(), n.height, n.status, n.live, n.queued, n.held, n.running, n.runs)
		for _, d := range n.deps {
			fmt.Fprintf(&b, " %s(ix%v back%v cov%v decl%v)", d, d.indexed, d.back, d.covered, d.declared)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "at %d sweeping %v\n", w.h.core.graph.queue.at, w.h.core.graph.queue.sweeping)
	return b.String()
}
