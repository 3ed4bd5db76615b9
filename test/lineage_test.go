package test

import (
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/model"
)

// The sends of an attempt have no effect if the attempt does not take effect. The follow-ups read nothing that
// their parent has written, so no conflict of their own would undo them: only the lineage does.
func TestI10_PayloadOnlyFollowUpOfAFailedParent_IsNeverHandled(t *testing.T) {
	t.Parallel()
	onBothServers(t, func(t *testing.T, base settle.Config) {
		s := newStage(t, base)
		a := s.worker("a")
		first := a.line.holdReceipt("e1")
		s.send("shop", "order", "e1")
		first.wait(t)
		a.notes.waitFor(t, "note in shop: e1 makes 1", 1) // not confirmed yet
		s.elsewhere("shop", "closed", true)
		first.letGo()
		if rc := s.ends("shop", "order", "e1"); rc.Outcome != model.Failed || rc.Error != "closed" {
			t.Errorf("the parent has ended: %s (%s)", rc.Outcome, rc.Error)
		}
		s.elsewhere("shop", "closed", false)
		s.call("shop", "order", "e2") // what follows from it is behind whatever followed from e1
		eventually(t, s.client, "ledger", "noted", 1)
		s.call("shop", "tick", "end")
		s.wantLog("shop", "order e1: failed", "order e2: handled 1", `note: handled "e2 makes 1"`, "tick end: handled")
		s.wantLog("ledger", `note: handled "e2 makes 1"`)
		a.notes.want(t, "order e1", 2)
	})
}

// The same, but the parent succeeds when it is retried: its follow-ups are those of the attempt that has
// taken effect, each once.
func TestI10_HandlerConflictsThenSucceeds_FollowUpIsHandledOnceAsOfTheCommittedAttempt(t *testing.T) {
	t.Parallel()
	onBothServers(t, func(t *testing.T, base settle.Config) {
		s := newStage(t, base)
		a := s.worker("a")
		first := a.line.holdReceipt("e1")
		s.send("shop", "order", "e1")
		first.wait(t)
		a.notes.waitFor(t, "note in shop: e1 makes 1", 1)
		s.elsewhere("shop", "count", 40)
		first.letGo()
		eventually(t, s.client, "ledger", "noted", 1)
		s.call("shop", "tick", "end")
		s.wantLog("shop", "order e1: handled 41", `note: handled "e1 makes 41"`, "tick end: handled")
		s.wantLog("ledger", `note: handled "e1 makes 41"`)
		s.wantDoc("shop", "noted", "1")
		a.notes.want(t, "order e1", 2)
		a.notes.want(t, "note in shop: e1 makes 1", 1)
		a.notes.want(t, "note in ledger: e1 makes 1", 0)
	})
}

// The first attempt conflicts, and all others fail until the retries are used up. Everything that the
// first attempt had started is gone: its follow-ups, and the running piece. Another piece continues.
func TestI10_HandlerExhaustsItsRetries_FollowUpIsNeverHandledAndItsPieceIsStopped(t *testing.T) {
	t.Parallel()
	onBothServers(t, func(t *testing.T, base settle.Config) {
		s := newStage(t, base)
		a := s.worker("a")
		s.call("shop", "order", "e0")
		a.notes.waitFor(t, "piece e0 of a at tick 0", 1)
		first := a.line.holdReceipt("e1")
		s.send("shop", "order", "e1")
		first.wait(t)
		a.notes.waitFor(t, "note in shop: e1 makes 2", 1)
		a.notes.waitFor(t, "piece e1 of a at tick 0", 1)
		s.elsewhere("shop", "broken", true)
		first.letGo()
		if rc := s.ends("shop", "order", "e1"); rc.Outcome != model.Failed || rc.Error != "broken" {
			t.Errorf("the parent has ended: %s (%s)", rc.Outcome, rc.Error)
		}
		const budget = 5
		a.notes.want(t, "order e1", 1+budget)
		s.call("shop", "tick", "t1")
		a.notes.waitFor(t, "piece e0 of a at tick 1", 1)
		s.elsewhere("shop", "broken", false)
		s.call("shop", "order", "e2")
		s.call("shop", "tick", "t2")
		a.notes.waitFor(t, "piece e2 of a at tick 2", 1)
		eventually(t, s.client, "ledger", "noted", 2)
		a.notes.want(t, "piece e1 of a at tick 1", 0)
		a.notes.want(t, "piece e1 of a at tick 2", 0)
		a.notes.want(t, "shop has the pieces e0 e1 e2", 0)
		s.wantLog("shop", "order e0: handled 1", `note: handled "e0 makes 1"`, "order e1: failed", "tick t1: handled",
			"order e2: handled 2", `note: handled "e2 makes 2"`, "tick t2: handled")
		s.wantLog("ledger", `note: handled "e0 makes 1"`, `note: handled "e2 makes 2"`)
		s.wantDoc("shop", "pieces", `{"e0":"a","e2":"a"}`)
	})
}

// A send to another space waits in its origin's commit, invisible while that is in flight; a send of
// another origin shows that the coordinator is working.
func TestI10_CrossSpaceFollowUp_ParksUntilItsOriginIsConfirmed(t *testing.T) {
	t.Parallel()
	onBothServers(t, func(t *testing.T, base settle.Config) {
		s := newStage(t, base)
		a := s.worker("a")
		held := a.line.holdReceipt("e1")
		s.send("shop", "order", "e1")
		held.wait(t)
		a.notes.waitFor(t, "note in shop: e1 makes 1", 1) // of two twins, the one that stays at home
		s.call("stall", "order", "e2")
		eventually(t, s.client, "ledger", "noted", 1)
		s.wantLane("ledger", 1)
		s.wantLog("ledger", `note: handled "e2 makes 1"`)
		held.letGo()
		eventually(t, s.client, "ledger", "noted", 2)
		s.wantLane("ledger", 2)
		s.wantLog("ledger", `note: handled "e2 makes 1"`, `note: handled "e1 makes 1"`)
	})
}

// An origin that fails has sent nothing, so no other space has to drop anything.
func TestI10_CrossSpaceFollowUp_IsNeverDispatchedIfItsOriginFails(t *testing.T) {
	t.Parallel()
	onBothServers(t, func(t *testing.T, base settle.Config) {
		s := newStage(t, base)
		a := s.worker("a")
		held := a.line.holdReceipt("e1")
		s.send("shop", "order", "e1")
		if c := held.wait(t); len(c.Txs[0].Sends) != 2 || c.Txs[0].Sends[1].To != "ledger" {
			t.Fatalf("the attempt that is to fail does not send anything to the other space: %+v", c.Txs[0])
		}
		s.elsewhere("shop", "closed", true)
		held.letGo()
		if rc := s.ends("shop", "order", "e1"); rc.Outcome != model.Failed {
			t.Errorf("the origin has ended: %s", rc.Outcome)
		}
		s.elsewhere("shop", "closed", false)
		s.call("shop", "order", "e2")
		eventually(t, s.client, "ledger", "noted", 1)
		s.wantLane("ledger", 1)
		a.notes.want(t, "note in ledger: e1 makes 1", 0)
		a.notes.want(t, "note in ledger: e2 makes 1", 1)
	})
}
