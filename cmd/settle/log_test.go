package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
)

// books is a document of a shelf.
type books struct {
	Count int64  `json:"count"`
	Note  string `json:"note"`
}

// shelf has a document that a handler writes, and one that is derived from it.
func shelf() *settle.Program {
	cell, double := settle.NewCell[books]("books"), settle.NewDerived[int64]("double")
	p := settle.NewProgram("shelf").
		Handle("add", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			by, _ := ev.Payload.AsInt()
			if by < 0 {
				return settle.Value{}, errors.New("books are not removed")
			}
			cell.Update(tx, func(b *books) { b.Count += by })
			tx.Send("library", "added", by)
			return settle.ValueOf(cell.Get(tx).Count)
		}).
		Handle("added", func(*settle.Tx, *settle.Event) (settle.Value, error) { return settle.Value{}, nil })
	double.Compute(p, func(v *settle.View) (int64, error) { return 2 * cell.Get(v).Count, nil })
	return p
}

// fillShelf sends events to the space s of a shelf, and observes what is derived.
func fillShelf(t *testing.T, client *settle.Client) {
	t.Helper()
	s := client.Space("s")
	for _, by := range []int{1, 2, -1} {
		if _, err := client.Call(t.Context(), settle.Outgoing{Space: "s", Stream: "add", ID: settle.ID(fmt.Sprint("add", by)), Payload: by}); err != nil {
			t.Fatal(err)
		}
	}
	if u, err := s.GetCurrent(t.Context(), "double"); err != nil || !u.Current {
		t.Fatalf("%+v, %v", u, err)
	}
}

// succeeds runs a command that succeeds, and returns its output.
func succeeds(t *testing.T, url string, args ...string) string {
	t.Helper()
	var out, errs strings.Builder
	if code := run(t.Context(), append(args, "--nats", url), &out, &errs); code != 0 {
		t.Fatalf("settle %v ends with %d: %s", args, code, &errs)
	}
	return out.String() + errs.String()
}

func TestLog_PrintsWhatCommitsHaveChanged(t *testing.T) {
	t.Parallel()
	url, client := deployed(t, shelf())
	fillShelf(t, client)
	text := succeeds(t, url, "log", "s")
	for _, want := range []string{"takes the space over", "event add", "add1  handled", "add-1  failed: books are not removed", "books", "computes double", "sends", "library/added"} {
		if !strings.Contains(unbroken(text), unbroken(want)) {
			t.Errorf("settle log does not print %q:\n%s", want, text)
		}
	}
	of := succeeds(t, url, "log", "s", "--document", "double")
	if !strings.Contains(of, "- -> 6") || strings.Contains(of, "books") {
		t.Errorf("the commits of a derived document:\n%s", of)
	}
	first := succeeds(t, url, "log", "s", "--limit", "1", "--before", "2")
	if !strings.Contains(first, "takes the space over") || strings.Contains(first, "older") {
		t.Errorf("the first commit:\n%s", first)
	}
	for _, line := range strings.Split(strings.TrimSpace(succeeds(t, url, "log", "s", "--json")), "\n") {
		var e history.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Revision == 0 {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestHistory_PrintsPastValuesAndTheirEvents(t *testing.T) {
	t.Parallel()
	url, client := deployed(t, shelf())
	fillShelf(t, client)
	text := unbroken(succeeds(t, url, "history", "s", "books", "count"))
	if !strings.HasPrefix(text, "REVISION TIME FROM TO BY EVENT") || strings.Count(text, "event add") != 2 || !strings.Contains(text, "3 event add") {
		t.Errorf("settle history prints\n%s", text)
	}
	for _, c := range []struct{ args, want string }{
		{"history s nosuch", "has never had a value"},
		{"history nosuch books", "there is no space nosuch"},
		{"history s books --limit 1001", "use 1 to 1000"},
		{"log s --follow --before 3", "use either"},
		{"log bad/name", "space"},
	} {
		var out, errs strings.Builder
		if code := run(t.Context(), append(strings.Fields(c.args), "--nats", url), &out, &errs); code == 0 || !strings.Contains(errs.String(), c.want) {
			t.Errorf("settle %s ends with %d: %s", c.args, code, &errs)
		}
	}
}

// Of two long values, the part is printed in which they differ.
func TestLog_LongValuesArePrintedFromTheirDifference(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200)
	for _, c := range []struct {
		from, to any
		want     string
	}{
		{1, 2, "1 -> 2"}, {long + "1", long + "2", `…xxxx1" -> …xxxx2"`}, {"a" + long, "b" + long, `"axxxxxxxxxxxxxxxxx… -> "bxxxxxxxxxxxxxxxxx…`}, {long, long + "äö", `…xxxx" -> …xxxxäö"`},
	} {
		p := &logPrinter{}
		if got := p.fromTo(&history.Place{From: model.MustOf(c.from), To: model.MustOf(c.to)}, 20); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
