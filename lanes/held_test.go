package lanes

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/settlehq/settle/model"
)

// flood returns n events of one origin that arrive in a given order, each before its predecessor, and the
// event that all of them wait for.
func flood(n int, order func(positions []uint64)) (stream []model.Event) {
	positions := make([]uint64, n)
	for i := range positions {
		positions[i] = uint64(i + 2)
	}
	order(positions)
	for i, pos := range append(positions, 1) {
		stream = append(stream, from("o", pos, uint64(3*i+1)))
	}
	return stream
}

var orders = map[string]func([]uint64){
	"in order":  func([]uint64) {},
	"backwards": slices.Reverse[[]uint64],
	"mixed": func(p []uint64) {
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(p), func(i, j int) { p[i], p[j] = p[j], p[i] })
	},
}

// readAgain does what the host of a lane does: it reads the events that the lane requests, a page at a time.
func readAgain(t *testing.T, l *Lane, stream []model.Event) {
	t.Helper()
	after, ok := l.Refill()
	if !ok {
		return
	}
	i, _ := slices.BinarySearchFunc(stream, after+1, func(ev model.Event, seq uint64) int { return int(ev.Lane) - int(seq) })
	for _, ev := range stream[i:min(len(stream), i+256)] {
		if !l.Offer(ev) {
			return
		}
	}
}

// Twenty thousand events that arrived before their predecessor took minutes, because each was compared with
// all the others. Now each costs about the same as one of a few.
func TestTheCostOfAnEarlyEventDoesNotGrowWithTheHeldOnes(t *testing.T) {
	for name, order := range orders { // any order: each is independent
		t.Run(name, func(t *testing.T) {
			const n = 20_000
			stream := flood(n, order)
			l := newLane(State{}, DefaultLimit, n)
			for _, ev := range stream {
				l.Offer(ev)
			}
			if most := 40 * n; l.held.steps > most {
				t.Errorf("%d steps for %d events, want at most %d", l.held.steps, n, most)
			}
			if l.Waiting() != n+1 || l.Held() != 0 {
				t.Errorf("of %[3]d events %[1]d wait and %[2]d are held", l.Waiting(), l.Held(), n+1)
			}
		})
	}
}

// Only some of the held events are in memory, but all are handled, in order, even by the next owner.
func TestAFloodOfEarlyEventsIsHandledWithFewInMemory(t *testing.T) {
	for name, order := range orders { // any order: each is independent
		t.Run(name, func(t *testing.T) {
			const n, holds = 3000, 64
			stream := flood(n, order)
			l := newLane(State{}, 128, holds)
			for _, ev := range stream[:n] {
				l.Offer(ev)
			}
			if l.held.kept != holds || l.Held() != n {
				t.Fatalf("%d events are in memory, %d are held", l.held.kept, l.Held())
			}
			c := l.Cursor(0)
			next := newLane(State{Cursor: model.Cursor{Floor: l.seen, Held: l.held.below(l.seen)}}, 128, holds)
			for _, l := range []*Lane{l, next} {
				handled, rounds := handleAll(t, l, stream, holds)
				for i, pos := range handled {
					if pos != uint64(i+1) {
						t.Fatalf("number %d is %d (cursor %+v)", i+1, pos, c)
					}
				}
				if len(handled) != n+1 || !l.Done() {
					t.Errorf("%d of %d events are handled after %d rounds, %d are held", len(handled), n+1, rounds, l.Held())
				}
			}
		})
	}
}

// handleAll handles the events that it can, until there are no more.
func handleAll(t *testing.T, l *Lane, stream []model.Event, holds int) (handled []uint64, rounds int) {
	t.Helper()
	for idle := 0; idle < 20 && rounds < 100_000; rounds++ {
		readAgain(t, l, stream)
		l.Offer(stream[len(stream)-1]) // the live reader offers it once; the lane knows it after that
		before := len(handled)
		for ev := l.Peek(); ev != nil; ev = l.Peek() {
			handled = append(handled, ev.Position)
			l.Take()
		}
		if l.held.kept > holds {
			t.Fatalf("%d events are kept in memory", l.held.kept)
		}
		l.Confirm(l.Undecided(), l.Cursor(l.Undecided()))
		if idle++; len(handled) > before {
			idle = 0
		}
	}
	return handled, rounds
}
