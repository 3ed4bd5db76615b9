package inspect

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-memdb"
)

// Tables show the state of a space to readers in other goroutines (docs/adr/0040). The space updates them on
// request, in one transaction, which writes only what has changed since the last one; a Snapshot is the state
// after one of those transactions.
type Tables struct {
	db *memdb.MemDB
	// notified reports that the watches of the last snapshot have been closed.
	notified bool
}

// State describes a space as a whole.
type State struct {
	Space string
	// Program and Version name the program that runs; Handlers are the streams with a handler, sorted.
	Program, Version string
	Handlers         []string
	// Seq is the log sequence of the confirmed state. Passes counts the passes that did any work. At is the
	// time of the last pass on the core's clock, and Wall the wall time in milliseconds since 1970, 0 if
	// unknown.
	Seq, Passes uint64
	At          time.Duration
	Wall        int64
	// Halt is why the space runs nothing, "" if it runs.
	Halt string
	// Rounds are the circles over several spaces whose pace is limited here.
	Rounds []Round
}

// Round is a circle that leads through derived documents of several spaces.
type Round struct {
	// Docs are the documents on the way, "SPACE/DOCUMENT"; each is read in the space of the next one, and the last in that of the first.
	Docs []string
	// Steps counts the documents through which the change has come again, and Until is the time until which the next step is held back.
	Steps uint64
	Until time.Duration
}

// page holds 64 nodes with consecutive handles in one row, which makes an update several times cheaper than
// one row per node. Its nodes are never changed: a node that changes gets another row.
type page struct {
	number uint32
	nodes  [pageSize]*Node
}

const pageSize = 64

// part is one of the rows that are rewritten each time, identified by name.
type part struct {
	name  string
	value any
}

const (
	tableNodes = "nodes"
	tableParts = "parts"
	indexID    = "id"

	partState   = "state"
	partLane    = "lane"
	partTasks   = "tasks"
	partHistory = "history"
	partChange  = "change" // written when the other rows may be out of date
)

// NewTables returns empty tables.
func NewTables() *Tables {
	table := func(name string, ix memdb.Indexer) *memdb.TableSchema {
		return &memdb.TableSchema{Name: name, Indexes: map[string]*memdb.IndexSchema{
			indexID: {Name: indexID, Unique: true, Indexer: ix},
		}}
	}
	db, err := memdb.NewMemDB(&memdb.DBSchema{Tables: map[string]*memdb.TableSchema{
		tableNodes: table(tableNodes, rowIndex{}),
		tableParts: table(tableParts, rowIndex{}),
	}})
	checked(err)
	return &Tables{db: db}
}

// Changed closes the watches of the last snapshot, because the state of the space may differ now.
func (t *Tables) Changed() {
	if t.notified {
		return
	}
	t.notified = true
	txn := t.db.Txn(true)
	checked(txn.Insert(tableParts, &part{name: partChange}))
	txn.Commit()
}

// Writer updates tables.
type Writer struct {
	tables *Tables
	txn    *memdb.Txn
	// page is the one that is being compared, own a changed copy of it, nil if nothing differs so far.
	number    uint32
	page, own *page
}

// Update begins an update. The caller must Put every node and then call Finish.
func (t *Tables) Update() *Writer {
	w := &Writer{tables: t, txn: t.db.Txn(true)}
	w.loadPage(0)
	return w
}

// Put sets the state of the node with a handle, nil for none. Handles must be in increasing order. The writer
// keeps a copy of n if it differs from the stored row.
func (w *Writer) Put(handle int, n *Node) {
	if number := uint32(handle / pageSize); number != w.number {
		w.loadPage(number)
	}
	at := handle % pageSize
	was := w.page.nodes[at]
	if n == nil && was == nil || n != nil && was != nil && n.same(was) {
		return
	}
	if w.own == nil {
		own := *w.page
		w.own = &own
	}
	if n == nil {
		w.own.nodes[at] = nil
		return
	}
	row := *n
	row.Reads, row.Writes, row.Causes = slices.Clone(n.Reads), slices.Clone(n.Writes), slices.Clone(n.Causes)
	w.own.nodes[at] = &row
}

// loadPage moves to another page, and stores the current one if it has changed.
func (w *Writer) loadPage(number uint32) {
	if w.own != nil {
		checked(w.txn.Insert(tableNodes, w.own))
	}
	w.number, w.own = number, nil
	row, err := w.txn.First(tableNodes, indexID, number)
	checked(err)
	if w.page, _ = row.(*page); w.page == nil {
		w.page = &page{number: number}
	}
}

// Finish writes the rest. The tables keep the arguments.
func (w *Writer) Finish(s *State, l *Lane, tasks []Tasks, h *History) {
	w.loadPage(0)
	for _, p := range []*part{{partState, s}, {partLane, l}, {partTasks, tasks}, {partHistory, h}, {partChange, nil}} {
		checked(w.txn.Insert(tableParts, p))
	}
	w.txn.Commit()
	w.tables.notified = false
}

// rowIndex keys a page by its number, in order, and a part by its name.
type rowIndex struct{}

// FromArgs implements memdb.Indexer.
func (rowIndex) FromArgs(args ...any) ([]byte, error) {
	if len(args) == 1 {
		switch key := args[0].(type) {
		case uint32:
			return binary.BigEndian.AppendUint32(nil, key), nil
		case string:
			return []byte(key), nil
		}
	}
	return nil, fmt.Errorf("a row is found by the number of a page or the name of a part, not by %v", args)
}

// FromObject implements memdb.SingleIndexer.
func (rowIndex) FromObject(row any) (bool, []byte, error) {
	if p, is := row.(*page); is {
		return true, binary.BigEndian.AppendUint32(nil, p.number), nil
	}
	return true, []byte(row.(*part).name), nil
}

// checked panics on an error: the schema and the rows are this package's own, so an error is a bug here, and
// cannot be caused by what a space does.
func checked(err error) {
	if err != nil {
		panic(fmt.Sprintf("inspect: tables: %v", err))
	}
}
