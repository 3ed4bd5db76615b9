package ordered

import (
	"fmt"
	"strings"
	"testing"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// What was found to need a commit of its own is nothing any more when what was done before it is
// refused: the key goes on.
func TestLedger_WhatFoundNoRoomIsForgottenAtARefusal(t *testing.T) {
	cfg := Config{Handlers: map[string]Handler{"add": func(tx *Tx, ev *model.Event) (any, error) {
		size := 20 << 10 // a commit takes 28 KiB
		if ev.ID == "e2" {
			size = 10 << 10
		}
		tx.Set(ev.ID, strings.Repeat("x", size))
		return nil, nil
	}}}
	l := newLedger(&cfg, replica.New("k"), 64<<10)
	if c, _ := l.append("o1"); c == nil || !c.Takeover {
		t.Fatalf("first of all comes %+v", c)
	}
	l.confirm(1)
	for i := range 3 {
		l.lane.Offer(model.Event{Space: "k", Stream: "add", ID: fmt.Sprint("e", i+1), Lane: uint64(i + 1)})
	}
	if !l.next(0) {
		t.Fatal("nothing is handled")
	}
	if c, _ := l.append("o1"); c == nil {
		t.Fatal("nothing is appended")
	}
	for l.next(0) { // until there is no room
	}
	if !l.crowded {
		t.Fatal("this proves nothing: there is room for all")
	}
	l.refuse()
	l.resume()
	if !l.next(0) {
		t.Error("the key stands still")
	}
	if c, _ := l.append("o1"); c == nil || c.Txs[0].Receipt.Event != "e1" {
		t.Errorf("%+v is appended", c)
	}
}
