package model

import (
	"strings"
	"testing"
)

func TestRedriveID_NumbersTheAttempts(t *testing.T) {
	for _, id := range []string{"order-17", "a:1:2:0", "a:1:2:0:undelivered", "r1", "x-r1"} {
		first := RedriveID(id)
		second := RedriveID(first)
		if first != id+":r1" || second != id+":r2" || RedriveID(id) != first {
			t.Errorf("%s is redriven as %s, then as %s", id, first, second)
		}
		if _, minted := OriginOf(first); minted || CheckEventID(first) == nil || CheckAnyEventID(first) != nil {
			t.Errorf("%s is mistaken for a send or a client's id, or no lane accepts it", first)
		}
		if of, ok := RedriveOf(second); !ok || of != first {
			t.Errorf("%s is a redrive of %q", second, of)
		}
		if of, ok := RedriveOf(first); !ok || of != id {
			t.Errorf("%s is a redrive of %q", first, of)
		}
		if of, ok := RedriveOf(id); ok {
			t.Errorf("%s is a redrive of %q", id, of)
		}
	}
	for _, id := range []string{"x:r0", "x:r01", "x:r", "x:rx"} {
		if of, ok := RedriveOf(id); ok {
			t.Errorf("%s is a redrive of %q", id, of)
		}
	}
	if id := RedriveID(strings.Repeat("x", MaxEventIDLen)); CheckAnyEventID(id) != nil {
		t.Error("the longest id cannot be redriven")
	}
}
