package codec

import (
	"fmt"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
)

// Each shape of data, compared with the conversion through text: Decode and Value.Decode, Encode and
// model.Of.

type small struct {
	Flight string  `json:"flight"`
	Gate   string  `json:"gate"`
	Seats  int     `json:"seats"`
	Load   float64 `json:"load"`
	Open   bool    `json:"open"`
}

type nested struct {
	Airport string           `json:"airport"`
	Updated time.Time        `json:"updated"`
	Legs    []small          `json:"legs"`
	Gates   map[string]small `json:"gates"`
	Next    *nested          `json:"next,omitzero"`
}

func smallOf(i int) small {
	return small{fmt.Sprintf("BT%d", i), fmt.Sprintf("B%d", i%20), 100 + i%80, 0.5 + float64(i), i%2 == 0}
}

func nestedOf(depth int) *nested {
	if depth == 0 {
		return nil
	}
	n := &nested{Airport: "RIX", Updated: time.Unix(1735689600, 123e6).UTC(), Gates: map[string]small{}, Next: nestedOf(depth - 1)}
	for i := range 4 {
		n.Legs = append(n.Legs, smallOf(i))
		n.Gates[fmt.Sprintf("B%d", i)] = smallOf(i)
	}
	return n
}

func thousand() []small {
	s := make([]small, 1000)
	for i := range s {
		s[i] = smallOf(i)
	}
	return s
}

func BenchmarkSmall(b *testing.B)    { besideText(b, smallOf(7)) }
func BenchmarkNested(b *testing.B)   { besideText(b, *nestedOf(2)) }
func BenchmarkThousand(b *testing.B) { besideText(b, thousand()) }
func BenchmarkInt(b *testing.B)      { besideText(b, int64(7)) }
func BenchmarkFloats(b *testing.B)   { besideText(b, []float64{0.5, 1, 0.1, 1e300}) }
func BenchmarkTime(b *testing.B)     { besideText(b, time.Unix(1735689600, 0).UTC()) }
func BenchmarkMap(b *testing.B) {
	m := map[string]int{}
	for i := range 100 {
		m[fmt.Sprint("key", i)] = i
	}
	besideText(b, m)
}

func besideText[T any](b *testing.B, x T) {
	s, err := Of[T]()
	if err != nil {
		b.Fatal(err)
	}
	v, err := s.Encode(x)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("decode/direct", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = s.Decode(v)
		}
	})
	b.Run("decode/text", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var into T
			_ = v.Decode(&into)
		}
	})
	b.Run("encode/direct", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = s.Encode(x)
		}
	})
	b.Run("encode/text", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = model.Of(x)
		}
	})
}
