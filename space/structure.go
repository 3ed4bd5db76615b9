package space

import (
	"encoding/binary"
	"fmt"
	mathbits "math/bits"
	"slices"

	"github.com/hashicorp/go-memdb"
)

// structure mirrors the shape of the graph in go-memdb: which nodes there are,
// what they read and write, which streams have handlers. Others read it through
// MVCC snapshots, and wait for changes on its watch channels, without stopping
// the space. It is written once per pass, and only if the shape changed; what
// changes with every run stays in the hot records, because an indexed write costs
// as much as hundreds of runs.
type structure struct {
	db *memdb.MemDB
	// looks is the number of passes for which the tables stay current.
	looks int
}

// NodeInfo is the structure of one node. It is never changed in place.
type NodeInfo struct {
	ID     string
	Handle uint32
	Kind   NodeKind
	Output string
	// Reads is the registered read set: document, then a JSON pointer; documents
	// of other spaces as @space/document.
	Reads []string
	// Parent is the node that made it, "" for a node of the program.
	Parent   string
	declared *declaration
}

// Places returns the places that the node may write besides its output.
func (n *NodeInfo) Places() []Address { return slices.Concat(n.declared.Writes, n.declared.Envelope) }

// handlerRow names a stream that has a handler.
type handlerRow struct{ Stream string }

// page holds 64 nodes with consecutive handles in one row, which makes an update about three times cheaper than
// a row for each.
type page struct {
	number uint32
	nodes  [pageSize]*NodeInfo
}

const (
	tableNodes   = "nodes"
	tableHandler = "handlers"
	indexID      = "id"
)

func newStructure() (*structure, error) {
	table := func(name string, ix memdb.Indexer) *memdb.TableSchema {
		return &memdb.TableSchema{Name: name, Indexes: map[string]*memdb.IndexSchema{
			indexID: {Name: indexID, Unique: true, Indexer: ix},
		}}
	}
	db, err := memdb.NewMemDB(&memdb.DBSchema{Tables: map[string]*memdb.TableSchema{
		tableNodes:   table(tableNodes, pageIndex{}),
		tableHandler: table(tableHandler, &memdb.StringFieldIndex{Field: "Stream"}),
	}})
	if err != nil {
		return nil, fmt.Errorf("structure tables: %w", err)
	}
	return &structure{db: db}, nil
}

// lookedAt is the number of passes for which the tables are kept current after a snapshot was taken. Writing
// them takes longer than most passes, and mostly they are not read.
const lookedAt = 1024

// endPass writes the changes, if the tables are being read.
func (s *structure) endPass(g *graph) {
	if s.looks > 0 {
		s.looks--
		s.flush(g)
	}
}

// flush writes the pages whose nodes changed in shape since the last flush, in one
// transaction.
func (s *structure) flush(g *graph) {
	if len(g.dirtyPages) == 0 {
		return
	}
	txn := s.db.Txn(true)
	defer txn.Abort()
	slices.Sort(g.dirtyPages)
	for _, number := range g.dirtyPages {
		p := s.page(txn, number)
		for bits := g.dirty[number]; bits != 0; bits &= bits - 1 {
			at := uint32(mathbits.TrailingZeros64(bits))
			p.nodes[at] = describe(g.nodes[number*pageSize+at])
		}
		g.dirty[number] = 0
		checked(txn.Insert(tableNodes, p))
	}
	txn.Commit()
	g.dirtyPages = g.dirtyPages[:0]
}

// page returns a private copy of the page with the given number.
func (s *structure) page(txn *memdb.Txn, number uint32) *page {
	p := &page{number: number}
	row, err := txn.First(tableNodes, indexID, number)
	checked(err)
	if row != nil {
		*p = *row.(*page)
	}
	return p
}

func describe(n *node) *NodeInfo {
	if n == nil {
		return nil
	}
	info := &NodeInfo{ID: n.id(), Handle: n.handle, Kind: n.kind, Output: n.spec.Output, Reads: n.readNames(), declared: n.spec}
	if p := n.parent(); p != nil {
		info.Parent = p.id()
	}
	return info
}

func (s *structure) setHandlers(p *Program) {
	txn := s.db.Txn(true)
	defer txn.Abort()
	_, err := txn.DeleteAll(tableHandler, indexID)
	checked(err)
	for _, stream := range sortedKeys(p.handlers) {
		checked(txn.Insert(tableHandler, &handlerRow{Stream: stream}))
	}
	txn.Commit()
}

// Structure is a snapshot of the graph's shape. Any goroutine may read it at any time.
type Structure struct{ txn *memdb.Txn }

// Nodes lists the nodes in order of registration.
func (st Structure) Nodes() []NodeInfo {
	it, err := st.txn.Get(tableNodes, indexID)
	checked(err)
	var out []NodeInfo
	for row := it.Next(); row != nil; row = it.Next() {
		for _, n := range row.(*page).nodes {
			if n != nil {
				out = append(out, *n)
			}
		}
	}
	return out
}

// Handlers lists the streams that have a handler, sorted.
func (st Structure) Handlers() []string {
	it, err := st.txn.Get(tableHandler, indexID)
	checked(err)
	var out []string
	for row := it.Next(); row != nil; row = it.Next() {
		out = append(out, row.(*handlerRow).Stream)
	}
	return out
}

// Watch returns a channel that is closed when a node's structure changes after
// this snapshot was taken.
func (st Structure) Watch() <-chan struct{} {
	it, err := st.txn.Get(tableNodes, indexID)
	checked(err)
	return it.WatchCh()
}

// pageIndex keys a page by its number, in order.
type pageIndex struct{}

// FromArgs implements memdb.Indexer.
func (pageIndex) FromArgs(args ...any) ([]byte, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("a page is found by its number alone")
	}
	n, ok := args[0].(uint32)
	if !ok {
		return nil, fmt.Errorf("a page number is a uint32, not %T", args[0])
	}
	return binary.BigEndian.AppendUint32(nil, n), nil
}

// FromObject implements memdb.SingleIndexer.
func (pageIndex) FromObject(row any) (bool, []byte, error) {
	return true, binary.BigEndian.AppendUint32(nil, row.(*page).number), nil
}

// checked panics: the schema and the rows are defined in this file, so an error is a bug here and cannot be
// caused by a running space.
func checked(err error) {
	if err != nil {
		panic(fmt.Sprintf("space: structure tables: %v", err))
	}
}

func sortedKeys[K ~string | ~uint32, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m { // any order: sorted below
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
