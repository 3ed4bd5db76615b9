package codec

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
)

type strictLine struct {
	SKU string `json:"sku"`
	N   int    `json:"n"`
}

type strictOrder struct {
	ID       string             `json:"id"`
	Lines    []strictLine       `json:"lines"`
	ByName   map[string]float64 `json:"byName,omitempty"`
	Parent   *strictOrder       `json:"parent"`
	Note     model.Value        `json:"note"`
	Any      any                `json:"any"`
	Paid     bool               `json:"paid,omitzero"`
	At       time.Time          `json:"at,omitzero"`
	Pairs    [2]int             `json:"pairs,omitzero"`
	internal int
}

type strictOdd struct {
	N int64 `json:"n,string"`
}

type strictOuter struct {
	strictLine
	Odd strictOdd `json:"odd,omitzero"`
}

func strictly[T any](v model.Value) string {
	if err := Strict[T]()(v); err != nil {
		return err.Error()
	}
	return ""
}

// What a decoder would drop or replace by zero is an error with its place.
func TestStrict_RefusesWhatWouldBeLost(t *testing.T) {
	order, line, outer := strictly[strictOrder], strictly[strictLine], strictly[strictOuter]
	_ = strictOrder{}.internal
	for _, c := range []struct {
		name  string
		check func(model.Value) string
		json  string // "" for an absent value
		want  string
	}{
		{"everything", order, `{"id":"a","lines":[{"sku":"x","n":1}],"byName":{"x":1.5},"parent":null,"note":null,"any":{"x":1},"paid":true,"at":"2026-01-01T00:00:00Z","pairs":[1,2]}`, ""},
		{"what may be missing is missing", order, `{"id":"a","lines":[]}`, ""},
		{"a list that is null", order, `{"id":"a","lines":null}`, ""},
		{"zero", line, `{"sku":"","n":0}`, ""},
		{"an unknown key", order, `{"id":"a","line":[],"lines":[]}`, `/line: there is no such field; did you mean "lines"? there is any, at, byName, id, lines, note, paid, pairs, parent`},
		{"a key that is misspelt", line, `{"skv":"x","n":1}`, `/skv: there is no such field; did you mean "sku"?`},
		{"a key of another case", line, `{"sku":"x","N":1}`, `/N: there is no such field; did you mean "n"?`},
		{"the last key is unknown", line, `{"n":1,"sku":"x","z":1}`, `/z: there is no such field; `},
		{"an unknown key in a list", order, `{"id":"a","lines":[{"sku":"x","n":1},{"sku":"x","n":1,"x":1}]}`, `/lines/1/x: there is no such field`},
		{"an unknown key behind a pointer", order, `{"id":"a","lines":[],"parent":{"id":"b","lines":[],"x":1}}`, `/parent/x: there is no such field`},
		{"a missing key", line, `{"sku":"x"}`, `/n: the field is missing`},
		{"a missing key in a list", order, `{"id":"a","lines":[{"n":1}]}`, `/lines/0/sku: the field is missing`},
		{"no key", line, `{}`, `/n: the field is missing`},
		{"null", line, `{"sku":"x","n":null}`, `/n: null is here; an integer is wanted`},
		{"null in a list", order, `{"id":"a","lines":[null]}`, `/lines/0: null is here; an object is wanted`},
		{"null in a map", order, `{"id":"a","lines":[],"byName":{"x":null}}`, `/byName/x: null is here; a number is wanted`},
		{"null where omitzero leaves out", order, `{"id":"a","lines":[],"paid":null}`, `/paid: null is here; true or false is wanted`},
		{"no time", order, `{"id":"a","lines":[],"at":null}`, `/at: null is here; a time is wanted`},
		{"null alone", line, `null`, `null is here; an object is wanted`},
		{"nothing", line, ``, `nothing is here; an object is wanted`},
		{"no number", strictly[int], ``, `nothing is here; an integer is wanted`},
		{"a null number", strictly[int], `null`, `null is here; an integer is wanted`},
		{"a zero number", strictly[int], `0`, ``},
		{"no string", strictly[string], ``, `nothing is here; a string is wanted`},
		{"no list", strictly[[]int], ``, `nothing is here; an array is wanted`},
		{"no map", strictly[map[string]int], ``, `nothing is here; an object is wanted`},
		{"a pointer to nothing", strictly[*strictLine], ``, ``},
		{"a pointer to null", strictly[*strictLine], `null`, ``},
		{"a pointer to something else", strictly[*strictLine], `{"sku":"x"}`, `/n: the field is missing`},
		{"no link", strictly[model.Link], ``, `nothing is here; a model.Link is wanted`},
		{"a value", strictly[model.Value], ``, ``},
		{"any", strictly[any], ``, ``},
		{"a type without fields", strictly[struct{}], ``, ``},
		{"null for a type without fields", strictly[struct{}], `null`, ``},
		{"a key for a type without fields", strictly[struct{}], `{"a":1}`, `/a: there is no such field; there are no fields`},
		{"an embedded struct", outer, `{"sku":"x","n":1}`, ``},
		{"an embedded struct that is not whole", outer, `{"sku":"x"}`, `/n: the field is missing`},
		{"unusual tags", outer, `{"sku":"x","n":1,"odd":{"n":"7"}}`, ``},
		{"an unknown key beside unusual tags", outer, `{"sku":"x","n":1,"odd":{"n":"7","m":1}}`, `/odd/m: unknown object member name`},
		{"a long key", line, `{"` + strings.Repeat("k", 5000) + `":1}`, `/` + strings.Repeat("k", 64) + `...: there is no such field`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v model.Value
			if c.json != "" {
				var err error
				if v, err = model.ParseValue([]byte(c.json)); err != nil {
					t.Fatal(err)
				}
			}
			if got := c.check(v); got != c.want && (c.want == "" || !strings.HasPrefix(got, c.want)) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// What a type encodes to is accepted: a typed client cannot send what a typed handler refuses.
func TestStrict_AcceptsWhatIsEncoded(t *testing.T) {
	accepts := func(t rapid.TB, typ reflect.Type, x reflect.Value) {
		c, err := converterOf(typ)
		if err != nil {
			t.Fatalf("%s: %v", typ, err)
		}
		v, err := c.encode(x, 0)
		if err != nil || c.decode(v, reflect.New(typ).Elem()) != nil {
			return // a type with methods may be one-way
		}
		if err := strictOf(typ)(v); err != nil {
			t.Fatalf("%s %#v is %s: %v", typ, x, v, err)
		}
	}
	for _, o := range []strictOrder{{}, {ID: "a", Lines: []strictLine{{}}, Parent: &strictOrder{}, Any: 1}} {
		accepts(t, reflect.TypeFor[strictOrder](), reflect.ValueOf(&o).Elem())
	}
	rapid.Check(t, func(t *rapid.T) {
		typ := genType(3).Draw(t, "type")
		accepts(t, typ, genGo(t, typ, 4))
	})
}
