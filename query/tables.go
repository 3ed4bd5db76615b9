package query

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/ncruces/go-sqlite3"

	"github.com/settlehq/settle/history"
)

// Source has the spaces that a query is about.
type Source interface {
	// Spaces returns their names.
	Spaces(ctx context.Context) ([]string, error)
	// Contents returns the documents of a space.
	Contents(ctx context.Context, space string) (*history.Contents, error)
	// Receipts returns the receipts of a space that the log still has, oldest first.
	Receipts(ctx context.Context, space string) iter.Seq2[*history.Handling, error]
}

// The tables.
const (
	spacesTable    = "spaces"
	documentsTable = "documents"
	receiptsTable  = "receipts"
)

// table is a table, with how each column is declared.
type table struct {
	name    string
	columns []string
}

var tables = []table{
	{spacesTable, []string{"space TEXT NOT NULL"}},
	{documentsTable, []string{"space TEXT NOT NULL", "document TEXT NOT NULL", "value TEXT NOT NULL", "revision INTEGER NOT NULL", "derived INTEGER NOT NULL"}},
	{receiptsTable, []string{
		"space TEXT NOT NULL", "stream TEXT NOT NULL", "event TEXT NOT NULL", "outcome TEXT NOT NULL", "result TEXT", "error TEXT", "code TEXT",
		"attempts INTEGER NOT NULL", "revision INTEGER NOT NULL", "stored TEXT NOT NULL", "runtime TEXT NOT NULL",
	}},
}

// filler fills the tables of a database.
type filler struct {
	from   Source
	limits Limits
	bytes  atomic.Int64 // that were read
	named  map[string]bool
	of     map[string]*sqlite3.Stmt // inserts a row, by table
}

// fill fills the named tables.
func fill(ctx context.Context, db *sqlite3.Conn, from Source, named map[string]bool, limits Limits) (err error) {
	f := &filler{from: from, limits: limits, named: named, of: map[string]*sqlite3.Stmt{}}
	if !slices.ContainsFunc(tables, func(t table) bool { return named[t.name] }) {
		return nil
	}
	if err := db.Exec("BEGIN"); err != nil {
		return err
	}
	for _, t := range tables {
		stmt, _, err := db.Prepare("INSERT INTO " + t.name + " VALUES (" + strings.TrimSuffix(strings.Repeat("?, ", len(t.columns)), ", ") + ")")
		if err != nil {
			return err
		}
		defer func() { _ = stmt.Close() }() // insert has reported its errors
		f.of[t.name] = stmt
	}
	names, err := from.Spaces(ctx)
	switch {
	case err != nil:
		return err
	case len(names) > limits.Spaces:
		return fmt.Errorf("%w: %d spaces, and the limit is %d; name fewer of them", ErrTooMuch, len(names), limits.Spaces)
	}
	err = f.inOrder(ctx, names)
	if err != nil {
		return err
	}
	return db.Exec("COMMIT")
}

// ahead is how many spaces are read at a time.
const ahead = 16

// content is what was read of a space: the rows of each table, without those that are not named.
type content struct {
	documents, receipts [][]any
	err                 error
}

// inOrder fills in spaces, in their order, while the next ones are read.
func (f *filler) inOrder(ctx context.Context, names []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type reading struct {
		space string
		done  chan content
	}
	reads := make(chan reading, ahead-1)
	go func() { // ends with the names, or with ctx
		defer close(reads)
		for _, space := range names {
			read := reading{space, make(chan content, 1)}
			select {
			case reads <- read:
			case <-ctx.Done():
				return
			}
			go func() { read.done <- f.read(ctx, space) }() // ends with ctx at the latest
		}
	}()
	for read := range reads {
		c := <-read.done
		if c.err == nil {
			c.err = f.space(read.space, &c)
		}
		if c.err != nil {
			return c.err
		}
	}
	return ctx.Err()
}

// read reads what is named of a space. One that was deleted meanwhile has nothing.
func (f *filler) read(ctx context.Context, space string) (c content) {
	if f.named[documentsTable] {
		if c.documents, c.err = f.documents(ctx, space); c.err != nil {
			return c
		}
	}
	if f.named[receiptsTable] {
		c.receipts, c.err = f.receipts(ctx, space)
	}
	return c
}

// space fills in a space.
func (f *filler) space(space string, c *content) error {
	if err := f.insert(spacesTable, []any{space}); err != nil {
		return err
	}
	for _, row := range c.documents {
		if err := f.insert(documentsTable, row); err != nil {
			return err
		}
	}
	for _, row := range c.receipts {
		if err := f.insert(receiptsTable, row); err != nil {
			return err
		}
	}
	return nil
}

func (f *filler) receipts(ctx context.Context, space string) (rows [][]any, err error) {
	for h, err := range f.from.Receipts(ctx, space) {
		if err == nil {
			err = f.add(&rows, receiptRow(space, h)...)
		}
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func receiptRow(space string, h *history.Handling) []any {
	rc := h.Tx.Receipt
	result := any(nil)
	if !rc.Result.IsAbsent() {
		result = rc.Result.String()
	}
	return []any{
		space, h.Stream(), rc.Event, string(rc.Outcome), result, orNull(rc.Error), orNull(rc.Code), int64(max(rc.Attempts, 1)), int64(h.Seq),
		h.Stored.UTC().Format(timeFormat), h.Runtime,
	}
}

// timeFormat is one that the functions of SQLite read, and that sorts by time.
const timeFormat = "2006-01-02T15:04:05.000Z"

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func (f *filler) documents(ctx context.Context, space string) (rows [][]any, err error) {
	all, err := f.from.Contents(ctx, space)
	if err != nil {
		return nil, err
	}
	for _, id := range all.DocIDs() {
		d := all.Doc(id)
		if d.Value.IsAbsent() {
			continue
		}
		if err := f.add(&rows, space, id, d.Value.String(), int64(d.Seq), boolean(slices.Contains(all.Derived, id))); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// add adds a row to those that were read, unless that is too much.
func (f *filler) add(rows *[][]any, row ...any) error {
	if f.bytes.Add(size(row)) > f.limits.Bytes {
		return fmt.Errorf("%w: there are more than %d MiB to read; name fewer spaces", ErrTooMuch, f.limits.Bytes>>20)
	}
	*rows = append(*rows, row)
	return nil
}

func boolean(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// insert adds a row to a table.
func (f *filler) insert(table string, row []any) error {
	stmt := f.of[table]
	for i, v := range row {
		var err error
		switch v := v.(type) {
		case string:
			err = stmt.BindText(i+1, v)
		case int64:
			err = stmt.BindInt64(i+1, v)
		default:
			err = stmt.BindNull(i + 1)
		}
		if err != nil {
			return err
		}
	}
	stmt.Step()
	return errors.Join(stmt.Err(), stmt.Reset())
}
