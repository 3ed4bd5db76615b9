package ledger

import (
	"errors"
	"fmt"
	"slices"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// suffix is the overlay of transactions that this runtime has made and the log has not confirmed: at most one
// sealed commit that is in flight, and the open group that becomes the next commit (group commit).
//
//	log | sealed (in flight) | open |
//	    ^ replica            ^      ^ what documents show
type suffix struct {
	cfg       *Config
	confirmed *replica.Replica

	sealed *sealed
	open   group
	// spare are the buffers of the last confirmed group, for reuse.
	spare group
	// lastTx is the number of the last transaction made in this epoch. Refusals do not reset it, so that no
	// id is used twice.
	lastTx uint64
	// attempt numbers the appends of this epoch.
	attempt uint64
	// overflowed is set when a transaction did not fit into the open group: nothing more is added to the group,
	// and that transaction goes first in the next one.
	overflowed bool
}

// group is a sequence of transactions with the documents after it.
type group struct {
	txs   []model.Tx
	data  []byte // the transactions, encoded
	after map[string]model.Value
	// direct are the numbers of the transactions that the application made without an event.
	direct []uint64
}

// sealed is a group in flight.
type sealed struct {
	group
	commit *model.Commit
	// taken is the number of lane entries that it decides.
	taken int
}

var (
	// ErrTooLarge is returned for a transaction that no commit could carry.
	ErrTooLarge = errors.New("transaction too large")
	// ErrNoRoom is returned for a transaction that must wait for the next group: it may be retried when the
	// append in flight has been answered.
	ErrNoRoom = errors.New("no room in the open group")
)

// FrameBytes is the size of a commit without its transactions: names, numbers and the cursor with a few dozen
// events set aside.
const FrameBytes = 4 << 10

// direct records that the application made a transaction of the open group (see Draft.Direct).
func (x *suffix) direct(tx uint64) { x.open.direct = append(x.open.direct, tx) }

// NextTx returns a number for a transaction. No number is returned twice in an epoch.
func (x *suffix) NextTx() uint64 {
	x.lastTx++
	return x.lastTx
}

// Add appends a transaction that sends nothing, with a number from NextTx, to the open group. The error is
// ErrNoRoom if the transaction does not fit into the group, and ErrTooLarge if it does not fit into any
// commit.
func (x *suffix) Add(tx *model.Tx) error {
	room := x.cfg.MaxCommitBytes - FrameBytes
	data := model.AppendTx(x.open.data, tx)
	switch n := len(data) - len(x.open.data); {
	case n > room:
		return fmt.Errorf("%w: %d bytes, a commit takes %d; write smaller documents or split the work over several events", ErrTooLarge, n, room)
	case len(data) > room:
		x.overflowed = true
		return ErrNoRoom
	}
	x.open.data = data
	x.open.txs = append(x.open.txs, *tx)
	return nil
}

// Full reports whether the open group should take no more events. They fill at most half of it; the
// rest is for the computations that follow from them.
func (x *suffix) Full() bool {
	return len(x.open.txs) > 0 && (x.overflowed || len(x.open.txs) >= x.cfg.MaxGroup || len(x.open.data) >= x.cfg.MaxCommitBytes/2)
}

// Overflowed reports whether a transaction did not fit into the open group; the group then takes nothing more.
func (x *suffix) Overflowed() bool { return x.overflowed }

// TakeTurn reports whether a transaction that did not fit can go first now.
func (x *suffix) TakeTurn() bool {
	turn := x.overflowed && len(x.open.txs) == 0
	if turn {
		x.overflowed = false
	}
	return turn
}

// Open reports whether there are transactions that are not in flight to the log.
func (x *suffix) Open() bool { return len(x.open.txs) > 0 }

// Appends returns the number of appends until every transaction is in the log, if none is refused.
func (x *suffix) Appends() (n int) {
	if x.sealed != nil {
		n++
	}
	if len(x.open.txs) > 0 {
		n++
	}
	return n
}

// undecided reports whether there are transactions that the log has not confirmed.
func (x *suffix) undecided() bool { return x.sealed != nil || len(x.open.txs) > 0 }

// note records the value of a document after the open group.
func (x *suffix) note(doc string, v model.Value) {
	if x.open.after == nil {
		x.open.after = map[string]model.Value{}
	}
	x.open.after[doc] = v
}

// Value returns a document as the transactions made so far leave it, confirmed or not.
func (x *suffix) Value(doc string) model.Value {
	if v, written := x.written(doc); written {
		return v
	}
	return x.confirmed.Doc(doc).Value
}

// Holds reports whether an undecided transaction has written to a document.
func (x *suffix) Holds(doc string) bool {
	_, written := x.written(doc)
	return written
}

// written returns a document as the undecided transactions leave it, false if they have not written it.
func (x *suffix) written(doc string) (v model.Value, written bool) {
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

// spareDocs is the size up to which a map is reused: clearing a map costs as much as its largest size so far.
const spareDocs = 512

// confirm discards the sealed group, which is in the log, and keeps its buffers.
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

// ReleaseMemory drops the buffers that are kept for the next group. A host with many ledgers calls it for one
// that is idle.
func (x *suffix) ReleaseMemory() {
	x.spare = group{}
	if len(x.open.txs) == 0 && len(x.open.after) == 0 {
		x.open = group{}
	}
}

// Dropped are the transactions that a refusal has undone: those of the commit that was in flight, and of the
// group behind it. Direct are the numbers of those that the application made (see Draft.Direct).
type Dropped struct {
	UnderWay, Open []model.Tx
	Direct         []uint64
}

// drop forgets all transactions, and returns them.
func (x *suffix) drop() Dropped {
	gone := Dropped{Open: x.open.txs, Direct: slices.Clone(x.open.direct)}
	if x.sealed != nil {
		gone.UnderWay, gone.Direct = x.sealed.txs, slices.Concat(x.sealed.direct, gone.Direct)
	}
	x.sealed, x.open, x.overflowed = nil, group{}, false
	return gone
}

// restart begins the numbers of an epoch; before is the number before its first transaction's.
func (x *suffix) restart(before uint64) { x.lastTx, x.attempt = before, 0 }
