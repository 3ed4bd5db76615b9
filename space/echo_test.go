package space

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// echoes makes n echo steps of one pair, gap apart, starting at from, and returns how many of them trip it.
func echoes(t *testing.T, b *echoBreaker, node, doc string, from, gap time.Duration, n int) (trips int) {
	t.Helper()
	for i := range n {
		trip, cleared := b.step(node, doc, from+time.Duration(i)*gap)
		if cleared != nil {
			t.Fatalf("step %d cleared %+v", i, *cleared)
		}
		if trip {
			trips++
		}
	}
	return trips
}

// tripPairs trips each of the pairs, with the last step at 11 s.
func tripPairs(t *testing.T, b *echoBreaker, pairs ...[2]string) {
	t.Helper()
	for i := range 12 {
		for _, p := range pairs {
			trip, _ := b.step(p[0], p[1], time.Duration(i)*time.Second)
			if trip != (i == 11) {
				t.Fatalf("%v at step %d: trips %v", p, i+1, trip)
			}
		}
	}
}

func wantCleared(t *testing.T, got []echoCleared, want ...echoCleared) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("cleared %v, want %v", got, want)
	}
}

func wantUntil(t *testing.T, b *echoBreaker, node string, want time.Duration) {
	t.Helper()
	if got := b.deferredUntil(node); got != want {
		t.Errorf("%s is deferred until %v, want %v", node, got, want)
	}
}

// This is the breaker's part of Y01. The caller is responsible for not reporting runs triggered by its own
// commits.
func TestAnEchoStepCountsOnceAndNothingElseDoes(t *testing.T) {
	b := newEchoBreaker(echoSettings{})
	for i := range 11 {
		now := time.Duration(i) * time.Second
		if trip, _ := b.step("n", "d", now); trip {
			t.Fatalf("step %d trips", i+1)
		}
		b.sweep(now)
		b.deferredUntil("n")
		b.sweepAt()
		b.quietRun("n", "other")
		b.quietRun("other", "d")
		b.retire("other")
		wantUntil(t, b, "n", 0)
	}
	if trip, _ := b.step("n", "d", 11*time.Second); !trip {
		t.Error("the twelfth step does not trip")
	}
}

func TestY02_AQuietRunClearsTheCountWithoutABackoff(t *testing.T) {
	b := newEchoBreaker(echoSettings{})
	for round := range 3 {
		from := time.Duration(round) * 12 * time.Second
		if trips := echoes(t, b, "n", "d", from, time.Second, 11); trips != 0 {
			t.Fatalf("round %d: eleven steps trip", round)
		}
		if c := b.quietRun("n", "d"); c != nil {
			t.Errorf("round %d: cleared %+v, which was not in force", round, *c)
		}
		wantUntil(t, b, "n", 0)
	}
	if b.recent.Len() != 0 || len(b.nodes) != 0 {
		t.Error("an empty count is kept")
	}
}

func TestY03_TheTwelfthEchoTripsTheBreaker(t *testing.T) {
	b := newEchoBreaker(echoSettings{})
	if trips := echoes(t, b, "n", "d", 0, time.Second, 11); trips != 0 {
		t.Fatal("eleven steps trip")
	}
	if trip, _ := b.step("n", "d", 11*time.Second); !trip {
		t.Fatal("the twelfth does not")
	}
	wantUntil(t, b, "n", 11500*time.Millisecond)
	wantUntil(t, b, "other", 0)
}

// Twelve steps at one instant are within any window, and so are twelve that span exactly one window.
func TestY03_TheWindowIncludesItsEnds(t *testing.T) {
	for _, gap := range []time.Duration{0, 60 * time.Second / 11} {
		b := newEchoBreaker(echoSettings{})
		if trips := echoes(t, b, "n", "d", 0, gap, 12); trips != 1 {
			t.Errorf("%v apart: %d trips, want 1", gap, trips)
		}
	}
}

func TestY03_AnEpisodeIsReportedOnceAndEachEchoInItDefersAgain(t *testing.T) {
	b := newEchoBreaker(echoSettings{})
	tripPairs(t, b, [2]string{"n", "d"})
	for i := range 100 {
		now := 12*time.Second + time.Duration(i)*time.Minute
		if trip, c := b.step("n", "d", now); trip || c != nil {
			t.Fatalf("step at %v: trip %v, cleared %v", now, trip, c)
		}
		if b.deferredUntil("n") <= now {
			t.Fatalf("step at %v defers until %v", now, b.deferredUntil("n"))
		}
	}
}

// The deferral doubles with each echo of an episode, up to 30 s, and is 500 ms again in the next one.
func TestY04_TheDeferralDoublesUpToThirtySeconds(t *testing.T) {
	b := newEchoBreaker(echoSettings{})
	for episode := range 2 {
		now := time.Duration(episode) * time.Hour
		echoes(t, b, "n", "d", now, time.Millisecond, 11)
		for _, want := range []time.Duration{500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000} {
			now = max(now+time.Second, b.deferredUntil("n"))
			b.step("n", "d", now)
			wantUntil(t, b, "n", now+want*time.Millisecond)
		}
		if n := b.stepsInForce("n"); n != 9 {
			t.Errorf("%d steps are in force, want 9", n)
		}
		wantCleared(t, b.sweep(now+120*time.Second), echoCleared{"n", "d", echoQuiet})
		if n := b.stepsInForce("n"); n != 0 {
			t.Errorf("%d steps are in force after the episode", n)
		}
	}
}

func TestY03_AfterAnEpisodeTheCountStartsAgain(t *testing.T) {
	b := newEchoBreaker(echoSettings{})
	tripPairs(t, b, [2]string{"n", "d"})
	b.quietRun("n", "d")
	if trips := echoes(t, b, "n", "d", 12*time.Second, time.Second, 11); trips != 0 {
		t.Error("eleven steps trip")
	}
	if trip, _ := b.step("n", "d", 23*time.Second); !trip {
		t.Error("the twelfth does not")
	}
}

func TestY03_TheLimitsAreSettings(t *testing.T) {
	b := newEchoBreaker(echoSettings{trip: 2, window: time.Second, deferral: time.Minute, quiet: time.Hour, pairs: 1})
	if trips := echoes(t, b, "n", "d", 0, 2*time.Second, 5); trips != 0 {
		t.Fatal("trips over more than the window")
	}
	if trip, _ := b.step("n", "d", 9*time.Second); !trip {
		t.Fatal("does not trip at the second step")
	}
	wantUntil(t, b, "n", 69*time.Second)
	wantCleared(t, b.sweep(time.Hour))
	wantCleared(t, b.sweep(time.Hour+9*time.Second), echoCleared{"n", "d", echoQuiet})
}

func TestY05_AnEqualRunClearsATrippedPair(t *testing.T) {
	b := newEchoBreaker(echoSettings{})
	tripPairs(t, b, [2]string{"n", "d"})
	c := b.quietRun("n", "d")
	if c == nil || *c != (echoCleared{"n", "d", echoEqual}) {
		t.Fatalf("cleared %v", c)
	}
	wantUntil(t, b, "n", 0)
	if again := b.quietRun("n", "d"); again != nil {
		t.Errorf("cleared %+v twice", *again)
	}
}

func TestY05_TwoMinutesOfQuietClearATrippedPair(t *testing.T) {
	b := newEchoBreaker(echoSettings{})
	tripPairs(t, b, [2]string{"n", "d"})
	if got := b.sweepAt(); got != 131*time.Second {
		t.Errorf("sweep at %v, want 2m11s", got)
	}
	wantCleared(t, b.sweep(131*time.Second-1))
	wantUntil(t, b, "n", 11500*time.Millisecond)
	wantCleared(t, b.sweep(131*time.Second), echoCleared{"n", "d", echoQuiet})
	wantUntil(t, b, "n", 0)
	wantCleared(t, b.sweep(500*time.Second))
	if got := b.sweepAt(); got != 0 {
		t.Errorf("sweep at %v when nothing is in force", got)
	}
}

func TestY05_EachEchoPutsTheEndOfAnEpisodeOff(t *testing.T) {
	b := newEchoBreaker(echoSettings{})
	tripPairs(t, b, [2]string{"n", "d"})
	b.step("n", "d", 100*time.Second)
	wantCleared(t, b.sweep(200*time.Second))
	wantCleared(t, b.sweep(220*time.Second), echoCleared{"n", "d", echoQuiet})
}

func TestY05_ASweepReportsInTheOrderOfTheLatestSteps(t *testing.T) {
	b := newEchoBreaker(echoSettings{})
	tripPairs(t, b, [2]string{"a", "d"}, [2]string{"b", "d"}, [2]string{"c", "d"})
	b.step("a", "d", 12*time.Second)
	b.step("new", "d", 13*time.Second)
	wantCleared(t, b.sweep(300*time.Second),
		echoCleared{"b", "d", echoQuiet}, echoCleared{"c", "d", echoQuiet}, echoCleared{"a", "d", echoQuiet})
	if b.recent.Len() != 0 {
		t.Error("a count whose steps have left the window is kept")
	}
}

// The end of an episode does not depend on how often the table is swept.
func TestY05_AnEchoAfterTheQuietTimeBeginsANewEpisode(t *testing.T) {
	b := newEchoBreaker(echoSettings{})
	tripPairs(t, b, [2]string{"n", "d"})
	trip, cleared := b.step("n", "d", 131*time.Second)
	if trip || cleared == nil || *cleared != (echoCleared{"n", "d", echoQuiet}) {
		t.Fatalf("trip %v, cleared %v", trip, cleared)
	}
	wantUntil(t, b, "n", 0)
	if trips := echoes(t, b, "n", "d", 131*time.Second, 0, 11); trips != 1 {
		t.Error("the step that ended the episode is not the first of the next")
	}
}

func TestY05_RetiringANodeClearsItsPairsInOrderOfDocuments(t *testing.T) {
	b := newEchoBreaker(echoSettings{})
	tripPairs(t, b, [2]string{"n", "b"}, [2]string{"n", "a"}, [2]string{"m", "a"})
	b.step("n", "counted", 12*time.Second)
	wantCleared(t, b.retire("n"), echoCleared{"n", "a", echoRetired}, echoCleared{"n", "b", echoRetired})
	wantCleared(t, b.retire("n"))
	wantUntil(t, b, "n", 0)
	wantUntil(t, b, "m", 11500*time.Millisecond)
}

func TestY05_EvictionOfATrippedPairIsReported(t *testing.T) {
	b := newEchoBreaker(echoSettings{pairs: 2})
	tripPairs(t, b, [2]string{"n", "d"})
	b.step("m", "d", 12*time.Second)
	if _, cleared := b.step("k", "d", 13*time.Second); cleared == nil || *cleared != (echoCleared{"n", "d", echoEvicted}) {
		t.Fatalf("cleared %v", cleared)
	}
	wantUntil(t, b, "n", 0)
	if b.sweepAt() != 0 {
		t.Error("an evicted pair is to be swept")
	}
}

func TestY05_TheDeferralIsLiftedWithTheLastPairOfTheNode(t *testing.T) {
	two := [][2]string{{"n", "a"}, {"n", "b"}}
	for name, end := range map[string]func(*echoBreaker){
		"equal": func(b *echoBreaker) { b.quietRun("n", "a") },
		"quiet": func(b *echoBreaker) {
			b.step("n", "b", 12*time.Second)
			wantCleared(t, b.sweep(131*time.Second), echoCleared{"n", "a", echoQuiet})
		},
		"evicted": func(b *echoBreaker) { b.step("m", "d", 12*time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newEchoBreaker(echoSettings{pairs: 2})
			tripPairs(t, b, two...)
			end(b)
			if b.deferredUntil("n") == 0 {
				t.Error("lifted, though the other pair is in force")
			}
			if c := b.quietRun("n", "b"); c == nil {
				t.Fatal("the other pair is not in force")
			}
			wantUntil(t, b, "n", 0)
		})
	}
}

func TestY05_ACountThatIsNotInForceDoesNotHoldTheDeferral(t *testing.T) {
	b := newEchoBreaker(echoSettings{})
	tripPairs(t, b, [2]string{"n", "a"})
	echoes(t, b, "n", "b", 11*time.Second, 0, 11)
	b.quietRun("n", "a")
	wantUntil(t, b, "n", 0)
}

func TestY06_EchoesSpreadOverMoreThanAWindowNeverTrip(t *testing.T) {
	b := newEchoBreaker(echoSettings{})
	// The first and the last of any twelve steps are 60 s and 5 ns apart.
	if trips := echoes(t, b, "n", "d", 0, 60*time.Second/11+1, 1000); trips != 0 {
		t.Errorf("%d trips", trips)
	}
	if n := len(b.nodes["n"].pairs["d"].steps); n > 11 {
		t.Errorf("%d steps are kept", n)
	}
}

// Fixed windows of 60 s would see six steps at the end of one and six at the beginning of the next.
func TestY06_ABurstAcrossTheEndOfAWindowTrips(t *testing.T) {
	b := newEchoBreaker(echoSettings{})
	echoes(t, b, "n", "d", 0, 0, 1)
	if trips := echoes(t, b, "n", "d", 57*time.Second, time.Second/2, 12); trips != 1 {
		t.Errorf("%d trips, want 1", trips)
	}
}

func TestY07_PairsAreCountedApart(t *testing.T) {
	b := newEchoBreaker(echoSettings{})
	for i := range 11 {
		now := time.Duration(i) * time.Second
		for _, p := range [][2]string{{"n", "a"}, {"n", "b"}, {"m", "a"}} {
			if trip, _ := b.step(p[0], p[1], now); trip {
				t.Fatalf("%v trips at step %d", p, i+1)
			}
		}
		b.quietRun("n", "b")
	}
	if trip, _ := b.step("n", "b", 11*time.Second); trip {
		t.Error("the document that does not loop trips")
	}
	if trip, _ := b.step("n", "a", 11*time.Second); !trip {
		t.Error("the one that loops does not")
	}
	wantUntil(t, b, "m", 0)
}

func TestY07_NamesThatRunTogetherAreDifferentPairs(t *testing.T) {
	b := newEchoBreaker(echoSettings{trip: 2})
	b.step("n/a", "d", 0)
	if trip, _ := b.step("n", "a/d", 0); trip {
		t.Error("n/a, d and n, a/d are one pair")
	}
}

func TestY07_TheTableIsBoundedAndLosesTheOneSteppedLeastRecently(t *testing.T) {
	b := newEchoBreaker(echoSettings{})
	echoes(t, b, "first", "d", 0, 0, 11)
	echoes(t, b, "second", "d", 0, 0, 11)
	for i := range 4094 {
		b.step("n", fmt.Sprint("d", i), time.Second)
	}
	b.step("first", "d", 60*time.Second+1) // all of its steps but this one have left the window
	if _, c := b.step("one more", "d", 60*time.Second+1); c != nil {
		t.Errorf("losing a count reports %+v", *c)
	}
	if n := b.recent.Len(); n != 4096 {
		t.Errorf("%d pairs, want 4096", n)
	}
	if b.find("second", "d") != nil || b.find("first", "d") == nil {
		t.Error("another pair than the least recently stepped one was evicted")
	}
}

func TestY07_AnEmptyTableCostsNothing(t *testing.T) {
	b := newEchoBreaker(echoSettings{})
	if n := testing.AllocsPerRun(100, func() {
		b.quietRun("n", "d")
		b.sweep(time.Hour)
		b.sweepAt()
		b.retire("n")
		b.deferredUntil("n")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// slowEcho is a naive breaker, written from the specification: it keeps all steps and counts them again each
// time.
type slowEcho struct {
	pairs []*slowEchoPair // in order of their latest steps
	until map[string]time.Duration
}

type slowEchoPair struct {
	node, doc string
	steps     []time.Duration
	tripped   bool
	held      time.Duration // by the latest step
}

func (p *slowEchoPair) last() time.Duration { return p.steps[len(p.steps)-1] }

// end removes the chosen pairs, and returns those of them that were in force.
func (o *slowEcho) end(reason string, chosen func(*slowEchoPair) bool) (cleared []echoCleared) {
	o.pairs = slices.DeleteFunc(o.pairs, func(p *slowEchoPair) bool {
		if chosen(p) && p.tripped {
			cleared = append(cleared, echoCleared{p.node, p.doc, reason})
		}
		return chosen(p)
	})
	for _, c := range cleared {
		if !slices.ContainsFunc(o.pairs, func(p *slowEchoPair) bool { return p.node == c.node && p.tripped }) {
			delete(o.until, c.node)
		}
	}
	return cleared
}

func (o *slowEcho) step(s echoSettings, node, doc string, now time.Duration) (trip bool, cleared []echoCleared) {
	is := func(p *slowEchoPair) bool { return p.node == node && p.doc == doc }
	cleared = o.end(echoQuiet, func(p *slowEchoPair) bool { return is(p) && p.tripped && now-p.last() >= s.quiet })
	p := &slowEchoPair{node: node, doc: doc}
	if i := slices.IndexFunc(o.pairs, is); i >= 0 {
		p = o.pairs[i]
		o.pairs = slices.Delete(o.pairs, i, i+1)
	} else if len(o.pairs) == s.pairs {
		first := o.pairs[0]
		cleared = append(cleared, o.end(echoEvicted, func(p *slowEchoPair) bool { return p == first })...)
	}
	o.pairs, p.steps = append(o.pairs, p), append(p.steps, now)
	within := 0
	for _, at := range p.steps {
		if now-at <= s.window {
			within++
		}
	}
	trip = !p.tripped && within >= s.trip
	if p.tripped = p.tripped || trip; p.tripped {
		if p.held = min(2*p.held, s.longest); p.held == 0 {
			p.held = s.deferral
		}
		o.until[node] = max(o.until[node], now+p.held)
	}
	return trip, cleared
}

// sweep drops counts that have left the window, as the breaker does: the room that they take in the table
// decides what is evicted.
func (o *slowEcho) sweep(s echoSettings, now time.Duration) []echoCleared {
	o.end("", func(p *slowEchoPair) bool { return !p.tripped && now-p.last() > s.window })
	return o.end(echoQuiet, func(p *slowEchoPair) bool { return p.tripped && now-p.last() >= s.quiet })
}

func (o *slowEcho) sweepAt(s echoSettings) time.Duration {
	for _, p := range o.pairs {
		if p.tripped {
			return p.last() + s.quiet
		}
	}
	return 0
}

func TestY07_TheBreakerAgreesWithOneThatKeepsEverything(t *testing.T) {
	byDoc := func(a, b echoCleared) int { return cmp.Compare(a.doc, b.doc) }
	rapid.Check(t, func(t *rapid.T) {
		s := echoSettings{
			trip: rapid.IntRange(1, 4).Draw(t, "trip"), window: time.Duration(rapid.IntRange(1, 8).Draw(t, "window")),
			deferral: 3, longest: 20, quiet: time.Duration(rapid.IntRange(1, 12).Draw(t, "quiet")),
			pairs: rapid.IntRange(1, 5).Draw(t, "pairs"),
		}
		b, o := newEchoBreaker(s), &slowEcho{until: map[string]time.Duration{}}
		nodes, docs := rapid.SampledFrom([]string{"n", "m", "k"}), rapid.SampledFrom([]string{"a", "b"})
		now := time.Duration(0)
		for range rapid.IntRange(1, 60).Draw(t, "moves") {
			now += time.Duration(rapid.SampledFrom([]int{0, 0, 1, 1, 2, 9}).Draw(t, "later"))
			node, doc := nodes.Draw(t, "node"), docs.Draw(t, "doc")
			var got, want []echoCleared
			switch move := rapid.SampledFrom([]string{"step", "step", "step", "step", "quiet", "sweep", "retire"}).Draw(t, "move"); move {
			case "step":
				trip, cleared := b.step(node, doc, now)
				var wantTrip bool
				wantTrip, want = o.step(s, node, doc, now)
				if got = gatherCleared(nil, cleared); trip != wantTrip {
					t.Fatalf("%s %s at %d trips: %v, want %v", node, doc, now, trip, wantTrip)
				}
			case "quiet":
				got = gatherCleared(nil, b.quietRun(node, doc))
				want = o.end(echoEqual, func(p *slowEchoPair) bool { return p.node == node && p.doc == doc })
			case "sweep":
				got, want = b.sweep(now), o.sweep(s, now)
			case "retire":
				got = b.retire(node)
				want = o.end(echoRetired, func(p *slowEchoPair) bool { return p.node == node })
				slices.SortFunc(want, byDoc)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("at %d cleared %v, want %v", now, got, want)
			}
			for _, n := range []string{"n", "m", "k"} {
				if b.deferredUntil(n) != o.until[n] {
					t.Fatalf("at %d %s is deferred until %d, want %d", now, n, b.deferredUntil(n), o.until[n])
				}
			}
			if got, want := b.sweepAt(), o.sweepAt(s); got != want {
				t.Fatalf("at %d the next sweep is at %d, want %d", now, got, want)
			}
			if n := b.recent.Len(); n != len(o.pairs) || n > s.pairs {
				t.Fatalf("%d pairs, want %d, and %d at most", n, len(o.pairs), s.pairs)
			}
		}
	})
}
