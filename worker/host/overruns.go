package host

import "time"

const (
	// nodeRest is how long a node that was given up is held back; it is doubled each time, up
	// to longestNodeRest.
	nodeRest        = time.Minute
	longestNodeRest = time.Hour
)

// overruns are the reasons why hosts of a partition were given up, by space.
type overruns map[string]*overran

// overran are the reasons for one space: the last event, and nodes.
type overran struct {
	event *Overrun
	nodes map[string]*restingNode
}

type restingNode struct {
	Overrun
	rest  time.Duration
	until time.Time
}

func (os overruns) note(name string, o *Overrun, now time.Time) {
	all := os[name]
	if all == nil {
		all = &overran{nodes: map[string]*restingNode{}}
		os[name] = all
	}
	if o.Node == "" {
		all.event = o
		return
	}
	n := all.nodes[o.Node]
	if n == nil || now.Sub(n.until) > longestNodeRest { // it has behaved for long
		n = &restingNode{rest: nodeRest / 2}
		all.nodes[o.Node] = n
	}
	n.Overrun, n.rest = *o, min(2*n.rest, longestNodeRest)
	n.until = now.Add(n.rest)
}

// of returns the overruns for the next host of a space: for each node, how long it is still held back. The event
// is returned once: from then on the log has it.
func (os overruns) of(name string, now time.Time) (out []Overrun) {
	all := os[name]
	if all == nil {
		return nil
	}
	if all.event != nil {
		out = append(out, *all.event)
		all.event = nil
	}
	for _, n := range all.nodes { // any order: each by itself
		if o := n.Overrun; n.until.After(now) {
			o.Until = n.until.Sub(now)
			out = append(out, o)
		}
	}
	return out
}
