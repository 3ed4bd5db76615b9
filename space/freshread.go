package space

import "github.com/settlehq/settle/model"

// freshRead is an address that a run has read and that its node had not read before, with
// the document as it was then. The index does not know of it before the run ends, so what
// the run pulls meanwhile may change it without the node being told (A38): a child that
// the run has just registered may write what the run began with.
type freshRead struct {
	dep  *dep
	root model.Value
}

// noteFresh notes the read that was added last. What the run itself has written there is
// its own and left out of account.
func (l *readLog) noteFresh(d *doc) {
	l.fresh = append(l.fresh, freshRead{l.list[len(l.list)-1], d.value})
}

// catchUp tells the node of a run what it could not be told before: that its first reads of
// an address are out of date.
func (g *graph) catchUp(l *readLog) {
	for i := range l.fresh {
		if f := &l.fresh[i]; touches(f.root, f.dep.doc.value, f.dep.path, f.dep.shallow) {
			g.invalidate(l.node, f.dep.String())
		}
	}
}

// acquit takes back that a node is to run again, if all that had changed while it ran is
// something that it used to read and does not any more: nothing that this run has read (I3).
func (g *graph) acquit(n *node) {
	if n.status != Invalid || n.hasCause() {
		return
	}
	if n.more != nil {
		n.more.gate.armed = false
	}
	g.setStatus(n, Clean)
}
