package settle_test

import (
	"errors"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/settletest"
)

// A space whose event was rejected gets a notice with code and data; there is no dead letter, and no problem.
func TestReject_TheSendingSpaceIsNotified(t *testing.T) {
	t.Parallel()
	reserve := settle.NewStream[int]("reserve")
	buy := settle.NewStream[int]("buy")
	undelivered := settle.NewStream[settle.Value](model.Undelivered)
	notice := settle.NewCell[settle.Value]("notice")
	p := settle.NewProgram("p")
	buy.Handle(p, func(tx *settle.Tx, n int) error {
		reserve.Send(tx, settle.To("bank"), n)
		return nil
	})
	reserve.Handle(p, func(_ *settle.Tx, n int) error {
		return settle.Reject("limit", "it is too much", map[string]int{"most": n - 1})
	})
	undelivered.Handle(p, func(tx *settle.Tx, v settle.Value) error {
		notice.Set(tx, v)
		return nil
	})
	w := settletest.New(t, p)
	shop := w.Space("shop")
	settletest.Send(shop, buy, 10)
	v := shop.Get("notice")
	for path, want := range map[string]string{"code": `"limit"`, "reason": `"it is too much"`, "data": `{"most":9}`, "to": `"bank"`, "stream": `"reserve"`} {
		if got := v.Get(path).String(); got != want {
			t.Errorf("%s of the notice is %s, want %s", path, got, want)
		}
	}
	if letters := w.DeadLetters(); len(letters) != 0 {
		t.Errorf("dead letters: %v", letters)
	}
}

// A rejection that is marked as transient is tried again, and fails in the end; one with an impossible code is an error of the program.
func TestReject_WhatIsNoRejectionFails(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"transient":    settle.Transient(settle.Reject("full", "", nil)),
		"no code":      settle.Reject("", "x", nil),
		"a space":      settle.Reject("not valid", "x", nil),
		"data":         settle.Reject("full", "x", func() {}),
		"another type": errors.New("full"),
	} {
		t.Run(name, func(t *testing.T) {
			do := settle.NewStream[int]("do")
			p := settle.NewProgram("p")
			do.Handle(p, func(*settle.Tx, int) error { return err })
			w := settletest.New(t, p)
			settletest.SendID(w.Space("s"), do, settle.ID("e1"), 1)
			w.Advance(time.Minute)
			if rc, _ := w.Space("s").Receipt("do", settle.ID("e1")); rc.Outcome != model.Failed || rc.Code != "" {
				t.Errorf("%+v", rc)
			}
		})
	}
}
