package wire

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// A list of last messages ends when each subject that existed has arrived, or after a limit.
func TestTailEnd_WaitsForEachSubject(t *testing.T) {
	e := end{found: 2, known: true, subjects: map[string]bool{}}
	e.delivered(Delivery{Msg: &nats.Msg{Subject: "a"}}) // nothing is pending: the other is being replaced
	if e.reached(time.Hour) {
		t.Error("one of two subjects was delivered, and that is the end")
	}
	e.delivered(Delivery{Msg: &nats.Msg{Subject: "b"}})
	if !e.reached(time.Hour) {
		t.Error("both were delivered, and that is not the end")
	}
}

// A client can send headers that the server also adds: the server's own come last.
func TestHeaders_WhatTheServerAddsIsTheLast(t *testing.T) {
	h := nats.Header{HeaderSequence: {"99", "7"}}
	if got := AddedNumber(h, HeaderSequence); got != 7 {
		t.Errorf("sequence %d, want 7", got)
	}
}
