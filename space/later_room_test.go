package space

import (
	"errors"
	"fmt"
	"testing"

	"github.com/settlehq/settle/model"
)

// What waits for a time finds room: in the lane when the time has come, and in the space
// until then.

// More events are due than the lane takes, and its head waits for its next attempt, or the
// commit is full. What makes room causes a Settle anyway, so the host is not to come back at a
// time that has passed, again and again.
func TestLater_WhatIsDueAlreadyAsksForNoTimeWhileSomethingIsInItsWay(t *testing.T) {
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
		t.Errorf("%d are handled", len(got))
	}
}
