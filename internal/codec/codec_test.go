package codec

import (
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
)

// agree compares a Codec with model.Of and Value.Decode: the values in both directions, and further
// decoded values.
func agree[T any](t *testing.T, values []T, texts ...string) {
	t.Helper()
	s, err := Of[T]()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range values {
		got, err := s.Encode(x)
		want, wantErr := model.Of(x)
		if (err == nil) != (wantErr == nil) || err == nil && !model.Equal(got, want) {
			t.Errorf("%T %v is %s, %v; model.Of makes it %s, %v", x, x, got, err, want, wantErr)
		}
		if err == nil {
			decodeAgrees(t, s, got)
		}
	}
	decodeAgrees(t, s, model.Value{})
	for _, text := range append(texts, `null`, `true`, `7`, `-1`, `0.5`, `1e300`, `300`, `4611686018427387904`, `18446744073709551615`, `"x"`, `[]`, `[1]`, `{}`, `{"a":1}`) {
		v, err := model.ParseValue([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		decodeAgrees(t, s, v)
	}
}

func decodeAgrees[T any](t *testing.T, s *Codec[T], v model.Value) {
	t.Helper()
	var want T
	got, err := s.Decode(v)
	wantErr := v.Decode(&want)
	if (err == nil) != (wantErr == nil) {
		t.Errorf("%s as %T: %v; Value.Decode says %v", v, got, err, wantErr)
	}
	if err == nil && !alike(reflect.ValueOf(&got).Elem(), reflect.ValueOf(&want).Elem()) {
		t.Errorf("%s as %T is %#v; Value.Decode makes it %#v", v, got, got, want)
	}
}

func TestCodec_EqualsModelOfAndValueDecodeForExamples(t *testing.T) {
	agree(t, []string{"", "x", "\xff"})
	agree(t, []airport{"RIX", "\xff"})
	agree(t, []bool{true, false})
	agree(t, []int{0, -1, math.MaxInt})
	agree(t, []int8{-128, 127}, `127`, `128`, `-128`, `-129`)
	agree(t, []int64{math.MinInt64, math.MaxInt64}, `9223372036854775808`)
	agree(t, []uint8{0, 255}, `255`, `256`)
	agree(t, []uint64{0, math.MaxUint64, 1 << 63})
	agree(t, []float64{0, 0.1, 1 << 62, 1 << 63, math.NaN(), math.Inf(-1)}, `1.7976931348623157e308`)
	agree(t, []float32{0, 0.1, 1 << 62, math.MaxFloat32}, `1e39`, `1.0000000596046448`, `1.000000059604644775390625`)
	agree(t, []model.Value{{}, model.Null(), model.Int(3)})
	agree(t, []model.Link{{Doc: "a"}, {}}, `{"$link":{"doc":"a"}}`, `{"$link":{"doc":"a","path":[]}}`)
	agree(t, []any{nil, 1, 1.5, float64(1 << 62), []any{float64(1 << 62)}, []float64{1 << 62}, leg{From: "RIX"}, &leg{}, make(chan int), level(2)})
	agree(t, []time.Time{{}, time.Unix(0, 0), time.Unix(1<<40, 0)}, `"2026-11-22T07:00:00Z"`, `"2026-11-22T7:00:00Z"`, `"2026-11-22"`)
	agree(t, []*int{nil, new(int)})
	agree(t, []**int{nil, new(*int)})
	agree(t, []*leg{nil, {}})
	agree(t, [][]int{nil, {}, {1, 2}}, `[null,1]`, `[0.5]`)
	agree(t, [][]float64{{1 << 62, 0.1}})
	agree(t, [][]byte{nil, {}, {1, 2}}, `"aGk="`, `"aGk"`, `"aG\nk="`)
	agree(t, [][2]int{{1, 2}}, `[1,2]`, `[1,2,3]`)
	agree(t, [][2]byte{{1, 2}}, `"aGk="`)
	agree(t, []map[string]int{nil, {}, {"b": 2, "a": 1}, {"\xff": 1}}, `{"a":null}`)
	agree(t, []map[airport]*leg{{"RIX": nil}}, `{"RIX":null,"ATL":{"delay":3}}`)
	agree(t, []map[int]string{{1: "a"}}, `{"1":"a"}`, `{"x":"a"}`)
	agree(t, []map[level]int{{2: 1}}, `{"iii":1}`)
	agree(t, []map[string]model.Value{{"a": {}}, {"a": model.Null()}})
	agree(t, []map[string]any{nil, {"a": float64(1 << 62)}})
	agree(t, []money{{150}}, `"150 EUR"`)
	agree(t, []*money{nil, {150}}, `"150 EUR"`)
	agree(t, []level{2})
	agree(t, []secret{{1}})
	agree(t, []inlined{{base: base{"a", "b"}, Extra: 2}}, `{"id":"x","Name":"y","Seen":2,"extra":3}`)
	agree(t, []shadowed{{base{"a", "b"}, 7}}, `{"id":3}`, `{"id":"x"}`)
	agree(t, []ambiguous{{base{"a", "b"}, Other{"c", "d"}}}, `{"Name":"x","More":"y","id":"z"}`)
	agree(t, []pointing{{}, {&Other{"a", "b"}, 1}}, `{"Name":"x","X":1}`)
	agree(t, []stringly{{7, 8}}, `{"n":"7"}`, `{"n":7}`)
	agree(t, []caseless{{7}}, `{"N":7}`)
	agree(t, []zeros{{}, {C: -273}, {E: ""}, {E: 0}, {P: new(time.Time)}}, `{"I":null}`, `{"I":1}`)
	agree(t, []struct{}{{}})
	agree(t, []tree{{}, {Kids: []tree{{}, {By: map[string]*tree{"a": nil, "b": {}}}}}}, `{"Kids":[{"Kids":[]}],"Up":{}}`)
	agree(t, []loop{nil, {nil, {}}}, `[[],[[]]]`)
	agree(t, []journey{{}, {ID: "a", Legs: []leg{{From: "RIX"}}, More: map[string]any{"k": 1}, Price: money{3}}},
		`{"id":"a","unknown":{"x":1},"legs":[{"from":"RIX","delay":3}],"raw":[1],"price":"3 EUR","deep":{"a":{"1":2}}}`)
}

// An object with far more keys than the struct has fields is searched and not walked.
func TestDecode_TakesFewKeysOutOfMany(t *testing.T) {
	m := map[string]int{"X": 1}
	for i := range 200 {
		m[strings.Repeat("k", i)] = i
	}
	s, err := Of[struct {
		A int
		X int
	}]()
	if err != nil {
		t.Fatal(err)
	}
	decodeAgrees(t, s, model.MustOf(m))
}

func TestDecode_SharesWithTheDocument(t *testing.T) {
	type doc struct {
		Name string      `json:"name"`
		Raw  model.Value `json:"raw"`
	}
	s, _ := Of[doc]()
	v := model.MustOf(map[string]any{"name": strings.Repeat("x", 1<<20), "raw": make([]any, 1000), "else": make([]any, 1000)})
	if n := testing.AllocsPerRun(10, func() { _, _ = s.Decode(v) }); n > 1 {
		t.Errorf("%v allocations, not the one for the struct", n)
	}
}

func TestEncode_ScalarsCostNoAllocation(t *testing.T) {
	i, _ := Of[int64]()
	b, _ := Of[bool]()
	if n := testing.AllocsPerRun(10, func() {
		v, _ := i.Encode(7)
		_, _ = i.Decode(v)
		v, _ = b.Encode(true)
		_, _ = b.Decode(v)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestEncode_ObjectsOfAStructShareTheirKeys(t *testing.T) {
	s, _ := Of[[]leg]()
	legs := make([]leg, 100)
	one := testing.AllocsPerRun(10, func() { _, _ = s.Encode(legs[:1]) })
	all := testing.AllocsPerRun(10, func() { _, _ = s.Encode(legs) })
	if each := (all - one) / 99; each > 2 {
		t.Errorf("an element costs %v allocations", each)
	}
}

func TestEncode_ACircleIsAnError(t *testing.T) {
	up := &tree{}
	up.Up = up
	m := map[string]any{}
	m["m"] = m
	around := loop{nil}
	around[0] = around
	for _, x := range []any{up, m, around} {
		c, err := converterOf(reflect.TypeOf(x))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.encode(reflect.ValueOf(x), 0); err == nil || !strings.Contains(err.Error(), "contain itself") {
			t.Errorf("%T: %.200v", x, err)
		}
	}
}

func TestEncode_RefusesWhatNobodyCouldReadBack(t *testing.T) {
	deep := model.Null()
	for range model.MaxDepth {
		deep = model.Array(deep)
	}
	s, _ := Of[struct{ V model.Value }]()
	if _, err := s.Encode(struct{ V model.Value }{deep}); err == nil {
		t.Error("nested deeper than MaxDepth")
	}
}

func TestOf_IsCompiledOnce(t *testing.T) {
	found := make([]*Codec[journey], 8)
	var all sync.WaitGroup
	for i := range found {
		all.Go(func() { found[i], _ = Of[journey]() })
	}
	all.Wait()
	for _, s := range found {
		if s == nil || s != found[0] {
			t.Fatal("the codecs of one type differ")
		}
	}
}
