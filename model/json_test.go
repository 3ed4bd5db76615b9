package model

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

func TestParseValue_Refuses(t *testing.T) {
	deep := strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1)
	for _, c := range []struct{ text, want string }{
		{``, "byte 0: unexpected EOF"},
		{`  `, "byte 2: unexpected EOF"},
		{`{"a":`, `byte 5, at "/a": unexpected EOF`},
		{`[1,2`, "byte 4"},
		{`[1,]`, "byte 2"},
		{`{"a":1,}`, "byte 6"},
		{`{a:1}`, "byte 1"},
		{`{1:1}`, "byte 1"},
		{`[1}`, "byte 2"},
		{`]`, "byte 0"},
		{`tru`, "byte 3"},
		{`01`, "byte 1"},
		{`1 2`, "byte 1: more after the end of the value"},
		{`{} x`, "byte 2: more after the end of the value"},
		{`1,`, "byte 1: more after the end of the value"},
		{`{"a":1,"b":2,"a":3}`, `byte 13, at "/a": duplicate object member name`},
		{`[{"a":1,"\u0061":3}]`, `byte 8, at "/0/a": duplicate object member name`},
		{"\"a\xffb\"", "byte 2: invalid UTF-8"},
		{"{\"\xff\":1}", "byte 2: invalid UTF-8"},
		{`"\ud800"`, "byte 1"},
		{`"\x"`, "byte 1"},
		{"\"\n\"", "byte 1"},
		{`[1e999]`, `byte 1, at "/0": number out of range`},
		{deep, "byte 1000: nested deeper than 1000"},
	} {
		v, err := ParseValue([]byte(c.text))
		if err == nil {
			t.Errorf("%.40q was read as %s", c.text, v)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: got %v, want %s", c.text, err, c.want)
		}
	}
	if _, err := ParseValue([]byte(deep[1 : len(deep)-1])); err != nil {
		t.Errorf("nesting of %d: %v", MaxDepth, err)
	}
}

// Reusing the buffer of the input must not change the value.
func TestParseValue_KeepsNothingOfItsInput(t *testing.T) {
	data := []byte(`{"key":"text","esc\n":["\u00e9",1234567]}`)
	v, err := ParseValue(data)
	if err != nil {
		t.Fatal(err)
	}
	want := v.String()
	for i := range data {
		data[i] = 'x'
	}
	if v.String() != want {
		t.Errorf("%s became %s", want, v)
	}
}

// Pooled parsers only read what they share.
func TestParseValue_OnManyGoroutines(t *testing.T) {
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 200 {
				text := fmt.Sprintf(`{"g":%d,"k%d":{"i":[%d]},"z":"\n"}`, g, i%3, i)
				v, err := ParseValue([]byte(text))
				if err != nil || v.String() != text {
					t.Errorf("%s was read as %s, %v", text, v, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestParse_SharesKeySets(t *testing.T) {
	v := parse(t, `[{"gate":1,"stand":2},{"stand":3,"gate":4}]`)
	a, _ := v.Index(0).members()
	b, _ := v.Index(1).members()
	if &a[0] != &b[0] {
		t.Error("two objects of the same keys have two key slices")
	}
}

func TestJSON_AgreesWithEncodingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := genValue(4).Draw(t, "v")
		text := v.AppendJSON(nil)

		std, err := oracleParse(text)
		if err != nil {
			t.Fatalf("encoding/json refuses %s: %v", text, err)
		}
		if !oracleEqual(std, oracleOf(v)) {
			t.Fatalf("encoding/json reads %s differently", text)
		}

		// The other way round: whatever encoding/json writes, in all its spellings.
		indented, err := stdjson.MarshalIndent(stdjson.RawMessage(text), "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range [][]byte{text, indented, backwards(v)} {
			back, err := ParseValue(other)
			if err != nil {
				t.Fatalf("%s: %v", other, err)
			}
			wellFormed(t, back)
			if !Equal(v, back) {
				t.Fatalf("%s came back as %s", v, back)
			}
			if again := back.AppendJSON(nil); !bytes.Equal(text, again) {
				t.Fatalf("%s is written as %s", text, again)
			}
		}
	})
}

// backwards writes v with the keys of every object in reverse order.
func backwards(v Value) []byte {
	var parts []string
	switch v.Kind() {
	case KindArray:
		for e := range v.Elements() {
			parts = append(parts, string(backwards(e)))
		}
		return []byte("[" + strings.Join(parts, " , ") + "]")
	case KindObject:
		for k, x := range v.All() {
			parts = append(parts, String(k).String()+" : "+string(backwards(x)))
		}
		slices.Reverse(parts)
		return []byte("{" + strings.Join(parts, "\n,") + "}")
	}
	return v.AppendJSON(nil)
}

func TestJSON_ScalarsAreWrittenAsEncodingJSONDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float64().Draw(t, "f")
		want, _ := stdjson.Marshal(f)
		if v := Float(f); v.Kind() == KindFloat && v.String() != string(want) {
			t.Fatalf("%v: got %s, want %s", f, v, want)
		}
		s := rapid.String().Filter(isUTF8).Draw(t, "s")
		var buf bytes.Buffer
		enc := stdjson.NewEncoder(&buf)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(s)
		// encoding/json escapes these two for JavaScript.
		text := strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(strings.TrimSuffix(buf.String(), "\n"))
		if !strings.Contains(s, `\u202`) && String(s).String() != text {
			t.Fatalf("%q: got %s, want %s", s, String(s), text)
		}
	})
}

// In a struct, through either package, with absent fields left out.
func TestJSON_InStructs(t *testing.T) {
	type doc struct {
		A Value            `json:"a,omitzero"`
		B Value            `json:"b,omitzero"`
		C []Value          `json:"c,omitzero"`
		D map[string]Value `json:"d,omitzero"`
		E *Value           `json:"e"`
	}
	in := doc{A: Object(F("<k>", "<v>"), F("n", 1)), C: []Value{Int(1), {}, Null()}, D: map[string]Value{"x": Float(0.5)}}
	const want = `{"a":{"<k>":"<v>","n":1},"c":[1,null,null],"d":{"x":0.5},"e":null}`
	for name, codec := range map[string]struct {
		marshal   func(any) ([]byte, error)
		unmarshal func([]byte, any) error
	}{
		"v1": {stdjson.Marshal, stdjson.Unmarshal},
		"v2": {func(x any) ([]byte, error) { return json.Marshal(x) }, func(b []byte, x any) error { return json.Unmarshal(b, x) }},
	} {
		data, err := codec.marshal(in)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(data)); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		var out doc
		if err := codec.unmarshal(data, &out); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !Equal(out.A, in.A) || !out.B.IsAbsent() || len(out.C) != 3 || !out.C[1].IsNull() || !Equal(out.D["x"], in.D["x"]) || out.E != nil {
			t.Errorf("%s: got %+v", name, out)
		}
		var v Value
		if err := codec.unmarshal([]byte(` null `), &v); err != nil || !v.IsNull() {
			t.Errorf("%s: null was read as %s, %v", name, v, err)
		}
		kept := Int(1)
		if err := codec.unmarshal([]byte(`[1,{"a":1,"a":2}]`), &kept); err == nil || !Equal(kept, Int(1)) {
			t.Errorf("%s: duplicate key gave %s, %v", name, kept, err)
		}
	}
}

// A lenient decoder must not produce a text that a Value cannot contain.
func TestUnmarshalJSONFrom_LenientDecoder(t *testing.T) {
	var v Value
	err := json.Unmarshal([]byte(`{"a":1,"a":2}`), &v, jsontext.AllowDuplicateNames(true))
	if err == nil || !v.IsAbsent() {
		t.Errorf("duplicate names gave %s, %v", v, err)
	}
	if err := json.Unmarshal([]byte("{\"\xff\":\"a\xff\\n\"}"), &v, jsontext.AllowInvalidUTF8(true)); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, v)
	if v.String() != "{\"\uFFFD\":\"a\uFFFD\\n\"}" {
		t.Errorf("got %s", v)
	}
	if err := json.Unmarshal([]byte("{\"\xff\":1,\"\xfe\":2}"), &v, jsontext.AllowInvalidUTF8(true)); err == nil {
		t.Errorf("two keys that become one gave %s", v)
	}
}

func TestMarshal_RefusesWhatParseValueWould(t *testing.T) {
	v := Null()
	for range MaxDepth + 1 {
		v = Array(v)
	}
	if _, err := json.Marshal(v); err == nil {
		t.Error("v2 marshalled it")
	}
	if _, err := stdjson.Marshal(v); err == nil {
		t.Error("v1 marshalled it")
	}
	if _, err := json.Marshal(v.Index(0)); err != nil {
		t.Errorf("the limit itself: %v", err)
	}
}

func TestOf(t *testing.T) {
	type inner struct {
		Gate string `json:"gate"`
		Note string `json:"note,omitzero"`
	}
	value, number := Int(5), 5
	for _, c := range []struct {
		x    any
		want string
	}{
		{nil, `null`},
		{true, `true`},
		{"s", `"s"`},
		{int8(-3), `-3`},
		{uint(3), `3`},
		{uint64(math.MaxUint64), `18446744073709552000`},
		{uint64(math.MaxInt64), `9223372036854775807`},
		{int64(math.MinInt64), `-9223372036854775808`},
		{float32(0.5), `0.5`},
		{2.0, `2`},
		{value, `5`},
		{&value, `5`},
		{&number, `5`},
		{(*Value)(nil), `null`},
		{Value{}, `absent`},
		{[]any{1, nil, Value{}, "x"}, `[1,null,null,"x"]`},
		{[]string{"b", "a"}, `["b","a"]`},
		{[]int{1, 2}, `[1,2]`},
		{map[string]any{"b": 1, "a": []any{}, "c": Value{}}, `{"a":[],"b":1}`},
		{map[string]Value{"b": Int(1), "c": {}}, `{"b":1}`},
		{map[string]int{"b": 1}, `{"b":1}`},
		{inner{Gate: "A1"}, `{"gate":"A1"}`},
		{[]any{&inner{"A1", "late"}}, `[{"gate":"A1","note":"late"}]`},
		{stdjson.RawMessage(`{"b":1,"a":2}`), `{"a":2,"b":1}`},
		{jsontext.Value(`[1.0]`), `[1]`},
		{Link{Doc: "d"}, `{"$link":{"doc":"d"}}`},
		{&Link{Doc: "d"}, `{"$link":{"doc":"d"}}`},
		{[]Link{{Space: "s", Doc: "d"}}, `[{"$link":{"doc":"d","space":"s"}}]`},
	} {
		v, err := Of(c.x)
		if err != nil || v.String() != c.want {
			t.Errorf("Of(%#v) = %s, %v; want %s", c.x, v, err, c.want)
			continue
		}
		if !v.IsAbsent() {
			wellFormed(t, v)
		}
	}
}

func TestOf_Refuses(t *testing.T) {
	loop := map[string]any{}
	loop["loop"] = []any{loop}
	for _, c := range []struct {
		x    any
		want string
	}{
		{math.NaN(), "NaN is not a JSON number"},
		{[]any{1, math.Inf(1)}, "[1]: +Inf is not a JSON number"},
		{map[string]any{"a": "\xff"}, `["a"]: string "\xff": invalid UTF-8`},
		{map[string]any{"\xff": 1}, `key "\xff": invalid UTF-8`},
		{make(chan int), "convert chan int"},
		{jsontext.Value(`{"a":1,"a":2}`), "duplicate"},
		{loop, "nested deeper than 1000"},
		{[]any{Link{}}, `[0]: link: document "": is empty`},
		{Link{Doc: "d", Space: "a b"}, `link: space "a b": character ' '`},
		{Link{Doc: "d", Path: Path{"\xff"}}, "invalid UTF-8"},
		{[]Link{{Doc: "a/b"}}, `marshal link: document "a/b"`},
	} {
		v, err := Of(c.x)
		if err == nil || !v.IsAbsent() {
			t.Errorf("Of(%T) = %s", c.x, v)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("Of(%T): got %.200v, want %s", c.x, err, c.want)
		}
	}
	deep := Null()
	for range MaxDepth {
		deep = Array(deep)
	}
	if _, err := Of(deep); err != nil {
		t.Errorf("the limit itself: %v", err)
	}
	if _, err := Of([]any{deep}); err == nil {
		t.Error("a level too many was accepted")
	}
	defer func() {
		if r := fmt.Sprint(recover()); !strings.Contains(r, "convert float64: NaN") {
			t.Errorf("MustOf panicked with %s", r)
		}
	}()
	MustOf(math.NaN())
}

func TestDecode(t *testing.T) {
	v := Object(F("gate", "A1"), F("seats", []int{1, 2}))
	var into struct {
		Gate  string `json:"gate"`
		Seats []int  `json:"seats"`
	}
	if err := v.Decode(&into); err != nil || into.Gate != "A1" || len(into.Seats) != 2 {
		t.Errorf("got %+v, %v", into, err)
	}
	if err := v.Get("none").Decode(&into); err != nil || into.Gate != "A1" {
		t.Errorf("absent changed it to %+v, %v", into, err)
	}
	var n int
	if err := v.Get("gate").Decode(&n); err == nil {
		t.Error("a string was decoded into an int")
	}
	var x Value
	if err := v.Decode(&x); err != nil || !same(x, v) {
		t.Errorf("a Value became %s, %v", x, err)
	}
}

// What ParseValue accepts, encoding/json accepts and reads the same way, and its encoding parses to the same
// bytes again. What it refuses, encoding/json refuses, too, except where ParseValue is deliberately stricter.
func FuzzParseValue(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,-0,1.5e3,12345678901234567890,"\ud83d\ude00\u0000"],"b":{"c":null}}`,
		` [ true , false ] `, `"\u00e9"`, `{"a":1,"a":2}`, `1e999`, `"\ud800"`, "\"\xff\"",
		`{"b":1,"a":{}}`, `[[[]]]`, `-`, `{}{}`, `9223372036854775808`, `0.1e-400`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) { agreesOnParsing(t, data) })
}

// The same with texts that are almost JSON, which random bytes rarely are.
func TestParseValue_AgreesWithEncodingJSONOnBrokenText(t *testing.T) {
	splinters := []string{
		`{`, `}`, `[`, `]`, `,`, `:`, `"`, `\`, `\u`, `\ud83d`, `\udc00`, "\xff", "\x00", " ", "\n",
		`-`, `0`, `.`, `e`, `e+99`, `1e999`, `9223372036854775808`, `null`, `tru`, `"a":1,`, `""`,
	}
	rapid.Check(t, func(t *rapid.T) {
		text := backwards(genValue(3).Draw(t, "v"))
		for n := rapid.IntRange(1, 3).Draw(t, "breaks"); n > 0; n-- {
			from := rapid.IntRange(0, len(text)).Draw(t, "from")
			to := min(len(text), from+rapid.IntRange(0, 3).Draw(t, "cut"))
			splinter := rapid.SampledFrom(append(splinters, "")).Draw(t, "splinter")
			text = slices.Concat(text[:from], []byte(splinter), text[to:])
		}
		agreesOnParsing(t, text)
	})
}

func agreesOnParsing(t rapid.TB, data []byte) {
	want, stdErr := oracleParse(data)
	v, err := ParseValue(data)
	if err != nil {
		if !strings.HasPrefix(err.Error(), "parse JSON: byte ") {
			t.Fatalf("%q: error without an offset: %v", data, err)
		}
		if stdErr == nil && !asked(err) {
			t.Fatalf("%q: encoding/json accepts it, but %v", data, err)
		}
		return
	}
	if stdErr != nil {
		t.Fatalf("%q: encoding/json refuses it: %v", data, stdErr)
	}
	wellFormed(t, v)
	if !oracleEqual(oracleOf(v), want) {
		t.Fatalf("%q was read as %s", data, v)
	}
	text := v.AppendJSON(nil)
	again, err := ParseValue(text)
	if err != nil || !Equal(v, again) || !bytes.Equal(again.AppendJSON(nil), text) {
		t.Fatalf("%s came back as %s, %v", text, again, err)
	}
}

// asked reports whether err comes from a deliberately stricter rule.
func asked(err error) bool {
	for _, reason := range []string{"duplicate object member name", "UTF-8", "surrogate", "nested deeper"} {
		if strings.Contains(err.Error(), reason) {
			return true
		}
	}
	return false
}
