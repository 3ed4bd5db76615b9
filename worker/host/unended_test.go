package host

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Whatever the order in which events are read and end, what has not ended is known with the time at which it was stored, and the first of it.
func TestUnended_IsAMapInTheOrderOfSequences(t *testing.T) {
	t.Parallel()
	const most, steps = 12, 20_000
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test
		var u unended
		oracle := map[uint64]time.Time{}
		next := uint64(1)
		for step := range steps {
			seq := next
			if random.IntN(3) == 0 {
				seq = uint64(max(1, int(next)-random.IntN(2*most)))
			}
			switch random.IntN(40) {
			case 0:
				u.clear()
				clear(oracle)
			default:
				if random.IntN(2) == 0 {
					at := time.Unix(int64(step), 0)
					u.add(seq, at, most)
					if len(oracle) < most {
						oracle[seq] = at
					}
					next = max(next, seq+1)
					break
				}
				if len(oracle) > 0 && random.IntN(4) > 0 {
					seq = slices.Min(slices.Collect(maps.Keys(oracle)))
				}
				want, is := oracle[seq]
				if at, known := u.storedAt(seq); known != is || !at.Equal(want) {
					t.Fatalf("seed %d, step %d: %d was stored at %v, %v, want %v", seed, step, seq, at, known, want)
				}
				if at, known := u.end(seq); known != is || !at.Equal(want) {
					t.Fatalf("seed %d, step %d: %d ends, stored at %v, %v, want %v", seed, step, seq, at, known, want)
				}
				delete(oracle, seq)
			}
			at, some := u.oldest()
			if u.open != len(oracle) || some != (len(oracle) > 0) {
				t.Fatalf("seed %d, step %d: %d have not ended, want %d", seed, step, u.open, len(oracle))
			}
			if some && !at.Equal(oracle[slices.Min(slices.Collect(maps.Keys(oracle)))]) {
				t.Fatalf("seed %d, step %d: the oldest is of %v", seed, step, at)
			}
			if cap(u.list) > 8*most {
				t.Fatalf("seed %d, step %d: room for %d of %d", seed, step, cap(u.list), most)
			}
		}
	}
}

// To measure the time from storage to receipt of an event allocates nothing.
func TestUnended_AllocatesNothingPerEvent(t *testing.T) {
	var u unended
	seq, at := uint64(0), time.Unix(1, 0)
	u.add(1<<40, at, maxMeasured) // which ends last
	if n := testing.AllocsPerRun(100, func() {
		for range 100 {
			seq++
			u.add(seq, at, maxMeasured)
		}
		for i := range uint64(100) {
			u.end(seq - i)
		}
	}); n > 1 { // room for the first ones
		t.Errorf("%v allocations for 100 events", n)
	}
}
