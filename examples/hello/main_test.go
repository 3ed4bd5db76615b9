package main

import (
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/settletest"
)

func TestCounter(t *testing.T) {
	t.Parallel()
	alice := settletest.New(t, counter()).Space("alice")
	settletest.SendID(alice, add, settle.ID("order-17"), 2)
	settletest.SendID(alice, add, settle.ID("order-17"), 2) // it is the same event
	settletest.Call(alice, add, 40)
	alice.ExpectRuns("double", 0) // not observed
	settletest.Expect(alice, double, 84)
}
