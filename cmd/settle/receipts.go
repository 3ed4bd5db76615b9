package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// receiptsCmd is `settle receipts`.
type receiptsCmd struct {
	connection
	Space   string `arg:"" help:"A space."`
	Last    int    `short:"n" help:"Number of receipts to list, the newest ones; 0 for all." default:"20"`
	Stream  string `help:"Only events of this stream."`
	Outcome string `help:"Only events with this outcome: handled, rejected, failed, refused, cancelled or expired."`
	Follow  bool   `short:"f" help:"Print new receipts, until interrupted."`
	Full    bool   `help:"Print results and errors in full."`
	JSON    bool   `name:"json" help:"Print JSON, one object a line, with all fields."`
}

// Run prints the receipts of a space, newest last.
func (c *receiptsCmd) Run(ctx context.Context, io streams) error {
	filter := history.ReceiptFilter{Stream: c.Stream, Outcome: model.Outcome(c.Outcome), Last: c.Last, Follow: c.Follow}
	if err := filter.Check(c.Space); err != nil {
		return usage(err)
	}
	return c.use(ctx, io, ofSpaces(c.Space), func(_ *bus.Bus, client *settle.Client) error {
		s, width := sheetFor(io.out)
		out := receiptPrinter{w: io.out, json: c.JSON, full: c.Full, sheet: s, narrow: width < wide}
		for h, err := range client.Space(c.Space).Receipts(ctx, filter) {
			if err != nil && errors.Is(err, context.Canceled) {
				return nil // interrupted, which is the normal end
			}
			if err == nil {
				err = out.print(h)
			}
			if err != nil {
				return err
			}
		}
		if out.printed == 0 {
			fmt.Fprintf(io.err, "space %s has no receipts%s: check the names (capitals count). Receipts are written when events are handled, and are kept as long as the log\n", c.Space, c.matching())
		}
		return nil
	})
}

// matching describes the filter.
func (c *receiptsCmd) matching() (text string) {
	if c.Stream != "" {
		text += " --stream " + c.Stream
	}
	if c.Outcome != "" {
		text += " --outcome " + c.Outcome
	}
	if text == "" {
		return ""
	}
	return " that match" + text
}

// wide is the terminal width from which a receipt fits on one line.
const wide = 120

// receiptPrinter prints receipts in columns or as JSON.
type receiptPrinter struct {
	w       io.Writer
	sheet   sheet
	json    bool
	full    bool // results and errors are not cut short
	narrow  bool // results and errors are put below
	printed int
	widths  [receiptColumns]int
}

const receiptColumns = 6

// leastWidths are the initial widths of the columns, so that most receipts are aligned.
var leastWidths = [receiptColumns]int{6, 19, 12, 32, 9, 0}

// leastNarrow are the initial widths on a narrow terminal.
var leastNarrow = [receiptColumns]int{6, 8, 8, 32, 7, 0}

func (p *receiptPrinter) print(h *history.Handling) error {
	if p.json {
		p.printed++
		return printJSON(p.w, h)
	}
	if p.printed == 0 {
		heading := [receiptColumns]string{"LOG", "TIME", "STREAM", "EVENT", "OUTCOME", "RESULT"}
		if p.widths = leastWidths; p.narrow {
			p.widths, heading[receiptColumns-1] = leastNarrow, ""
		}
		p.line(heading, faint)
	}
	p.printed++
	rc := h.Tx.Receipt
	p.line([receiptColumns]string{
		fmt.Sprint(h.Seq), p.sheet.when(h.Stored), h.Stream(), rc.Event, string(rc.Outcome), receiptText(h, p.full),
	}, "")
	return nil
}

// line prints cells in a colour, in columns that grow with their contents.
func (p *receiptPrinter) line(cells [receiptColumns]string, code string) {
	var b strings.Builder
	for i, cell := range cells[:receiptColumns-1] {
		p.widths[i] = max(p.widths[i], utf8.RuneCountInString(cell))
		fmt.Fprintf(&b, "%-*s  ", p.widths[i], cell)
	}
	last := cells[receiptColumns-1]
	if p.narrow {
		fmt.Fprintln(p.w, p.sheet.paint(code, strings.TrimRight(b.String(), " ")))
		b.Reset()
		if last == "" {
			return
		}
		fmt.Fprintf(&b, "%-*s  ", p.widths[0], "")
	}
	fmt.Fprintln(p.w, p.sheet.paint(code, strings.TrimRight(b.String()+last, " ")))
}

// receiptText returns the result or the error of the event, cut short unless full is set.
func receiptText(h *history.Handling, full bool) string {
	rc := h.Tx.Receipt
	text := receipts.Reason(rc)
	if rc.Outcome == model.Handled {
		text = ""
		if !rc.Result.IsAbsent() {
			text = rc.Result.String()
		}
	}
	if !full {
		text = withoutCalls(text)
	}
	if text = unbroken(text); !full {
		text = clip(text, longest)
	}
	if rc.Attempts > 1 {
		text += fmt.Sprintf("  (%d attempts)", rc.Attempts)
	}
	switch n := len(h.Tx.Sends); {
	case n == 1:
		text += fmt.Sprintf("  -> %s/%s", h.Tx.Sends[0].To, h.Tx.Sends[0].Stream)
	case n > 1:
		text += fmt.Sprintf("  -> %d events", n)
	}
	return strings.TrimSpace(text)
}

// ending is how an event has ended, in the members of the answers over HTTP (docs/problems.md). detail is why the event was not handled; code and
// data are those of a rejection.
type ending struct {
	Outcome model.Outcome `json:"outcome"`
	Result  model.Value   `json:"result,omitzero"`
	Detail  string        `json:"detail,omitzero"`
	Code    string        `json:"code,omitzero"`
	Data    model.Value   `json:"data,omitzero"`
}

func endingOf(rc *model.Receipt) ending {
	e := ending{Outcome: rc.Outcome, Result: rc.Result, Detail: rc.Error, Code: rc.Code}
	if rc.Outcome == model.Rejected {
		e.Result, e.Data = e.Data, e.Result
	}
	return e
}

// longest is the largest part of a result or an error on a line.
const longest = 72

func printJSON(w io.Writer, h *history.Handling) error {
	rc := h.Tx.Receipt
	type sent struct {
		ID     string `json:"id"`
		To     string `json:"to"`
		Stream string `json:"stream"`
	}
	sends := make([]sent, len(h.Tx.Sends))
	for i, s := range h.Tx.Sends {
		sends[i] = sent{s.ID, s.To, s.Stream}
	}
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	return out.Encode(struct {
		Space  string `json:"space"`
		Stream string `json:"stream"`
		Event  string `json:"event"`
		ending
		Attempts int       `json:"attempts"`
		Sends    []sent    `json:"sends,omitempty"`
		Log      uint64    `json:"log"`
		Time     time.Time `json:"time"`
		Lane     uint64    `json:"lane,omitzero"`
		Tx       string    `json:"transaction"`
		Runtime  string    `json:"runtime"`
	}{h.Space, h.Stream(), rc.Event, endingOf(rc), max(rc.Attempts, 1), sends, h.Seq, h.Stored, rc.Lane, h.ID.String(), h.Runtime})
}
