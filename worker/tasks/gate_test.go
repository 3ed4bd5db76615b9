package tasks

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Many spaces have tasks for a performer that does a few at a time, each of which takes a moment. It is never idle for long, and is not
// offered much more than it takes.
func TestOffer_ManySpacesKeepABusyPerformerBusy(t *testing.T) {
	const spaces, tasks, slots, each = 32, 20, 8, 10 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		var atWork, offered, done atomic.Int64
		answer := func(deliver func(model.Answer), text string) { deliver(model.Answer{Data: []byte(text)}) }
		offers := NewOffers(func(_, _ string, _ func(answer, cancel string) []byte, deliver func(model.Answer)) (func(bool), error) {
			offered.Add(1)
			if atWork.Add(1) > slots {
				atWork.Add(-1)
				answer(deliver, `{"busy":true}`)
				return func(bool) {}, nil
			}
			answer(deliver, `{"claim":true}`)
			time.AfterFunc(each, func() {
				atWork.Add(-1)
				done.Add(1)
				answer(deliver, `{"out":1}`)
			})
			return func(bool) {}, nil
		})
		begun := time.Now()
		var offices []*office
		for range spaces {
			o := &office{t: t, calls: make(chan func()), begun: begun}
			o.serve(space.Remote{}, offers)
			offices = append(offices, o)
		}
		for i, o := range offices {
			for n := range tasks {
				o.pending(fmt.Sprintf("%d-%d", i, n), space.TaskPending, `1`)
			}
		}
		for done.Load() < spaces*tasks && time.Since(begun) < time.Minute {
			time.Sleep(each)
		}
		ideal := spaces * tasks / slots * each
		if took := time.Since(begun); took > 2*ideal {
			t.Errorf("%d tasks take %s, and without a pause %s", done.Load(), took, ideal)
		}
		if n := offered.Load(); n > 2*spaces*tasks {
			t.Errorf("%d tasks are offered %d times", spaces*tasks, n)
		}
		t.Logf("%s, %d offers", time.Since(begun), offered.Load())
	})
}

// The turn of a space that has nothing to offer any more goes to the next one, which waits for the same performers.
func TestGates_ATurnIsPassedOn(t *testing.T) {
	for _, queue := range []string{"", "slow"} {
		synctest.Test(t, func(t *testing.T) {
			idle := newOffice(t, space.Remote{Queue: queue})
			g := &idle.list.host.Offers.gates
			opened := make(chan struct{}, 1)
			other := New(Host{Ctx: t.Context(), Offers: idle.list.host.Offers, Call: func(func()) { opened <- struct{}{} }})
			now := time.Now()
			busyWith(g, queue, now)
			for _, l := range []*List{idle.list, other} {
				if g.admit("work", queue, 0, now, l) == 0 {
					t.Fatal("an offer is made to performers that are busy")
				}
			}
			g.freed("work", queue)
			synctest.Wait()
			if len(opened) != 1 {
				t.Errorf("queue %q: the other space waits", queue)
			}
		})
	}
}

// Spaces come and go, and performers do not: those that have gone wait no longer, and are not kept.
func TestGates_SpacesThatHaveGoneAreForgotten(t *testing.T) {
	t.Parallel()
	g, now := &gates{}, time.Now()
	g.admit("work", "", 0, now, nil)
	g.refused("work", "", 0, refusal{why: absent}, now)
	here, over := context.WithCancel(t.Context())
	over()
	stays := New(Host{Ctx: t.Context()})
	for range 10_000 {
		for _, l := range []*List{stays, New(Host{Ctx: here})} {
			if g.admit("work", "", 0, now, l) == 0 {
				t.Fatal("an offer is made though there are no performers")
			}
		}
	}
	if n := len(g.of("work", "").waiting.lists); n > 200 {
		t.Errorf("%d spaces wait, and there is one", n)
	}
}

// The turn of a space that has gone is that of the next one.
func TestGates_ASpaceThatHasGoneHasNoTurn(t *testing.T) {
	t.Parallel()
	g, now := &gates{}, time.Now()
	busyWith(g, "", now)
	here, over := context.WithCancel(t.Context())
	opened := 0
	gone, next := New(Host{Ctx: here, Call: func(func()) {}}), New(Host{Ctx: t.Context(), Call: func(func()) { opened++ }})
	g.admit("work", "", 0, now, gone)
	g.admit("work", "", 0, now, next)
	over()
	if g.freed("work", ""); opened != 1 {
		t.Error("the space behind it waits")
	}
}

// busyWith makes two performers of a queue known, which are at work.
func busyWith(g *gates, queue string, now time.Time) {
	for range 2 {
		g.admit("work", queue, 0, now, nil)
		g.taken("work", queue, now)
	}
	g.admit("work", queue, 0, now, nil)
	g.refused("work", queue, 0, refusal{why: busy}, now)
}

// Offers that were made at the same time, before it was known that no performer is there, count as one.
func TestGates_APauseGrowsOnlyByOffersThatWereMadeAfterIt(t *testing.T) {
	t.Parallel()
	g, now := &gates{}, time.Now()
	for range 5 {
		g.admit("work", "", 0, now, nil)
	}
	for range 5 {
		g.refused("work", "", 0, refusal{why: absent}, now)
	}
	first := pauses[absent].first
	if wait := g.admit("work", "", 0, now.Add(first), nil); wait > 0 {
		t.Errorf("the next offer waits for %s more than the first pause", wait)
	}
	g.refused("work", "", 0, refusal{why: absent}, now.Add(first))
	if wait := g.admit("work", "", 0, now.Add(2*first), nil); wait != first {
		t.Errorf("after a second offer without a performer it waits for %s more, want %s", wait, first)
	}
}

func TestGates_AnOfferThatIsNotTakenLeavesTheRateToAnother(t *testing.T) {
	t.Parallel()
	g, now := &gates{}, time.Now()
	g.admit("work", "", 1, now, nil)
	g.refused("work", "", 1, refusal{why: absent}, now)
	if wait := g.admit("work", "", 1, now.Add(pauses[absent].first), nil); wait > 0 {
		t.Errorf("the next offer waits for %s", wait)
	}
	g.taken("work", "", now)
	if g.admit("work", "", 1, now.Add(pauses[absent].first), nil) == 0 {
		t.Error("two tasks are taken in a second")
	}
}

func TestGates_AnOfferThatIsCutOffLeavesItsRoom(t *testing.T) {
	t.Parallel()
	g, now := &gates{}, time.Now()
	busyWith(g, "", now)
	g.freed("work", "")
	for range 2 { // for one performer
		if wait := g.admit("work", "", 0, now, nil); wait > 0 {
			t.Fatalf("an offer waits for %s", wait)
		}
		if g.admit("work", "", 0, now, nil) == 0 {
			t.Fatal("there are two offers for one performer")
		}
		g.unanswered("work", "")
	}
}

// Performers that take what they are offered may be more than are known: after some tasks they are offered one more.
func TestGates_RoomGrowsWithTheTasksThatAreTaken(t *testing.T) {
	t.Parallel()
	g, now := &gates{}, time.Now()
	busyWith(g, "", now)
	for range growAfter {
		g.freed("work", "")
		if wait := g.admit("work", "", 0, now, nil); wait > 0 {
			t.Fatalf("an offer waits for %s", wait)
		}
		g.taken("work", "", now)
	}
	if wait := g.admit("work", "", 0, now, nil); wait > 0 {
		t.Errorf("an offer to one performer more waits for %s", wait)
	}
	if g.admit("work", "", 0, now, nil) == 0 {
		t.Error("there are offers to two performers more")
	}
}

// One performer that hangs, or an offer that is lost, says nothing of the others: they are offered as much as before, and not more.
func TestGates_AnOfferWithoutAnAnswerLeavesTheRoomThatIsKnown(t *testing.T) {
	t.Parallel()
	g, now := &gates{}, time.Now()
	busyWith(g, "", now)
	g.freed("work", "")
	g.admit("work", "", 0, now, nil)
	g.refused("work", "", 0, refusal{why: unclaimed}, now)
	if wait := g.admit("work", "", 0, now, nil); wait > 0 {
		t.Fatalf("the next offer to the performer that is free waits for %s", wait)
	}
	g.taken("work", "", now)
	if g.admit("work", "", 0, now, nil) == 0 {
		t.Error("an offer is made to performers that are busy")
	}
}
