package seeded

import (
	"flag"
	"testing"

	"pgregory.net/rapid"
)

func TestTheSameSeedMakesTheSameCases(t *testing.T) {
	before := flag.Lookup("rapid.seed").Value.String()
	t.Cleanup(func() { set(before) })
	set("7")
	first, second := cases(t), cases(t)
	if len(first) == 0 || len(first) != len(second) {
		t.Fatalf("%d and %d cases", len(first), len(second))
	}
	for i := range first {
		if first[i] != second[i] {
			t.Fatalf("case %d is %d, and then %d", i, first[i], second[i])
		}
	}
}

func cases(t *testing.T) (drawn []int) {
	rapid.Check(t, func(t *rapid.T) { drawn = append(drawn, rapid.Int().Draw(t, "n")) })
	return drawn
}

func TestASeedThatIsNoNumberIsRefused(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it was taken")
		}
	}()
	set("soon")
}
