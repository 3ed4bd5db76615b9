package runs

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
)

// find returns the IDs of the runs that a filter selects, over all its pages.
func (w *world) find(f Filter) string {
	w.Helper()
	var ids []string
	for {
		p, err := Find(&f, func(doc string) (model.Value, error) { return w.s.Value(doc), nil })
		if err != nil {
			w.Fatal(err)
		}
		for _, s := range p.Runs {
			ids = append(ids, s.ID)
		}
		if f.After = p.Next; f.After == "" {
			return strings.Join(ids, " ")
		}
		ids = append(ids, "|")
	}
}

func TestFind_SelectsRunsTheNewestFirst(t *testing.T) {
	t.Parallel()
	restarts(t, func(t *testing.T, restart bool) {
		w, s := unstable(t, restart, "    if n == 0: return 0\n    x = shaky(n)\n    return x")
		start := func(id, args, attributes string) {
			w.operate(StreamStart, fmt.Sprintf(`{"workflow":"w","run":%q,"args":%s,"attributes":%s}`, id, args, attributes))
		}
		begun := w.Now().UnixMilli()
		start("a", `{"n":0}`, `{"customer":"c7","total":5}`)
		w.advance(time.Second)
		s.failures = 1
		start("b", `{"n":1}`, `{"customer":"c7","vip":true}`)
		w.advance(time.Second)
		start("c", `{"n":2}`, `{}`)
		start("d", `{"n":0}`, `null`)
		start("e", `{"n":1}`, `{"customer":"c8","total":5}`)
		if restart {
			w.begin()
		}
		of := func(key string, v model.Value) map[string]model.Value { return map[string]model.Value{key: v} }
		for _, c := range []struct {
			filter Filter
			want   string
		}{
			{Filter{}, "c d e b a"},
			{Filter{Limit: 2}, "c d | e b | a"},
			{Filter{Limit: 5}, "c d e b a"},
			{Filter{State: Failed}, "b"},
			{Filter{Workflow: "w", State: Done, Limit: 3}, "c d e | a"},
			{Filter{Workflow: "x"}, ""},
			{Filter{Since: begun + 1000}, "c d e b"},
			{Filter{Before: begun + 1000}, "a"},
			{Filter{Attributes: of("customer", model.String("c7"))}, "b a"},
			{Filter{Attributes: of("total", model.Int(5))}, "e a"},
			{Filter{Attributes: of("total", model.String("5"))}, ""},
			{Filter{Attributes: of("vip", model.Bool(true)), State: Done}, ""},
			{Filter{Attributes: of("none", model.String("x"))}, ""},
		} {
			if got := w.find(c.filter); got != c.want {
				t.Errorf("%+v: %s, want %s", c.filter, got, c.want)
			}
		}
		if got := w.s.Value(Doc("a")).Get("attributes").String(); got != `{"customer":"c7","total":5}` {
			t.Error(got)
		}
		w.clean()
	})
	for _, f := range []Filter{{Limit: -1}, {Limit: MaxFound + 1}, {After: "x"}, {After: "5"}, {After: "5.a b"}} {
		if _, err := Find(&f, nil); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

func TestAttributes_AreFewScalars(t *testing.T) {
	t.Parallel()
	w := small(t, "    return 1")
	many := "{"
	for i := range MaxAttributes + 1 {
		many += fmt.Sprintf(`"k%d":1,`, i)
	}
	for attributes, words := range map[string]string{
		`[1]`:                               `such as {"customer": "c7"}, not array`,
		`{"a b":1}`:                         `attribute "a b"`,
		`{"a":{}}`:                          "attribute a must be a text, a number or a boolean, not object",
		`{"a":null}`:                        "not null",
		strings.TrimSuffix(many, ",") + "}": "the run has 17 attributes; at most 16",
		`{"a":"` + strings.Repeat("x", MaxAttributeBytes) + `"}`: "the attributes have 520 bytes; at most 512",
	} {
		w.refused(Invalid, words, StreamStart, `{"workflow":"w","run":"r","attributes":`+attributes+`}`)
	}
	if !w.s.Value(Index).Get("r").IsAbsent() {
		t.Error("a refused start has left a run")
	}
	w.clean()
}

// Attributes go with their run, and those of as many runs as are possible fit into their documents.
func TestAttributes_GoWithTheirRun(t *testing.T) {
	t.Parallel()
	w, _ := unstable(t, false, "    return 1")
	size := 0
	for i := range maxEnded + 20 {
		id := fmt.Sprintf("r%039d", i)
		w.send(StreamStart, "", fmt.Sprintf(`{"workflow":"w","run":%q,"attributes":{"k":%q}}`, id, strings.Repeat("x", MaxAttributeBytes-8)))
	}
	runs := 0
	for _, doc := range AttributeDocs() {
		v := w.s.Value(doc)
		runs += v.Len()
		size = max(size, len(v.String()))
	}
	if runs != maxEnded || w.s.Value(Index).Len() != maxEnded {
		t.Errorf("%d runs have attributes, of %d", runs, w.s.Value(Index).Len())
	}
	if most := 508 << 10; size*maxRuns/maxEnded > most {
		t.Errorf("a document has %d bytes with %d runs; with %d, it would be too large", size, maxEnded, maxRuns)
	}
	w.clean()
}
