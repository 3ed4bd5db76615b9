package space

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
)

// Room for events that wait for a time: in the lane when the time has come, and in the space until then.

// maxQueued is the maximum number of events that are in the lane because their time has come.
const maxQueued = 1024

// More events are due than fit into the lane, and its head waits for its next attempt, or the commit is full.
// Whatever makes room causes a Settle anyway, so Ready.Due must not name a time that has passed, again and
// again.
func TestLater_EventsThatAreDueButBlockedRequestNoWakeUp(t *testing.T) {
	w := newWorld(t)
	p := newProgram(t)
	block := false
	p.handle("plan", func(tx *Tx, ev *model.Event) any {
		if block {
			return Transient(errors.New("not now"))
		}
		return nil
	})
	h := w.host("r1", p.Program, func(c *Config) { c.EventRetries, c.MaxGroup = 1000, 4 })
	h.wall = noon
	h.takeOver()
	for i := range maxQueued + 10 {
		w.sendAt(fmt.Sprintf("e%04d", i), noon+1000, "")
	}
	w.sendAt("last", noon+5000, "")
	h.run()
	h.pass(1000)
	block = true
	h.run()
	if h.last.More || h.last.Wake <= h.now || h.last.Due != 0 {
		t.Errorf("at %d the lane is full, and its head waits: %+v", h.now, h.last)
	}
	block = false
	h.pass(4000)
	h.settleAll()
	if h.last.More || h.last.Due != 0 {
		t.Errorf("with a full commit under way: %+v", h.last)
	}
	h.run()
	if got := w.receipts(home); len(got) != maxQueued+11 {
		t.Errorf("%d events are handled", len(got))
	}
}

// The number of waiting events is limited. A timer that is set again takes no further room, and one that is
// handled or cancelled frees its room.
func TestTimers_SettingATimerAgainNeedsNoRoom(t *testing.T) {
	w := newWorld(t)
	h := w.plans(t, "r1", func(c *Config) { c.MaxLater = 2 })
	w.sendAt("e1", 0, "set a 1000\nset b 5000")
	for i, steps := range []string{
		"set a 2000",                         // replaces the previous a
		"cancel a\nset a 2000\nset b 6000",   // replaces a again
		"cancel b\nset c 3000",               // takes the room of b
		"set a 2000\nset d 2000",             // no room for d
		"cancel c\nafter 1 home\nset c 3000", // no room for c either
		"cancel x\nset d 3000",               // cancelling x frees no room
		"cancel c\nset c 3000\nset d 3000",   // c frees room, but takes it again
	} {
		w.sendAt(fmt.Sprint("f", i), 0, steps)
	}
	h.run()
	w.wantReceipts("e1 handled", "f0 handled", "f1 handled", "f2 handled", "f3 failed", "f4 failed", "f5 failed", "f6 failed")
	if r := w.replica(home); r.Later.Len() != 2 || r.Later.Next() != noon+2000 {
		t.Errorf("%d wait, the first until %d", r.Later.Len(), r.Later.Next())
	}
}

func TestTimers_AHandlerSetsItsOwnAgainThoughAsManyWaitAsMay(t *testing.T) {
	p := newProgram(t)
	p.handle("tick", func(tx *Tx, ev *model.Event) any {
		tx.SetTimer("tick", "tick", tx.Now().Add(time.Second), nil)
		return nil
	}).handle("later", func(tx *Tx, ev *model.Event) any {
		tx.SendAfter(home, "later", time.Second, nil)
		return nil
	}).handle("two", func(tx *Tx, ev *model.Event) any {
		tx.SendAfter(home, "later", time.Second, nil)
		tx.SendAfter(home, "later", time.Second, nil)
		return nil
	})
	w := newWorld(t)
	h := w.host("r1", p.Program, func(c *Config) { c.MaxLater = 3 })
	h.wall = noon
	h.takeOver()
	for _, stream := range []string{"tick", "later"} {
		w.send(home, stream, "first-"+stream, nil)
	}
	w.publish(model.Event{Space: home, Stream: "two", ID: "e2", NotBefore: noon + 5500})
	h.run()
	for range 10 {
		h.pass(1000)
		h.run()
	}
	r := w.replica(home)
	if r.Later.Len() != 2 {
		t.Errorf("%d events wait, want tick and later", r.Later.Len())
	}
	r.Later.Each(func(wa *model.Waiting) {
		if wa.Slot > 4 {
			t.Errorf("%s waits in slot %d: slots are not reused", wa.ID, wa.Slot)
		}
	})
	got := w.receipts(home)
	if failed := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return strings.HasSuffix(s, " handled") }); !slices.Equal(failed, []string{"e2 failed"}) {
		t.Errorf("receipts %v, of which %v have not been handled; want e2, which has room for one", got, failed)
	}
}

// The room of a job's event is reserved for its next time, whatever its handler sends.
func TestCron_AHandlerHasNoRoomOfItsOwnWhereTheNextTimeGoes(t *testing.T) {
	p := newProgram(t)
	p.handle("tick", func(tx *Tx, _ *model.Event) any {
		tx.SendAfter(home, "e", time.Hour, nil)
		return nil
	}).handle("e", func(*Tx, *model.Event) any { return nil })
	if err := p.Program.Cron(CronSpec{Name: "job", Stream: "tick", Spec: "1s", Schedule: every(1000)}); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	h := w.host("r1", p.Program, func(c *Config) { c.MaxLater = 3 })
	h.wall = noon
	h.takeOver()
	for range 5 {
		h.run()
		h.pass(1000)
	}
	if r := w.replica(home); r.Later.Len() != 3 {
		t.Errorf("%d events wait, want the job and two that it has sent", r.Later.Len())
	}
}
