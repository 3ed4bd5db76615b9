package main

import (
	"testing"
)

func seen(t *testing.T, p plan) *row {
	t.Helper()
	p.Spaces, p.Fault, p.Hit, p.Nodes = 10, power, 1, 1
	r, err := p.run(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	if r.Broken > 0 || r.Duplicates > 0 || r.Disorder > 0 || r.Acked == 0 || r.Receipts == 0 {
		t.Errorf("%+v", *r)
	}
	return r
}

func TestNothingAcknowledgedIsLostWithSyncAlways(t *testing.T) {
	if r := seen(t, plan{Sync: "always", Cuts: 2, Torn: true, Seed: 1}); r.LostEvents+r.LostReceipts > 0 {
		t.Errorf("%+v", *r)
	}
}

// The control: if nothing were lost here, the test above would prove nothing.
func TestAPowerCutWithTheServersDefaultLoses(t *testing.T) {
	if r := seen(t, plan{Sync: "default", Cuts: 1, Seed: 1}); r.LossyCuts != 1 || r.LostEvents == 0 {
		t.Errorf("%+v", *r)
	}
}
