package inspect

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-memdb"
)

// Tables show how a space stands to readers in other goroutines (docs/adr/0040). The space writes them, in one
// transaction for each time that it is asked, and only what has changed since the last one; a Snapshot is of one of
// those transactions.
type Tables struct {
	db *memdb.MemDB
	// notified reports that the watches of the last snapshot have been closed.
	notified bool
}

// State is what concerns a space as a whole.
type State struct {
	Space string
	// Program and Version name the program that runs, Handlers are the streams that have a handler, sorted.
	Program, Version string
	Handlers         []string
	// Seq is the log sequence up to which the confirmed state reaches, Passes counts the passes that have done
	// anything, At is the time of the last on the core's clock, and Wall the wall time in milliseconds since 1970, 0
	// if it is not known.
	Seq, Passes uint64
	At          time.Duration
	Wall        int64
	// Halt is why the space runs nothing, "" if it does.
	Halt string
}

// page holds 64 nodes with consecutive handles in one row, which makes an update
// several times cheaper than a row for each. A node in it is never changed: one that changes gets another row.
type page struct {
	number uint32
	nodes  [pageSize]*Node
}

const pageSize = 64

// part is one of the rows that are written anew each time, by name.
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
	partChange  = "change" // written when what the other rows show may be out of date
)

// NewTables makes tables that show nothing yet.
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

// Changed closes the watches of the last snapshot: the space may stand otherwise now.
func (t *Tables) Changed() {
	if t.notified {
		return
	}
	t.notified = true
	txn := t.db.Txn(true)
	checked(txn.Insert(tableParts, &part{name: partChange}))
	txn.Commit()
}

// Writer brings tables up to date.
type Writer struct {
	tables *Tables
	txn    *memdb.Txn
	// page is the one that is being compared, own a changed copy of it, nil if there is none.
	number    uint32
	page, own *page
}

// Update begins to bring the tables up to date. Every node is to be put, and then Finish called.
func (t *Tables) Update() *Writer {
	w := &Writer{tables: t, txn: t.db.Txn(true)}
	w.turn(0)
	return w
}

// Put takes in how the node with a handle stands, nil for none. Handles come in order. The writer keeps a copy of n, if it
// differs from what the tables have.
func (w *Writer) Put(handle int, n *Node) {
	if number := uint32(handle / pageSize); number != w.number {
		w.turn(number)
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

// turn goes on to another page, and stores the one before if it has changed.
func (w *Writer) turn(number uint32) {
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

// Finish writes the rest. The tables keep what they are given.
func (w *Writer) Finish(s *State, l *Lane, tasks []Tasks, h *History) {
	w.turn(0)
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

// checked panics: the schema and the rows are this package's own, so an error is a
// mistake in it and not something that can happen to a running space.
func checked(err error) {
	if err != nil {
		panic(fmt.Sprintf("inspect: tables: %v", err))
	}
}
