package space

import (
	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
)

// undoLog has what the graph needs to undo unconfirmed transactions: which of them were runs of nodes, and
// which nodes rely on them.
type undoLog struct {
	// sealed belongs to the commit under way, open to the next one.
	sealed, open undoGroup
	// spare is a buffer for the next group's runs.
	spare []ranNode
}

type undoGroup struct {
	runs []ranNode
	// speculative are nodes that wrote nothing because an undecided transaction had written the same.
	speculative []speculativeNode
}

// ranNode is a run whose transaction is undecided. If that is undone, the node runs again for the same
// causes.
type ranNode struct {
	node   *node
	tx     uint64
	causes []string
}

// speculativeNode is a node that left a document unchanged because an undecided transaction had written the
// same.
type speculativeNode struct {
	node *node
	doc  *doc
}

// ran adds a run to the open group.
func (u *undoLog) ran(n *node, tx uint64, causes []string) {
	u.open.runs = append(u.open.runs, ranNode{n, tx, causes})
}

// relies adds a node that relies on an undecided write.
func (u *undoLog) relies(n *node, d *doc) {
	u.open.speculative = append(u.open.speculative, speculativeNode{n, d})
}

// seal closes the open group, as its commit is now under way.
func (u *undoLog) seal() {
	u.sealed = u.open
	u.open, u.spare = undoGroup{runs: u.spare}, nil
}

// confirm drops the sealed group, which is now in the log.
func (u *undoLog) confirm() {
	clear(u.sealed.runs)
	u.spare = u.sealed.runs[:0]
	u.sealed = undoGroup{}
}

// undone lists what the graph has to undo.
type undone struct {
	// changed are the documents that the transactions have written, each with the node that wrote it, or nil if
	// several did.
	changed map[string]*node
	// runs are the runs among the transactions.
	runs []ranNode
	// speculative are the nodes that relied on them.
	speculative []speculativeNode
}

// drop removes and returns everything, for transactions that are being undone.
func (u *undoLog) drop(gone ledger.Dropped) undone {
	un := undone{changed: map[string]*node{}}
	un.runs = append(append(un.runs, u.sealed.runs...), u.open.runs...)
	un.speculative = append(append(un.speculative, u.sealed.speculative...), u.open.speculative...)
	authors(un.changed, gone.UnderWay, u.sealed.runs)
	authors(un.changed, gone.Open, u.open.runs)
	u.sealed, u.open = undoGroup{}, undoGroup{}
	return un
}

// authors records in of the writers of the documents in txs; runs are the runs among txs, in order.
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
