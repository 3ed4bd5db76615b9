package query

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/settlehq/settle/internal/display"
)

// Limits bound what is read for a query.
type Limits struct {
	// Spaces is how many spaces may be read.
	Spaces int
	// Bytes bounds the values, errors and names that are read, together, and the values of the answer. SQLite has twice as much memory, and
	// leastMemory, but never more than mostMemory.
	Bytes int64
}

const (
	leastMemory = 256 << 20
	mostMemory  = 4 << 30 // that it can address
	// MostBytes is the highest useful limit of bytes.
	MostBytes = (mostMemory - leastMemory) / 2
)

func (l Limits) memory() int64 { return 2*min(l.Bytes, MostBytes) + leastMemory }

// DefaultLimits are those of `settle query`.
var DefaultLimits = Limits{Spaces: 100_000, Bytes: 512 << 20}

// Errors about a query.
var (
	// ErrNotOne is returned for a text that is not one statement.
	ErrNotOne = errors.New("a query is one statement")
	// ErrNotRead is returned for a statement that does anything but read the tables.
	ErrNotRead = errors.New("a query only reads: it begins with SELECT or WITH, and asks the tables " + strings.Join(Tables(), ", "))
	// ErrTooMuch is returned if a query reads, needs or answers more than the limits allow.
	ErrTooMuch = errors.New("that is more than a query may take")
)

// Rows are the answer to a query.
type Rows struct {
	Columns []string
	// Rows have nil, int64, float64, string or []byte for each column.
	Rows [][]any
}

// Run answers a query about spaces of a source.
func Run(ctx context.Context, from Source, sql string, limits Limits) (rows *Rows, err error) {
	defer func() {
		if p := recover(); isOutOfMemory(p) {
			rows, err = nil, fmt.Errorf("%w: it needs more than %d MiB of memory; name fewer spaces", ErrTooMuch, limits.memory()>>20)
		} else if p != nil {
			panic(p)
		}
	}()
	db, err := sqlite3.OpenContext(sqlite3.WithMaxMemory(ctx, limits.memory()), ":memory:")
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()                             // it is in memory
	if err := db.Exec("PRAGMA temp_store = MEMORY"); err != nil { // what is sorted is written to no file
		return nil, err
	}
	for _, t := range tables {
		if err := db.Exec("CREATE TABLE " + t.name + " (" + strings.Join(t.columns, ", ") + ")"); err != nil {
			return nil, err
		}
	}
	db.SetInterrupt(ctx)
	rows, err = fillAndAnswer(ctx, db, from, sql, limits)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err() // whatever it has interrupted
	}
	return rows, err
}

// isOutOfMemory reports whether the library has panicked since there is no more memory for SQLite.
func isOutOfMemory(p any) bool {
	err, is := p.(error)
	return is && err.Error() == sqlite3.NOMEM.Error()
}

func fillAndAnswer(ctx context.Context, db *sqlite3.Conn, from Source, sql string, limits Limits) (*Rows, error) {
	named, err := check(db, sql)
	if err == nil {
		err = fill(ctx, db, from, named, limits)
	}
	if err == nil {
		err = db.SetAuthorizer((&guard{}).allows)
	}
	if err != nil {
		return nil, err
	}
	return answer(db, sql, limits.Bytes)
}

// check returns the tables that a query names, and an error if it is not one that only reads.
func check(db *sqlite3.Conn, sql string) (named map[string]bool, err error) {
	g := &guard{named: map[string]bool{}}
	if err := db.SetAuthorizer(g.allows); err != nil {
		return nil, err
	}
	stmt, rest, err := db.Prepare(sql)
	switch {
	case g.denied:
		return nil, ErrNotRead
	case err != nil:
		return nil, fmt.Errorf("query: %s", reason(db, err))
	case stmt == nil:
		return nil, ErrNotOne
	}
	defer func() { _ = stmt.Close() }() // reports the error of a step, and there was none
	switch {
	case isStatement(db, rest):
		return nil, ErrNotOne
	case !stmt.ReadOnly():
		return nil, ErrNotRead
	case stmt.BindCount() > 0:
		return nil, errors.New("a query has no parameters: write the values")
	}
	return g.named, db.SetAuthorizer(nil)
}

// isStatement reports whether a text is anything but space and comments.
func isStatement(db *sqlite3.Conn, text string) bool {
	stmt, rest, err := db.Prepare(text)
	if stmt != nil {
		_ = stmt.Close() // it was not run
	}
	return err != nil || stmt != nil || strings.TrimSpace(rest) != ""
}

// reason returns what SQLite says about a statement.
func reason(db *sqlite3.Conn, err error) string {
	return display.FirstLine(strings.TrimPrefix(err.Error(), "sqlite3: "))
}

// guard allows queries of the tables. It notes which they name, and whether it has denied something.
type guard struct {
	named  map[string]bool // nil if that is known
	denied bool
}

func (g *guard) allows(action sqlite3.AuthorizerActionCode, name, _, _, _ string) sqlite3.AuthorizerReturnCode {
	switch action {
	case sqlite3.AUTH_SELECT, sqlite3.AUTH_FUNCTION, sqlite3.AUTH_RECURSIVE:
		return sqlite3.AUTH_OK
	case sqlite3.AUTH_READ:
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "pragma_") || strings.HasPrefix(lower, "sqlite_") {
			break
		}
		if g.named != nil {
			g.named[name] = true
		}
		return sqlite3.AUTH_OK
	}
	g.denied = true
	return sqlite3.AUTH_DENY
}

// answer runs a query, whose answer has up to so many bytes.
func answer(db *sqlite3.Conn, sql string, most int64) (*Rows, error) {
	stmt, _, err := db.Prepare(sql)
	if err != nil {
		return nil, fmt.Errorf("query: %s", reason(db, err))
	}
	defer func() { _ = stmt.Close() }() // stmt.Err has reported it
	r := &Rows{}
	for i := range stmt.ColumnCount() {
		r.Columns = append(r.Columns, stmt.ColumnName(i))
	}
	for stmt.Step() {
		row := make([]any, len(r.Columns))
		for i := range row {
			row[i] = column(stmt, i)
		}
		if most -= size(row); most < 0 {
			return nil, fmt.Errorf("%w: the answer is too large; ask for less of it (LIMIT)", ErrTooMuch)
		}
		r.Rows = append(r.Rows, row)
	}
	if err := stmt.Err(); err != nil {
		return nil, fmt.Errorf("query: %s", reason(db, err))
	}
	return r, nil
}

// size returns about how many bytes a row has, and what it takes to keep it.
func size(row []any) (n int64) {
	for _, v := range row {
		n += valueBytes
		switch v := v.(type) {
		case string:
			n += int64(len(v))
		case []byte:
			n += int64(len(v))
		}
	}
	return n
}

// valueBytes is what a value in a row takes beside its text.
const valueBytes = 16

func column(stmt *sqlite3.Stmt, i int) any {
	switch stmt.ColumnType(i) {
	case sqlite3.INTEGER:
		return stmt.ColumnInt64(i)
	case sqlite3.FLOAT:
		return stmt.ColumnFloat(i)
	case sqlite3.TEXT:
		return stmt.ColumnText(i)
	case sqlite3.BLOB:
		return slices.Clone(stmt.ColumnRawBlob(i))
	}
	return nil
}

// Tables returns the names of the tables, sorted.
func Tables() []string { return slices.Sorted(maps.Keys(columnsOf())) }

// Columns returns the names of the columns of a table.
func Columns(table string) []string { return columnsOf()[table] }

func columnsOf() map[string][]string {
	of := map[string][]string{}
	for _, t := range tables {
		for _, c := range t.columns {
			name, _, _ := strings.Cut(c, " ")
			of[t.name] = append(of[t.name], name)
		}
	}
	return of
}
