package replica

import "github.com/settlehq/settle/model"

// Lives describes, from the log, runtimes that ended without a receipt: a handler may crash its
// process, and the memory of a process does not survive it. A life begins with a takeover. Attached
// runtimes are not counted: they are many, and come and go beside the owner, so nothing follows
// from where one of them stopped.
type Lives struct {
	// Began is set once there has been a life.
	Began bool
	// Barren counts the consecutive lives that ended before there was any receipt, without the
	// current one.
	Barren int
	// Fruitful is set if there has been a receipt since the current life began.
	Fruitful bool
	// Trying is the latest mark of an event that has no receipt yet, nil for none, and TriedBy the
	// epoch of the runtime that made it.
	Trying  *model.Trying
	TriedBy uint64
}

// take applies everything of a commit but its transactions.
func (l *Lives) take(c *model.Commit) {
	if c.Takeover {
		if l.Barren++; l.Fruitful || !l.Began {
			l.Barren = 0
		}
		l.Began, l.Fruitful = true, false
	}
	if c.Trying != nil {
		l.Trying, l.TriedBy = c.Trying, c.Epoch
	}
}

// bear applies a transaction.
func (l *Lives) bear(tx *model.Tx) {
	if tx.Receipt == nil {
		return
	}
	l.Fruitful = true
	if t := l.Trying; t != nil && t.Event == tx.Receipt.Event && t.By == tx.By {
		l.Trying, l.TriedBy = nil, 0
	}
}
