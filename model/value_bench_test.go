package model

import (
	"fmt"
	"testing"

	"github.com/go-json-experiment/json"
)

// benchDoc returns a document of about 1 KB: a dozen small objects at depth 2 and 3.
func benchDoc(tb testing.TB) Value {
	fields := []Field{
		F("airport", "RIX"), F("updated", 1735689600123), F("load", 0.8125), F("open", true),
		F("tags", []string{"day", "summer"}),
	}
	for i := range 11 {
		fields = append(fields, F(fmt.Sprintf("flight%02d", i), map[string]any{
			"number": fmt.Sprintf("BT%d", 600+i),
			"gate":   map[string]any{"name": fmt.Sprintf("B%d", i), "open": i%2 == 0},
			"seats":  180 + i,
			"delay":  float64(i) + 0.5,
		}))
	}
	v := Object(fields...)
	if n := len(v.AppendJSON(nil)); n < 950 || n > 1100 {
		tb.Fatalf("the document has %d bytes, not 1 KB", n)
	}
	return v
}

var benchPath = Path{"flight07", "gate", "name"}

var sinkValue Value

func BenchmarkValueGetDepth3(b *testing.B) {
	b.ReportAllocs()
	v := benchDoc(b)
	for b.Loop() {
		sinkValue = v.At(benchPath)
	}
}

func BenchmarkValueSetDepth3(b *testing.B) {
	b.ReportAllocs()
	v := benchDoc(b)
	x := [2]Value{String("C1"), String("C2")}
	for i := 0; b.Loop(); i++ {
		v, _ = v.Set(benchPath, x[i&1])
	}
	sinkValue = v
}

func BenchmarkValueEqual(b *testing.B) {
	v := benchDoc(b)
	text := v.AppendJSON(nil)
	changed, _ := v.Set(benchPath, String("C1"))
	for _, c := range []struct {
		name string
		w    Value
		want bool
	}{
		{"same", v, true},
		{"shared but for one leaf", changed, false},
		{"nothing shared", benchDoc(b), true},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if Equal(v, c.w) != c.want {
					b.Fatal("wrong")
				}
			}
		})
	}
	b.Run("nothing shared but keys", func(b *testing.B) {
		b.ReportAllocs()
		x, _ := ParseValue(text)
		y, _ := ParseValue(text)
		for b.Loop() {
			if !Equal(x, y) {
				b.Fatal("wrong")
			}
		}
	})
}

func BenchmarkValueParse1K(b *testing.B) {
	b.ReportAllocs()
	text := benchDoc(b).AppendJSON(nil)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		sinkValue, _ = ParseValue(text)
	}
}

// The usual alternative, for comparison.
func BenchmarkValueParse1KAsMap(b *testing.B) {
	b.ReportAllocs()
	text := benchDoc(b).AppendJSON(nil)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		var m map[string]any
		if err := json.Unmarshal(text, &m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValueParseScalar(b *testing.B) {
	b.ReportAllocs()
	text := []byte("1735689600123")
	for b.Loop() {
		sinkValue, _ = ParseValue(text)
	}
}

func BenchmarkValueAppend1K(b *testing.B) {
	b.ReportAllocs()
	v := benchDoc(b)
	buf := v.AppendJSON(nil)
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		buf = v.AppendJSON(buf[:0])
	}
}

func BenchmarkValueMarshal1K(b *testing.B) {
	b.ReportAllocs()
	v := benchDoc(b)
	for b.Loop() {
		if _, err := json.Marshal(v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValueOfMap(b *testing.B) {
	b.ReportAllocs()
	m := map[string]any{"gate": "B12", "seats": 180, "delay": 2.5, "open": true}
	for b.Loop() {
		sinkValue = MustOf(m)
	}
}

func BenchmarkDiffOneLeaf(b *testing.B) {
	b.ReportAllocs()
	v := benchDoc(b)
	w, _ := v.Set(benchPath, String("C1"))
	for b.Loop() {
		if len(Diff("flights", v, w)) != 1 {
			b.Fatal("wrong")
		}
	}
}

// benchWrites returns the writes that a small transaction adds to a commit.
func benchWrites() []Write {
	return []Write{
		{Doc: "flights", Path: Path{"flight07", "gate"}, Value: Object(F("name", "C1"), F("open", true))},
		{Doc: "flights", Path: Path{"updated"}, Value: Int(1735689600456)},
		{Doc: "stats", Path: Path{"departures"}, Value: Int(5)},
		{Doc: "stats", Path: Path{"waiting"}, Delete: true},
	}
}

func BenchmarkWritesMarshal(b *testing.B) {
	b.ReportAllocs()
	ws := benchWrites()
	for b.Loop() {
		if _, err := json.Marshal(ws); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWritesUnmarshal(b *testing.B) {
	b.ReportAllocs()
	data, err := json.Marshal(benchWrites())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		var ws []Write
		if err := json.Unmarshal(data, &ws); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWriteApply(b *testing.B) {
	b.ReportAllocs()
	v := benchDoc(b)
	w := benchWrites()[0]
	for b.Loop() {
		sinkValue, _ = w.Apply(v)
	}
}

// The benchmarks above depend on these counts, which, unlike times, can be asserted.
func TestAllocations(t *testing.T) {
	v := benchDoc(t)
	w, _ := v.Set(benchPath, String("C1"))
	name := v.At(benchPath)
	text := v.AppendJSON(nil)
	link, nearly := Link{Space: "s", Doc: "d", Path: Path{"a"}}.Value(), Link{Doc: "no name"}.Value()
	for what, c := range map[string]struct {
		want float64
		do   func()
	}{
		"a read":                                 {0, func() { sinkValue = v.At(benchPath) }},
		"scalars":                                {0, func() { sinkValue = Int(1 << 40); sinkValue = Float(0.5); sinkValue = String("text") }},
		"comparing versions":                     {0, func() { Equal(v, w) }},
		"writing what is there":                  {0, func() { sinkValue, _ = v.Set(benchPath, name) }},
		"a write: one for each container passed": {3, func() { sinkValue, _ = w.Set(benchPath, name) }},
		"asking for links":                       {0, func() { _ = v.IsLink() || name.IsLink() || nearly.IsLink() || !link.IsLink() }},
		"comparing outsides":                     {0, func() { ShallowEqual(v, w); ShallowEqual(link, nearly); ShallowEqual(nearly, nearly) }},
		"encoding into a buffer":                 {0, func() { text = v.AppendJSON(text[:0]) }},
	} {
		if got := testing.AllocsPerRun(100, c.do); got != c.want {
			t.Errorf("%s: %v allocations, want %v", what, got, c.want)
		}
	}
}
