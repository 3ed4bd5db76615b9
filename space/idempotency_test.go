package space

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/settlehq/settle/model"
)

func TestS07_DifferencesAreReportedByKey(t *testing.T) {
	for _, c := range []struct {
		name          string
		first, second string
		want          []string // place: first, second
	}{
		{"equal", `{"a":1,"b":[1]}`, `{"a":1,"b":[1]}`, nil},
		{"in the first only", `{"a":1,"b":2}`, `{"a":1}`, []string{"d/b: 2, absent"}},
		{"in the second only", `{"a":1}`, `{"a":1,"b":2}`, []string{"d/b: absent, 2"}},
		{"another value", `{"a":1,"b":2}`, `{"a":1,"b":3}`, []string{"d/b: 2, 3"}},
		{"deep", `{"a":{"x":1,"y":1}}`, `{"a":{"x":2,"z":1}}`, []string{"d/a/x: 1, 2", "d/a/y: 1, absent", "d/a/z: absent, 1"}},
		{"a whole document", `1`, `2`, []string{"d: 1, 2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := Violation{Node: "n", Differences: differences("d", mustParse(t, c.first), mustParse(t, c.second))}
			var got []string
			for _, d := range v.Differences {
				got = append(got, fmt.Sprintf("%s: %s, %s", d.Place, show(d.First), show(d.Second)))
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("differences %q, want %q", got, c.want)
			}
		})
	}
}

func mustParse(t *testing.T, json string) model.Value {
	t.Helper()
	v, err := model.ParseValue([]byte(json))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// repeated runs one event of a handler with CheckIdempotency, and returns the violations.
func repeated(t *testing.T, rehearsals int, handler func(tx *Tx, ev *model.Event) any) (*world, []Violation) {
	t.Helper()
	var found []Violation
	w := newWorld(t)
	h := w.owner("w1", newProgram(t).handle("do", handler).sum("double", "n").Program, func(c *Config) {
		c.CheckIdempotency, c.Rehearsals = true, rehearsals
		c.Trace.Violated = func(v Violation) { found = append(found, v) }
	})
	w.send(home, "do", "e1", nil)
	h.run()
	return w, found
}

// A handler may be called again for the same event, and must then do the same.
func TestCheckIdempotency_FindsHandlersThatDependOnChance(t *testing.T) {
	calls := 0
	next := func() int { calls++; return calls }
	for name, c := range map[string]struct {
		handler func(tx *Tx, ev *model.Event) any
		want    string // places that differ
	}{
		"result":        {func(*Tx, *model.Event) any { return next() }, "result"},
		"write":         {func(tx *Tx, _ *model.Event) any { tx.Set("n", next()); return nil }, "n"},
		"another place": {func(tx *Tx, _ *model.Event) any { tx.Set(fmt.Sprint("d", next()%2), 1); return nil }, "d1, d0"},
		"payload":       {func(tx *Tx, _ *model.Event) any { tx.Send("other", "do", next()); return nil }, "send 1 to other/do"},
		"target":        {func(tx *Tx, _ *model.Event) any { tx.Send(fmt.Sprint("s", next()%2), "do", nil); return nil }, "send 1 to s1/do, send 1 to s0/do"},
		"number of them": {func(tx *Tx, _ *model.Event) any {
			for range next() {
				tx.Send("other", "do", nil)
			}
			return nil
		}, "send 2 to other/do"},
		"error": {func(*Tx, *model.Event) any {
			if next() > 1 {
				return fmt.Errorf("not again")
			}
			return nil
		}, "result"},
	} {
		t.Run(name, func(t *testing.T) {
			calls = 0
			w, found := repeated(t, 0, c.handler)
			if len(found) != 1 || found[0].Stream != "do" || found[0].Event != "e1" || places(found[0]) != c.want {
				t.Errorf("found %v, want one of e1 at %s", found, c.want)
			}
			if got := w.receipts(home); !slices.Equal(got, []string{"e1 handled"}) {
				t.Errorf("receipts %v: repeating a handler must change nothing", got)
			}
		})
	}
}

func places(v Violation) string {
	var out []string
	for _, d := range v.Differences {
		out = append(out, d.Place)
	}
	return strings.Join(out, ", ")
}

func TestCheckIdempotency_AcceptsHandlersThatDoTheSame(t *testing.T) {
	w, found := repeated(t, 0, func(tx *Tx, ev *model.Event) any {
		tx.Set("n", num(tx.Get("n"))+1)
		tx.Set("log", num(tx.Get("double")), ev.ID)
		tx.Send("other", "do", tx.Get("n"))
		return tx.Get("n")
	})
	if len(found) != 0 {
		t.Errorf("found %v", found)
	}
	if n := w.replica(home).Doc("n").Value.String(); n != "1" {
		t.Errorf("n is %s: the repetition was kept", n)
	}
}

// If the result is one of two at random, a repetition equals the first run half of the time.
func TestRehearsals_FindWhatOneRepetitionMisses(t *testing.T) {
	draws := []int{1, 1, 1, 2, 2}
	for rehearsals, want := range map[int]int{1: 0, 2: 0, 3: 1} {
		n := 0
		_, found := repeated(t, rehearsals, func(*Tx, *model.Event) any { n++; return draws[n-1] })
		if len(found) != want {
			t.Errorf("with %d rehearsals %d violations were found, want %d", rehearsals, len(found), want)
		}
	}
}
