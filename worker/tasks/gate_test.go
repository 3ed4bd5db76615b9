package tasks

import (
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

// The turn of a space that has nothing to offer any more goes to the next one.
func TestGates_ATurnIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		idle := newOffice(t, space.Remote{})
		g := &idle.list.host.Offers.gates
		opened := make(chan struct{}, 1)
		other := New(Host{Offers: idle.list.host.Offers, Call: func(func()) { opened <- struct{}{} }})
		now := time.Now()
		for range 2 {
			g.admit("work", "", 0, now, nil)
			g.taken("work", "", now)
		}
		g.admit("work", "", 0, now, nil)
		g.refused("work", "", 0, refusal{why: busy}, now)
		for _, l := range []*List{idle.list, other} {
			if g.admit("work", "", 0, now, l) == 0 {
				t.Fatal("an offer is made to performers that are busy")
			}
		}
		g.freed("work", "")
		synctest.Wait()
		if len(opened) != 1 {
			t.Error("the other space waits")
		}
	})
}
