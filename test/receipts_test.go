package test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/faults"
)

// A handling and its receipt are one commit, so a conflict about another document refuses both, however
// often it occurs; and when they are finally stored and the answer is lost, the stored receipt is
// recognised as the handling's own.
func TestI11_ReceiptWithARetryableConflictElsewhere_TheHandlerRetriesAndCommits(t *testing.T) {
	t.Parallel()
	onBothServers(t, func(t *testing.T, base settle.Config) {
		s := newStage(t, base)
		var loseAnswer atomic.Int32
		a := s.worker("a", func(c *bus.Config) {
			c.AckTimeout = 100 * time.Millisecond
			c.Faults = func(at faults.Attempt) faults.Fault {
				if at.Op == faults.OpAppend && loseAnswer.Add(-1) == 0 {
					return faults.DropAck
				}
				return faults.Deliver
			}
		})
		const conflicts = 3
		held := a.line.holdReceipt("e1")
		s.send("shop", "order", "e1")
		for i := range conflicts {
			held.wait(t)
			s.elsewhere("shop", "count", 10*(i+1))
			next := a.line.holdReceipt("e1")
			held.letGo()
			held = next
		}
		held.wait(t)
		loseAnswer.Store(1)
		held.letGo()
		if rc := s.ends("shop", "order", "e1"); rc.Result.String() != "31" {
			t.Errorf("receipt %+v, want handled with result 31", rc)
		}
		s.call("shop", "tick", "end")
		s.wantLog("shop", "order e1: handled 31", `note: handled "e1 makes 31"`, "tick end: handled")
		s.wantDoc("shop", "count", "31")
		a.notes.want(t, "order e1", conflicts+1)
		if loseAnswer.Load() >= 1 {
			t.Error("no answer was lost")
		}
	})
}

// A commit is lost on its way, and another one has its place when it is sent again. The server's answer
// is the same as for a stored commit that was sent twice, but here the handling must be repeated.
func TestI11_ACommitInDoubt_IsNotTakenForTheOneThatStandsInItsPlace(t *testing.T) {
	t.Parallel()
	onBothServers(t, func(t *testing.T, base settle.Config) {
		s := newStage(t, base)
		var armed atomic.Bool
		lost, found := make(chan struct{}), make(chan struct{})
		a := s.worker("a", func(c *bus.Config) {
			c.AckTimeout = 100 * time.Millisecond
			c.Faults = func(at faults.Attempt) faults.Fault {
				switch {
				case at.Op != faults.OpAppend:
				case at.Try == 1 && armed.CompareAndSwap(true, false):
					close(lost)
					return faults.DropRequest
				case at.Try == 2:
					<-found
				}
				return faults.Deliver
			}
		})
		resend := sync.OnceFunc(func() { close(found) })
		t.Cleanup(resend)
		s.call("shop", "tick", "start")
		armed.Store(true)
		s.send("shop", "order", "e1")
		<-lost
		s.elsewhere("shop", "count", 40)
		resend()
		if rc := s.ends("shop", "order", "e1"); rc.Result.String() != "41" {
			t.Errorf("receipt %+v, want handled with result 41", rc)
		}
		s.call("shop", "tick", "end")
		s.wantLog("shop", "tick start: handled", "order e1: handled 41", `note: handled "e1 makes 41"`, "tick end: handled")
		s.wantDoc("shop", "count", "41")
		a.notes.want(t, "order e1", 2)
	})
}

// races are the ways in which the runtimes of a space can append the handling of one event. All of them have
// handled it, and each has an append under way.
var races = map[string]func(s *stage, all []*actor, held []*hold){
	"the owner is first": func(s *stage, all []*actor, held []*hold) {
		held[0].letGo()
		s.ends("shop", "order", "e1")
	},
	"an attached runtime is first": func(s *stage, all []*actor, held []*hold) {
		held[1].letGo()
		s.ends("shop", "order", "e1")
	},
	"all at once": func(*stage, []*actor, []*hold) {},
}

// Several runtimes handle the same event. One of them commits; the others learn that
// there is a receipt, and do not try again.
func TestI11_ReceiptRace_OneRuntimeCommitsAndTheOthersDoNotRetry(t *testing.T) {
	t.Parallel()
	for what, first := range races { // any order: each on its own
		t.Run(what, func(t *testing.T) {
			onBothServers(t, func(t *testing.T, base settle.Config) {
				s := newStage(t, base)
				all := s.crowd()
				held := s.race(all)
				first(s, all, held)
				for _, h := range held {
					h.letGo()
				}
				if rc := s.ends("shop", "order", "e1"); rc.Result.String() != "1" {
					t.Errorf("receipt %+v, want handled with result 1", rc)
				}
				s.everybodyGoesOn(all)
				for _, a := range all {
					a.notes.want(t, "order e1", 1)
				}
				s.wantDoc("shop", "count", "1")
				s.wantDoc("shop", "noted", "1")
				eventually(t, s.client, "ledger", "noted", 1)
				s.wantLane("ledger", 1)
				once(t, readLog(t, s.d.Bus(), "shop"))
			})
		})
	}
}

// crowd returns the owner of the shop and three more that handle its events.
func (s *stage) crowd() []*actor {
	s.Helper()
	all := []*actor{s.worker("owner")}
	for _, id := range []string{"a1", "a2", "a3"} {
		s.call("shop", "tick", "before-"+id) // or it would look as if the last one had died of the next event
		all = append(all, s.attach(id, "shop", true))
	}
	return all
}

// race returns when every runtime has handled e1 and is about to append that, on top of the same log. The
// second of them is attached.
func (s *stage) race(all []*actor) []*hold {
	s.Helper()
	all[1].transact(func(tx *settle.Tx) { tx.Set("ready", true) })
	var held []*hold
	for _, a := range all {
		a.notes.waitFor(s.T, "ready", 1) // and has seen all that was before
	}
	for _, a := range all {
		held = append(held, a.line.holdReceipt("e1"))
	}
	s.send("shop", "order", "e1")
	for _, h := range held {
		h.wait(s.T)
	}
	return held
}

// everybodyGoesOn makes each runtime commit an event in turn, after which its work for earlier events is
// done.
func (s *stage) everybodyGoesOn(all []*actor) {
	s.Helper()
	for i, a := range all {
		id := fmt.Sprintf("after-%d", i)
		var back []func()
		for _, other := range all {
			if other != a {
				h := other.line.holdReceipt(id)
				back = append(back, func() { other.line.cancel(h) })
			}
		}
		s.call("shop", "tick", id)
		for _, letGo := range back {
			letGo()
		}
		s.wantHandledBy("shop", id, a.id)
	}
}

// wantHandledBy checks which runtime has committed the handling of an event.
func (s *stage) wantHandledBy(space, event, want string) {
	s.Helper()
	for _, e := range readCommits(s.T, s.d.Bus(), space, 0) {
		for i := range e.c.Txs {
			if rc := e.c.Txs[i].Receipt; rc != nil && rc.Event == event && e.c.Runtime != want {
				s.Errorf("event %s was handled by %s, and was left to %s", event, e.c.Runtime, want)
			}
		}
	}
}

// Every runtime first handles an event that starts a piece. One piece results, of the runtime whose commit
// wins; the others run that one, and drop theirs.
func TestI11_PatternLaunchingEventHandledByTwoRuntimes_StartsOnePiece(t *testing.T) {
	t.Parallel()
	onBothServers(t, func(t *testing.T, base settle.Config) {
		s := newStage(t, base)
		owner := s.worker("owner")
		s.call("shop", "tick", "t1")
		other := s.attach("other", "shop", true)
		held := s.race([]*actor{owner, other})
		owner.notes.waitFor(t, "piece e1 of owner at tick 1", 1)
		other.notes.waitFor(t, "piece e1 of other at tick 1", 1)
		held[1].letGo()
		s.ends("shop", "order", "e1")
		held[0].letGo()
		owner.notes.waitFor(t, "piece e1 of other at tick 1", 1)
		s.call("shop", "tick", "t2")
		for _, a := range []*actor{owner, other} {
			a.notes.waitFor(t, "piece e1 of other at tick 2", 1)
			a.notes.want(t, "order e1", 1)
		}
		owner.notes.want(t, "piece e1 of owner at tick 2", 0)
		s.wantDoc("shop", "pieces", `{"e1":"other"}`)
		s.wantLog("shop", "tick t1: handled", "order e1: handled 1", `note: handled "e1 makes 1"`, "tick t2: handled")
	})
}

// The event is delivered again, to a runtime that did not exist the first time. That runtime makes no
// attempt, and has the one existing piece.
func TestI11_PatternLaunchingEventRedeliveredLater_StartsNothing(t *testing.T) {
	t.Parallel()
	onBothServers(t, func(t *testing.T, base settle.Config) {
		s := newStage(t, base)
		owner := s.worker("owner")
		s.call("shop", "order", "e1")
		late := s.attach("late", "shop", true, fromTheBeginning)
		// The piece itself does not run if its observations have been saved by now.
		late.notes.waitFor(t, "shop has the pieces e1", 1)
		s.everybodyGoesOn([]*actor{owner, late})
		late.notes.want(t, "order e1", 0)
		late.notes.waitFor(t, "piece e1 of owner at tick 2", 1)
		s.wantDoc("shop", "pieces", `{"e1":"owner"}`)
	})
}
