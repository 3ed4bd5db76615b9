package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"unicode"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program"
	"github.com/settlehq/settle/query"
)

// queryCmd is `settle query`.
type queryCmd struct {
	connection
	SQL       string `arg:"" name:"sql" help:"A SELECT of SQLite. Tables: documents (space, document, value, revision, derived), receipts (space, stream, event, outcome, result, error, code, attempts, revision, stored, runtime) and spaces (space)."`
	Spaces    string `help:"Read only spaces with such names, for example airport-*." default:"*" placeholder:"PATTERN"`
	MaxSpaces int    `help:"How many spaces may be read." default:"100000"`
	MaxMiB    int64  `name:"max-mib" help:"How many MiB may be read, and answered." default:"512"`
	JSON      bool   `name:"json" help:"Print JSON, one object a line." xor:"form"`
	CSV       bool   `name:"csv" help:"Print CSV, with the names of the columns first." xor:"form"`
}

// Run answers a query about the documents and receipts of many spaces, read from the log.
func (c *queryCmd) Run(ctx context.Context, io streams) error {
	if err := c.check(); err != nil {
		return usage(err)
	}
	return c.use(ctx, io, need{}, func(b *bus.Bus, client *settle.Client) error {
		rows, err := query.Run(ctx, storedSpaces{b, client, c.Spaces}, c.SQL, query.Limits{Spaces: c.MaxSpaces, Bytes: c.MaxMiB << 20})
		switch {
		case errors.Is(err, query.ErrTooMuch):
			return fmt.Errorf("%w (--spaces), or raise --max-spaces or --max-mib", err)
		case errors.Is(err, query.ErrNotOne), errors.Is(err, query.ErrNotRead):
			return usage(err)
		case err != nil:
			return err
		case c.JSON:
			return printObjects(io, rows)
		case c.CSV:
			return printCSV(io, rows)
		}
		printRows(io, rows)
		return nil
	})
}

func (c *queryCmd) check() error {
	switch {
	case c.MaxSpaces < 1 || c.MaxMiB < 1:
		return errors.New("--max-spaces and --max-mib are at least 1")
	case c.MaxMiB > query.MostBytes>>20:
		return fmt.Errorf("--max-mib is at most %d: SQLite cannot have more memory", query.MostBytes>>20)
	case c.Spaces == program.All:
		return nil
	}
	return program.CheckSpaces(c.Spaces)
}

// storedSpaces has the spaces of a deployment with such names, as they are stored.
type storedSpaces struct {
	bus     *bus.Bus
	client  *settle.Client
	pattern string
}

func (s storedSpaces) Spaces(ctx context.Context) ([]string, error) {
	all, err := s.bus.Spaces(ctx)
	if err != nil && !errors.Is(err, model.ErrNoStream) {
		return nil, err
	}
	of := program.Rule{Spaces: s.pattern}
	names := make([]string, 0, len(all))
	for _, space := range all {
		if of.Matches(space) {
			names = append(names, space)
		}
	}
	return names, err
}

func (s storedSpaces) Contents(ctx context.Context, space string) (*history.Contents, error) {
	return history.ReadContents(ctx, s.bus, space)
}

func (s storedSpaces) Receipts(ctx context.Context, space string) iter.Seq2[*history.Handling, error] {
	return s.client.Space(space).Receipts(ctx, history.ReceiptFilter{})
}

// rowText returns a value of a row; null is empty.
func rowText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case []byte:
		return fmt.Sprintf("%x", v)
	}
	return fmt.Sprint(v)
}

// widest is how much of a value is shown in a table.
const widest = 80

func printRows(io streams, r *query.Rows) {
	lines := make([][]cell, len(r.Rows))
	for i, row := range r.Rows {
		for _, v := range row {
			_, text := v.(string)
			shown := "null"
			if v != nil {
				shown = clip(printable(rowText(v)), widest)
			}
			lines[i] = append(lines[i], cell{text: shown, right: !text && v != nil})
		}
	}
	s, _ := sheetFor(io.out)
	s.table(r.Columns, lines)
	fmt.Fprintln(io.err, display.Count(len(r.Rows), "row"))
}

// printable replaces what would break a table, or change a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}

func printCSV(io streams, r *query.Rows) error {
	w := csv.NewWriter(io.out)
	lines := [][]string{r.Columns}
	for _, row := range r.Rows {
		line := make([]string, len(row))
		for i, v := range row {
			line[i] = rowText(v)
		}
		lines = append(lines, line)
	}
	return w.WriteAll(lines)
}

// printObjects prints rows with the columns in their order. A text that is JSON of an object or an array is printed as such.
func printObjects(io streams, r *query.Rows) error {
	for _, row := range r.Rows {
		fields := make([]string, len(row))
		for i, v := range row {
			name, err := json.Marshal(r.Columns[i])
			if err != nil {
				return err
			}
			value, err := jsonOf(v)
			if err != nil {
				return err
			}
			fields[i] = string(name) + ":" + string(value)
		}
		if _, err := fmt.Fprintf(io.out, "{%s}\n", strings.Join(fields, ",")); err != nil {
			return err
		}
	}
	return nil
}

func jsonOf(v any) ([]byte, error) {
	if text, is := v.(string); is && (strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")) {
		if parsed, err := model.ParseValue([]byte(text)); err == nil {
			return parsed.AppendJSON(nil), nil
		}
	}
	if _, is := v.([]byte); is {
		v = rowText(v)
	}
	return json.Marshal(v)
}
