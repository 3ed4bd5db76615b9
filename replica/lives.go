package replica

import "github.com/settlehq/settle/model"

// Lives is what a log says about runtimes that end without having brought anything about:
// a handler may kill its process, and what a process remembers does not outlive it
// (DESIGN 5.3). A life begins with a takeover. Those of runtimes that are attached are not
// counted: they are many, and come and go beside the owner, so that nothing follows from
// where one of them stopped.
type Lives struct {
	// Began says that there has been one.
	Began bool
	// Barren counts those in a row that ended before there was any receipt. The one that
	// goes on is not among them.
	Barren int
	// Fruitful says that there has been a receipt since the latest one began.
	Fruitful bool
	// Trying is the latest mark of an event that has no receipt yet, nil for none, and
	// TriedBy the epoch of the runtime that made it.
	Trying  *model.Trying
	TriedBy uint64
}

// take takes in everything of a commit but its transactions.
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

// bear takes in a transaction.
func (l *Lives) bear(tx *model.Tx) {
	if tx.Receipt == nil {
		return
	}
	l.Fruitful = true
	if t := l.Trying; t != nil && t.Event == tx.Receipt.Event && t.By == tx.By {
		l.Trying, l.TriedBy = nil, 0
	}
}
