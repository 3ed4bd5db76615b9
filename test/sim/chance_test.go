package sim

import (
	"math/bits"
	"time"
)

// chance is a random source derived from a key: equal keys give equal draws.
type chance struct{ s uint64 }

// keyed returns the source for a key of parts, which are strings and numbers.
func keyed(seed uint64, parts ...any) *chance {
	h := mix(seed ^ 0x9e3779b97f4a7c15)
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			h = mix(h ^ sum(p))
		case uint64:
			h = mix(h + p*0x9e3779b97f4a7c15 + 1)
		case int:
			h = mix(h + uint64(p)*0x9e3779b97f4a7c15 + 1)
		default:
			panic("sim: a key is made of strings and numbers")
		}
	}
	return &chance{h}
}

func sum(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// mix returns the finaliser of SplitMix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (c *chance) next() uint64 {
	c.s += 0x9e3779b97f4a7c15
	return mix(c.s)
}

// below returns a number from 0 to n-1.
func (c *chance) below(n int) int {
	hi, _ := bits.Mul64(c.next(), uint64(n))
	return int(hi)
}

// permille is true n times in a thousand.
func (c *chance) permille(n int) bool { return c.below(1000) < n }

// between returns a duration, to the nanosecond.
func (c *chance) between(from, to time.Duration) time.Duration {
	return from + time.Duration(c.below(int(max(to-from, 1))))
}

// about returns a duration between a third of d and three times d, with equal probability below and
// above d.
func (c *chance) about(d time.Duration) time.Duration {
	if c.below(2) == 0 {
		return c.between(d/3, d)
	}
	return c.between(d, 3*d)
}

func oneOf[T any](c *chance, list ...T) T { return list[c.below(len(list))] }
