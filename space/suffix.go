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
	// spare are the buffers of the last confirmed group, for the next.
	spare group
	// lastTx is the number of the last transaction made in this epoch. It grows
	// over rollbacks too, so that no id is ever minted twice.
	lastTx uint64
	// attempt numbers the appends of this epoch.
	attempt uint64
	// crowded says that a transaction found no room in the open group: nothing more
	// is added to it, and what needs the room goes first in the next one.
	crowded bool
}

// group is a run of transactions with the documents as they stand after it.
type group struct {
	txs   []model.Tx
	data  []byte // the transactions, encoded
	after map[string]model.Value
	// runs are the runs of nodes among the transactions, direct those of Transact.
	runs   []ranNode
	direct []uint64
	// leaning are nodes that have written nothing because it was there already, and may
	// not be in the end.
	leaning []leaning
}

// ranNode is a run whose transaction is undecided. If it is undone, the node runs again
// for the same causes.
type ranNode struct {
	node   *node
	tx     uint64
	causes []string
}

// leaning is a node that has written nothing to a document.
type leaning struct {
	node *node
	doc  *doc
}

// sealed is a commit under way.
type sealed struct {
	commit *model.Commit
	after  map[string]model.Value
	// taken is how many entries of the lane it decides.
	taken int
	// data are the encoded transactions: what the commit was made of.
	data    []byte
	runs    []ranNode
	direct  []uint64
	leaning []leaning
}

var (
	// errTxTooLarge is returned for a transaction that no commit could carry.
	errTxTooLarge = errors.New("transaction too large")
	// ErrNoRoom is returned for a transaction that must wait for the next group: it
	// may be made again when the append under way has been answered.
	ErrNoRoom = errors.New("no room in the open group")
)

// frameBytes is what a commit needs around its transactions: names, numbers and
// the cursor with a few dozen events set aside.
const frameBytes = 4 << 10

// add appends a transaction to the open group, or reports that there is no room in
// it (ErrNoRoom) or in any commit (errTxTooLarge).
func (x *suffix) add(tx *model.Tx, limit int) error {
	room := limit - frameBytes
	data := model.AppendTx(x.open.data, tx)
	switch n := len(data) - len(x.open.data); {
	case n > room:
		return fmt.Errorf("%w: %d bytes, a commit takes %d; write smaller documents or split the work over several events", errTxTooLarge, n, room)
	case len(data) > room:
		x.crowded = true
		return ErrNoRoom
	}
	x.open.data = data
	x.open.txs = append(x.open.txs, *tx)
	return nil
}

// full reports whether the open group should take no more events. The half of it
// that they leave is for the computations that follow from them.
func (x *suffix) full(cfg *Config) bool {
	return len(x.open.txs) > 0 && (x.crowded || len(x.open.txs) >= cfg.MaxGroup || len(x.open.data) >= cfg.MaxCommitBytes/2)
}

// takeTurn reports whether something waits for room in a group of its own, which is
// there now.
func (x *suffix) takeTurn() bool {
	turn := x.crowded && len(x.open.txs) == 0
	if turn {
		x.crowded = false
	}
	return turn
}

// note records the value that a document has after the open group.
func (x *suffix) note(id string, v model.Value) {
	if x.open.after == nil {
		x.open.after = map[string]model.Value{}
	}
	x.open.after[id] = v
}

// holds reports whether the document has a value here that the log does not have yet.
func (x *suffix) holds(id string) bool {
	_, held := x.open.after[id]
	if !held && x.sealed != nil {
		_, held = x.sealed.after[id]
	}
	return held
}

// seal turns the open group into a commit.
func (x *suffix) seal(c *model.Commit, taken int) {
	x.attempt++
	c.Attempt = x.attempt
	c.Txs = x.open.txs
	x.sealed = &sealed{commit: c, after: x.open.after, taken: taken, data: x.open.data, runs: x.open.runs, direct: x.open.direct, leaning: x.open.leaning}
	x.open, x.spare = x.spare, group{}
}

// spareDocs is the size up to which a map is used again: to clear one costs as much as the
// most it has ever held.
const spareDocs = 512

// confirm forgets the sealed commit, which is in the log, and keeps its buffers.
func (x *suffix) confirm() {
	txs := x.sealed.commit.Txs
	clear(txs)
	if len(x.sealed.after) > spareDocs {
		x.sealed.after = nil
	}
	clear(x.sealed.after)
	clear(x.sealed.runs)
	x.spare = group{txs: txs[:0], data: x.sealed.data[:0], after: x.sealed.after, runs: x.sealed.runs[:0], direct: x.sealed.direct[:0]}
	x.sealed = nil
}

// undecided reports whether there is any transaction that the log has not confirmed.
func (x *suffix) undecided() bool { return x.sealed != nil || len(x.open.txs) > 0 }

// ran notes a run in the open group.
func (x *suffix) ran(n *node, tx uint64, causes []string) {
	x.open.runs = append(x.open.runs, ranNode{n, tx, causes})
}

// has reports whether an undecided transaction has written to a document.
func (x *suffix) has(d *doc) bool {
	if d.key.space != "" {
		return false
	}
	_, open := x.open.after[d.key.doc]
	if !open && x.sealed != nil {
		_, open = x.sealed.after[d.key.doc]
	}
	return open
}

// lean notes a node that relies on what an undecided transaction has written.
func (x *suffix) lean(n *node, d *doc) {
	x.open.leaning = append(x.open.leaning, leaning{n, d})
}

// takeLeaning lists the nodes that lean on what is about to be dropped.
func (x *suffix) takeLeaning() (list []leaning) {
	if x.sealed != nil {
		list = x.sealed.leaning
	}
	list, x.open.leaning = append(list, x.open.leaning...), nil
	return list
}

// drop forgets all transactions. It lists the runs among them, and the documents that
// they have changed, each with the node that did, or nil if that was not one node alone.
func (x *suffix) drop() (changed map[string]*node, runs []ranNode) {
	changed = map[string]*node{}
	if x.sealed != nil {
		runs = append(runs, x.sealed.runs...)
		authors(changed, x.sealed.commit.Txs, x.sealed.runs)
	}
	runs = append(runs, x.open.runs...)
	authors(changed, x.open.txs, x.open.runs)
	x.sealed, x.open, x.crowded = nil, group{}, false
	return changed, runs
}

// authors notes who has written what in txs; runs are those among them, in their order.
func authors(of map[string]*node, txs []model.Tx, runs []ranNode) {
	for i := range txs {
		var by *node
		if len(runs) > 0 && runs[0].tx == txs[i].N {
			by, runs = runs[0].node, runs[1:]
		}
		for j := range txs[i].Writes {
			doc := txs[i].Writes[j].Doc
			if other, seen := of[doc]; seen && other != by {
				of[doc] = nil
				continue
			}
			of[doc] = by
		}
	}
}

// logged is a document as it is in the log, with what is on its way there.
func (s *Space) logged(id string) model.Value {
	if v, ok := s.suffix.open.after[id]; ok {
		return v
	}
	if x := s.suffix.sealed; x != nil {
		if v, ok := x.after[id]; ok {
			return v
		}
	}
	return s.replica.Doc(id).Value
}
