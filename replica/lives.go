package replica

import "github.com/settlehq/settle/model"

// Lives describes, from the log, runtimes that ended without a receipt: a handler may crash its process, and
// the memory of a process does not survive that. A life is the period from one takeover to the next. Attached
// runtimes are not counted: many come and go beside the owner, so the place where one stopped has no meaning.
type Lives struct {
	// Began is set once there has been a life.
	Began bool
	// WithoutReceipt counts the consecutive lives that ended without a receipt, not including the current one.
	WithoutReceipt int
	// HasReceipt is set if there has been a receipt since the current life began.
	HasReceipt bool
	// Trying is the latest attempt record for an event that has no receipt yet, nil if there is none, and
	// TriedBy the epoch of the runtime that made it.
	Trying  *model.Trying
	TriedBy uint64
}

// take applies everything in a commit except its transactions.
func (l *Lives) take(c *model.Commit) {
	if c.Takeover {
		if l.WithoutReceipt++; l.HasReceipt || !l.Began {
			l.WithoutReceipt = 0
		}
		l.Began, l.HasReceipt = true, false
	}
	if c.Trying != nil {
		l.Trying, l.TriedBy = c.Trying, c.Epoch
	}
}

// takeTx applies a transaction.
func (l *Lives) takeTx(tx *model.Tx) {
	if tx.Receipt == nil {
		return
	}
	l.HasReceipt = true
	if t := l.Trying; t != nil && t.Event == tx.Receipt.Event && t.By == tx.By {
		l.Trying, l.TriedBy = nil, 0
	}
}
