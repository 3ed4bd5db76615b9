package test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
)

// A handling and its receipt are one commit, so a conflict about some other document
// refuses both, as often as it takes; and when they are stored at last and the answer
// is lost, the receipt that is there is the handling's own.
func TestI11_ReceiptWithARetryableConflictElsewhere_TheHandlerRetriesAndCommits(t *testing.T) {
	onBothServers(t, func(t *testing.T, base settle.Config) {
		s := newStage(t, base)
		var loseAnswer atomic.Int32
		a := s.worker("a", func(c *bus.Config) {
			c.AckTimeout = 100 * time.Millisecond
			c.Faults = func(at bus.Attempt) bus.Fault {
				if at.Op == bus.OpAppend && loseAnswer.Add(-1) == 0 {
					return bus.DropAck
				}
				return bus.Deliver
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
