package space

import (
	"errors"
	"fmt"

	"github.com/settlehq/settle/model"
)

// suffix is the overlay of transactions that this runtime has applied and that
// the log has not confirmed: at most one sealed commit that is under way, and
// the open group that the next commit will carry (group commit).
//
//	log | sealed (in flight) | open |
//	    ^ replica            ^      ^ what documents show
type suffix struct {
	sealed *sealed
	open   group
	// lastTx is the number of the last transaction made in this epoch. It grows
	// over rollbacks too, so that no id is ever minted twice.
	lastTx uint64
	// attempt numbers the appends of this epoch.
	attempt uint64
}

// group is a run of transactions with the documents as they stand after it.
type group struct {
	txs   []model.Tx
	data  []byte // the transactions, encoded
	after map[string]model.Value
}

// sealed is a commit under way.
type sealed struct {
	commit *model.Commit
	after  map[string]model.Value
	// taken is how many entries of the lane it decides.
	taken int
}

// errTxTooLarge is returned for a transaction that no commit could carry.
var errTxTooLarge = errors.New("transaction too large")

// frameBytes is what a commit needs around its transactions: names, numbers and
// the cursor with a few dozen events set aside.
const frameBytes = 4 << 10

// add appends a transaction to the open group, or reports that it is too large
// for any commit.
func (x *suffix) add(tx *model.Tx, limit int) error {
	size := len(x.open.data)
	data := model.AppendTx(x.open.data, tx)
	if n := len(data) - size; n > limit-frameBytes {
		return fmt.Errorf("%w: %d bytes, a commit takes %d; write smaller documents or split the work over several events", errTxTooLarge, n, limit-frameBytes)
	}
	x.open.data = data
	x.open.txs = append(x.open.txs, *tx)
	return nil
}

// full reports whether the open group should take no more events.
func (x *suffix) full(cfg *Config) bool {
	return len(x.open.txs) >= cfg.MaxGroup || len(x.open.data) >= cfg.MaxCommitBytes/2
}

// note records the value that a document has after the open group.
func (x *suffix) note(id string, v model.Value) {
	if x.open.after == nil {
		x.open.after = map[string]model.Value{}
	}
	x.open.after[id] = v
}

// seal turns the open group into a commit.
func (x *suffix) seal(c *model.Commit, taken int) {
	x.attempt++
	c.Attempt = x.attempt
	c.Txs = x.open.txs
	x.sealed = &sealed{commit: c, after: x.open.after, taken: taken}
	x.open = group{}
}

// undecided lists every document that the suffix has changed.
func (x *suffix) undecided() map[string]bool {
	ids := map[string]bool{}
	if x.sealed != nil {
		for id := range x.sealed.after { // any order: a set
			ids[id] = true
		}
	}
	for id := range x.open.after { // any order: a set
		ids[id] = true
	}
	return ids
}
