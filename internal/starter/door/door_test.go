package main

import (
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/settletest"
)

func TestDoor_LocksItself(t *testing.T) {
	t.Parallel()
	w := settletest.New(t, house())
	home := w.Space("home")
	settletest.Call(home, unlock)
	settletest.Expect(home, status, "closed")
	w.Advance(30 * time.Second)
	settletest.Expect(home, status, "locked")
}

func TestDoor_DoesNotLockWhileItIsOpen(t *testing.T) {
	t.Parallel()
	w := settletest.New(t, house())
	home := w.Space("home")
	settletest.Call(home, unlock)
	settletest.Call(home, enter, Visit{By: "ann"})
	w.Advance(24 * time.Hour)
	settletest.Expect(home, status, "open")
	settletest.Call(home, leave)
	w.Advance(30 * time.Second)
	settletest.Expect(home, status, "locked")
}

func TestDoor_AnEventIsCountedOnce(t *testing.T) {
	t.Parallel()
	home := settletest.New(t, house()).Space("home")
	settletest.Call(home, unlock)
	settletest.SendID(home, enter, settle.ID("visit-1"), Visit{By: "ann"})
	settletest.SendID(home, enter, settle.ID("visit-1"), Visit{By: "ann"})
	settletest.SendID(home, enter, settle.ID("visit-2"), Visit{By: "bob"})
	if n := door.Get(home).Visits; n != 2 {
		t.Errorf("%d visits, want 2", n)
	}
}

func TestDoor_OpensForNobodyWhileItIsLocked(t *testing.T) {
	t.Parallel()
	home := settletest.New(t, house()).Space("home")
	if rc := settletest.Send(home, enter, Visit{By: "ann"}); rc.Outcome != model.Failed {
		t.Errorf("the event is %v, want failed", rc.Outcome)
	}
}
