package main

import (
	"fmt"
	"time"

	"github.com/settlehq/settle"
)

// Door is a document that handlers write.
type Door struct {
	Locked bool `json:"locked"`
	Open   bool `json:"open"`
	Visits int  `json:"visits"`
}

// Visit is what an event to open the door carries.
type Visit struct {
	By string `json:"by"`
}

var (
	door   = settle.NewCell[Door]("door").Or(Door{Locked: true})
	status = settle.NewDerived[string]("status")

	unlock = settle.NewTrigger("unlock")
	lock   = settle.NewTrigger("lock")
	enter  = settle.NewRequest[Visit, int]("open")
	leave  = settle.NewTrigger("close")
)

const locksAfter = 30 * time.Second

// house returns the program: a door that locks itself, half a minute after it was unlocked, or closed.
func house() *settle.Program {
	p := settle.NewProgram("house").Documents(door)
	unlock.Handle(p, func(tx *settle.Tx) error {
		door.Update(tx, func(d *Door) { d.Locked = false })
		return lockLater(tx)
	})
	lock.Handle(p, func(tx *settle.Tx) error {
		door.Update(tx, func(d *Door) { d.Locked = !d.Open })
		return nil
	})
	enter.Handle(p, func(tx *settle.Tx, v Visit) (int, error) {
		d := door.Get(tx)
		if d.Locked {
			return 0, fmt.Errorf("the door is locked; %s has to unlock it first", v.By)
		}
		d.Open = true
		d.Visits++
		door.Set(tx, d)
		tx.CancelTimer("lock")
		return d.Visits, nil
	})
	leave.Handle(p, func(tx *settle.Tx) error {
		door.Update(tx, func(d *Door) { d.Open = false })
		return lockLater(tx)
	})
	status.Compute(p, func(v *settle.View) (string, error) {
		switch d := door.Get(v); {
		case d.Open:
			return "open", nil
		case d.Locked:
			return "locked", nil
		}
		return "closed", nil
	})
	return p
}

func lockLater(tx *settle.Tx) error {
	lock.SetTimer(tx, "lock", tx.Now().Add(locksAfter))
	return nil
}
