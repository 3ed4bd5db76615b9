package space

import (
	"slices"
)

// overruns records code that did not return in earlier incarnations.
type overruns struct {
	graph *graph
	hooks *hooks
	// nodes have not been registered yet; resting are the nodes that are held back.
	nodes   map[string]Overrun
	resting []*node
}

func (r *overruns) note(o Overrun) {
	if r.nodes == nil {
		r.nodes = map[string]Overrun{}
	}
	r.nodes[o.Node] = o
	if n := r.graph.byID[o.Node]; n != nil {
		r.hold(n)
	}
}

// hold holds back a node that did not return.
func (r *overruns) hold(n *node) {
	o, did := r.nodes[n.id()]
	if !did {
		return
	}
	delete(r.nodes, n.id())
	err := &LimitError{Node: o.Node, Limit: o.Limit}
	r.graph.setErr(n, err)
	r.graph.changeGate(n, func(gt *gate) { gt.backoffUntil, gt.streak = o.Until, stubborn })
	r.resting = append(r.resting, n)
	r.hooks.report(ErrorInfo{Node: o.Node, Err: err, Rejection: ByTransientError, Transient: true})
}

// releaseRested lets events wait again for nodes that may run again.
func (r *overruns) releaseRested() {
	r.resting = slices.DeleteFunc(r.resting, func(n *node) bool {
		over := n.removed || n.more.gate.backoffUntil <= r.graph.now
		if over && !n.removed {
			n.more.gate.streak = 0
		}
		return over
	})
}
