package query

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/replica"
)

// shops are three spaces, each with two documents and two receipts.
type shops struct {
	mu    sync.Mutex
	reads map[string]int
}

func (s *shops) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads[what]++
}

func (s *shops) Spaces(context.Context) ([]string, error) {
	return []string{"shop-a", "shop-b", "stock"}, nil
}

func (s *shops) Contents(_ context.Context, space string) (*history.Contents, error) {
	s.note("documents")
	r := replica.New(space)
	set := func(doc, json string) model.Write {
		v, err := model.ParseValue([]byte(json))
		if err != nil {
			panic(err)
		}
		return model.Write{Doc: doc, Value: v}
	}
	c := &model.Commit{Space: space, Runtime: "w", Takeover: true, Txs: []model.Tx{{Writes: []model.Write{
		set("items", fmt.Sprintf(`{"milk":%d,"tea":7}`, len(space))), set("total", `12.5`),
	}}}}
	if _, err := r.Apply(4, c); err != nil {
		return nil, err
	}
	return &history.Contents{Replica: r, Derived: []string{"total"}}, nil
}

func (s *shops) Receipts(_ context.Context, space string) iter.Seq2[*history.Handling, error] {
	s.note("receipts")
	return func(yield func(*history.Handling, error) bool) {
		at := time.UnixMilli(1_800_000_000_000)
		one := func(n int, rc model.Receipt) bool {
			return yield(&history.Handling{Space: space, Seq: uint64(n), Stored: at.Add(time.Duration(n) * time.Hour), Runtime: "w", Tx: model.Tx{By: receipts.By("order"), Receipt: &rc}}, nil)
		}
		_ = one(1, model.Receipt{Event: "e1", Outcome: model.Handled, Result: model.Object(model.F("n", 1))}) &&
			one(2, model.Receipt{Event: "e2", Outcome: model.Rejected, Code: "sold-out", Error: "no milk", Attempts: 3})
	}
}

func ask(t *testing.T, sql string) (string, *shops) {
	t.Helper()
	s := &shops{reads: map[string]int{}}
	rows, err := Run(t.Context(), s, sql, DefaultLimits)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	var lines []string
	for _, r := range rows.Rows {
		lines = append(lines, strings.Trim(fmt.Sprint(r), "[]"))
	}
	return strings.Join(lines, "\n"), s
}

func TestRun_AnswersQuestionsOverManySpaces(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{
		`SELECT count(*) FROM spaces`: "3",
		`SELECT space, value->>'milk' FROM documents WHERE document = 'items' ORDER BY space`:                                      "shop-a 6\nshop-b 6\nstock 5",
		`SELECT sum(value->>'milk') FROM documents WHERE space GLOB 'shop-*'`:                                                      "12",
		`SELECT document, value, revision, derived FROM documents WHERE space = 'stock'`:                                           "items {\"milk\":5,\"tea\":7} 4 0\ntotal 12.5 4 1",
		`SELECT key, sum(j.value) FROM documents, json_each(documents.value) j WHERE document = 'items' GROUP BY key ORDER BY key`: "milk 17\ntea 21",
		`SELECT outcome, code, count(*), max(attempts) FROM receipts GROUP BY outcome, code ORDER BY outcome`:                      "handled <nil> 3 1\nrejected sold-out 3 3",
		`SELECT stream, event, result, error, revision, strftime('%H', stored), runtime FROM receipts WHERE space = 'stock'`:       "order e1 {\"n\":1} <nil> 1 09 w\norder e2 <nil> no milk 2 10 w",
		`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 4) SELECT sum(i) FROM n; -- and no more`:           "10",
	} {
		if got, _ := ask(t, sql); got != want {
			t.Errorf("%s\n%s\nwant\n%s", sql, got, want)
		}
	}
}

// What a query does not name is not read.
func TestRun_ReadsOnlyWhatIsNamed(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{
		`SELECT 1`: "map[]", `SELECT count(*) FROM spaces`: "map[]", `SELECT count(*) FROM documents`: "map[documents:3]",
		`SELECT 1 FROM receipts, documents`: "map[documents:3 receipts:3]",
	} {
		if _, s := ask(t, sql); fmt.Sprint(s.reads) != want {
			t.Errorf("%s reads %v, want %s", sql, s.reads, want)
		}
	}
}

func TestRun_RefusesWhatDoesNotOnlyRead(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]error{
		`DELETE FROM documents`:              ErrNotRead,
		`INSERT INTO spaces VALUES ('x')`:    ErrNotRead,
		`CREATE TABLE x (y)`:                 ErrNotRead,
		`ATTACH '/tmp/x.db' AS x`:            ErrNotRead,
		`PRAGMA journal_mode = wal`:          ErrNotRead,
		`SELECT * FROM pragma_database_list`: ErrNotRead,
		`SELECT * FROM PRAGMA_database_list`: ErrNotRead,
		`SELECT * FROM sqlite_schema`:        ErrNotRead,
		`VACUUM INTO '/tmp/x.db'`:            ErrNotRead,
		`BEGIN`:                              ErrNotRead,
		`SELECT 1; SELECT 2`:                 ErrNotOne,
		`SELECT 1; DROP TABLE spaces`:        ErrNotOne,
		``:                                   ErrNotOne,
		`-- nothing`:                         ErrNotOne,
		`SELECT load_extension('x')`:         nil,
		`SELECT readfile('/etc/passwd')`:     nil,
		`SELECT ?`:                           nil,
		`SELECT nosuch FROM documents`:       nil,
		`SELECT writefile('/tmp/x', 'y'), * FROM documents`: nil,
	} {
		s := &shops{reads: map[string]int{}}
		_, err := Run(t.Context(), s, sql, DefaultLimits)
		if err == nil || want != nil && !errors.Is(err, want) || len(s.reads) > 0 {
			t.Errorf("%s: %v after reads of %v, want %v", sql, err, s.reads, want)
		}
	}
}

func TestRun_HasBounds(t *testing.T) {
	t.Parallel()
	for _, l := range []Limits{{Spaces: 2, Bytes: 1 << 20}, {Spaces: 10, Bytes: 50}} {
		if _, err := Run(t.Context(), &shops{reads: map[string]int{}}, `SELECT * FROM documents`, l); !errors.Is(err, ErrTooMuch) {
			t.Errorf("with %+v: %v", l, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, &shops{reads: map[string]int{}}, `SELECT * FROM documents`, DefaultLimits); !errors.Is(err, context.Canceled) {
		t.Errorf("a query that was interrupted: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	endless := `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n`
	if _, err := Run(ctx, &shops{reads: map[string]int{}}, endless, DefaultLimits); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a query without an end: %v", err)
	}
}

// A query that needs more memory than it may ends with an error, as one with an answer that has no end; and neither what it sorts nor
// anything else is written to a file.
func TestRun_AQueryThatNeedsTooMuchEndsWithAnError(t *testing.T) {
	t.Parallel()
	for _, sql := range []string{
		`SELECT length(hex(zeroblob(900000000)))`,
		`SELECT printf('%*d', 900000000, 1)`,
		`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 40) SELECT length(group_concat(hex(zeroblob(100000000)))) FROM n`,
		`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT i, 'x' FROM n`,
		`SELECT zeroblob(2000000)`,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if _, err := Run(ctx, &shops{reads: map[string]int{}}, sql, Limits{Spaces: 10, Bytes: 1 << 20}); !errors.Is(err, ErrTooMuch) {
			t.Errorf("%s: %v", sql, err)
		}
		cancel()
	}
}

func TestRun_HasMemoryForWhatItMayRead(t *testing.T) {
	t.Parallel()
	if got, _ := ask(t, `SELECT length(hex(zeroblob(150000000)))`); got != "300000000" {
		t.Errorf("%s bytes", got)
	}
}

func TestRun_WritesNoFile(t *testing.T) {
	t.Setenv("TMPDIR", "/nonexistent")
	many := `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 100000)`
	for sql, want := range map[string]string{
		many + `SELECT count(*) FROM (SELECT DISTINCT hex(zeroblob(100))||i FROM n)`:                                   "100000",
		many + `SELECT substr(s, 201) FROM (SELECT hex(zeroblob(100))||i AS s FROM n) ORDER BY s LIMIT 2 OFFSET 99998`: "99998\n99999",
	} {
		if got, _ := ask(t, sql); got != want {
			t.Errorf("%s: %s", sql, got)
		}
	}
}

// endless has a space with receipts that do not end.
type endless struct {
	shops
	read int
}

func (s *endless) Spaces(context.Context) ([]string, error) { return []string{"shop"}, nil }

func (s *endless) Receipts(_ context.Context, space string) iter.Seq2[*history.Handling, error] {
	return func(yield func(*history.Handling, error) bool) {
		rc := &model.Receipt{Event: "e", Outcome: model.Failed, Error: strings.Repeat("x", 1000)}
		for s.read < 1_000_000 && yield(&history.Handling{Space: space, Tx: model.Tx{By: receipts.By("order"), Receipt: rc}}, nil) {
			s.read++
		}
	}
}

// What is too much of a single space is not read to its end.
func TestRun_StopsToReadASpaceThatHasTooMuch(t *testing.T) {
	t.Parallel()
	s := &endless{}
	if _, err := Run(t.Context(), s, `SELECT * FROM receipts`, Limits{Spaces: 10, Bytes: 1 << 20}); !errors.Is(err, ErrTooMuch) || s.read > 1500 {
		t.Errorf("%v, after %d receipts", err, s.read)
	}
}
