package model

import "testing"

var sinkBool bool

func BenchmarkIsLink(b *testing.B) {
	for _, c := range []struct {
		name, text string
		want       bool
	}{
		{"scalar", `7`, false},
		{"array", `[1,2]`, false},
		{"object of ten keys", `{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":0}`, false},
		{"object of one key", `{"a":1}`, false},
		{"plain data under the key", `{"$link":{"doc":"not a name"}}`, false},
		{"link", `{"$link":{"doc":"flights","path":["BT600","gate"],"space":"RIX"}}`, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			v := parse(b, c.text)
			for b.Loop() {
				sinkBool = v.IsLink()
			}
			if sinkBool != c.want {
				b.Fatal("wrong")
			}
		})
	}
}

func BenchmarkShallowEqual(b *testing.B) {
	v := benchDoc(b)
	changed, _ := v.Set(benchPath, String("C1"))
	more, _ := v.Set(Path{"more"}, Int(1))
	l := Link{Space: "RIX", Doc: "flights", Path: Path{"BT600", "gate"}}
	for _, c := range []struct {
		name string
		a, b Value
		want bool
	}{
		{"scalars", Int(1), Int(2), false},
		{"same object", v, v, true},
		{"another value below", v, changed, true},
		{"16 keys, nothing shared", v, benchDoc(b), true},
		{"a key more", v, more, false},
		{"arrays", v.Get("tags"), Array(Int(1), Int(2)), true},
		{"links, nothing shared", l.Value(), l.Value(), true},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sinkBool = ShallowEqual(c.a, c.b)
			}
			if sinkBool != c.want {
				b.Fatal("wrong")
			}
		})
	}
}
