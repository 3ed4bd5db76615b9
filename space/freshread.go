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
