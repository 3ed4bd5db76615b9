package ledger

import (
	"errors"
	"fmt"
	"slices"

	"github.com/settlehq/settle/model"
)

// suffix is the overlay of transactions that this runtime has made and that the log has not confirmed:
// at most one sealed commit that is under way, and the open group that the next commit will carry
// (group commit).
//
//	log | sealed (under way) | open |
//	    ^ replica            ^      ^ what documents show
type suffix struct {
	sealed *sealed
	open   group
	// spare are the buffers of the last confirmed group, for the next.
	spare group
	// lastTx is the number of the last transaction made in this epoch. It grows over refusals too, so
	// that no id is ever given out twice.
	lastTx uint64
	// attempt numbers the appends of this epoch.
	attempt uint64
	// crowded says that a transaction found no room in the open group: nothing more is added to it,
	// and what needs the room goes first in the next one.
	crowded bool
}

// group is a run of transactions with the documents as they stand after it.
type group struct {
	txs   []model.Tx
	data  []byte // the transactions, encoded
	after map[string]model.Value
	// direct are the numbers of those that answer no event and that the application made.
	direct []uint64
}

// sealed is a group under way.
type sealed struct {
	group
	commit *model.Commit
	// taken is how many entries of the lane it decides.
	taken int
}

var (
	// ErrTooLarge is returned for a transaction that no commit could carry.
	ErrTooLarge = errors.New("transaction too large")
	// ErrNoRoom is returned for a transaction that must wait for the next group: it may be made again
	// when the append under way has been answered.
	ErrNoRoom = errors.New("no room in the open group")
)

// FrameBytes is what a commit needs around its transactions: names, numbers and the cursor with a few
// dozen events set aside.
const FrameBytes = 4 << 10

// add appends a transaction to the open group, or reports that there is no room in it (ErrNoRoom) or in
// any commit (ErrTooLarge).
func (x *suffix) add(tx *model.Tx, limit int) error {
	room := limit - FrameBytes
	data := model.AppendTx(x.open.data, tx)
	switch n := len(data) - len(x.open.data); {
	case n > room:
		return fmt.Errorf("%w: %d bytes, a commit takes %d; write smaller documents or split the work over several events", ErrTooLarge, n, room)
	case len(data) > room:
		x.crowded = true
		return ErrNoRoom
	}
	x.open.data = data
	x.open.txs = append(x.open.txs, *tx)
	return nil
}

// full reports whether the open group should take no more events. The half of it that they leave is for
// the computations that follow from them.
func (x *suffix) full(cfg *Config) bool {
	return len(x.open.txs) > 0 && (x.crowded || len(x.open.txs) >= cfg.MaxGroup || len(x.open.data) >= cfg.MaxCommitBytes/2)
}

// takeTurn reports whether something waits for room in a group of its own, which is there now.
func (x *suffix) takeTurn() bool {
	turn := x.crowded && len(x.open.txs) == 0
	if turn {
		x.crowded = false
	}
	return turn
}

// note records the value that a document has after the open group.
func (x *suffix) note(doc string, v model.Value) {
	if x.open.after == nil {
		x.open.after = map[string]model.Value{}
	}
	x.open.after[doc] = v
}

// value is a document as the undecided transactions leave it, false if they have not written it.
func (x *suffix) value(doc string) (v model.Value, written bool) {
	if v, written = x.open.after[doc]; !written && x.sealed != nil {
		v, written = x.sealed.after[doc]
	}
	return v, written
}

// seal makes the open group the transactions of a commit.
func (x *suffix) seal(c *model.Commit, taken int) {
	x.attempt++
	c.Attempt = x.attempt
	c.Txs = x.open.txs
	x.sealed = &sealed{group: x.open, commit: c, taken: taken}
	x.open, x.spare = x.spare, group{}
}

// spareDocs is the size up to which a map is used again: to clear one costs as much as the most it has
// ever held.
const spareDocs = 512

// confirm forgets the sealed group, which is in the log, and keeps its buffers.
func (x *suffix) confirm() {
	g := &x.sealed.group
	clear(g.txs)
	if len(g.after) > spareDocs {
		g.after = nil
	}
	clear(g.after)
	x.spare = group{txs: g.txs[:0], data: g.data[:0], after: g.after, direct: g.direct[:0]}
	x.sealed = nil
}

// release gives the buffers back that are kept for the next group.
func (x *suffix) release() {
	x.spare = group{}
	if len(x.open.txs) == 0 && len(x.open.after) == 0 {
		x.open = group{}
	}
}

// undecided reports whether there is any transaction that the log has not confirmed.
func (x *suffix) undecided() bool { return x.sealed != nil || len(x.open.txs) > 0 }

// appends is how many appends it takes until there is none, if none is refused.
func (x *suffix) appends() (n int) {
	if x.sealed != nil {
		n++
	}
	if len(x.open.txs) > 0 {
		n++
	}
	return n
}

// drop forgets all transactions, and returns them: those under way, and those of the open group.
func (x *suffix) drop() (underWay, open []model.Tx, direct []uint64) {
	open, direct = x.open.txs, slices.Clone(x.open.direct)
	if x.sealed != nil {
		underWay, direct = x.sealed.txs, slices.Concat(x.sealed.direct, direct)
	}
	x.sealed, x.open, x.crowded = nil, group{}, false
	return underWay, open, direct
}

// restart begins the numbers of an epoch; before is the number below its first transaction's.
func (x *suffix) restart(before uint64) { x.lastTx, x.attempt = before, 0 }
