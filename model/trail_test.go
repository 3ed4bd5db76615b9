package model

import (
	"fmt"
	"slices"
	"testing"
)

// A change that goes round through three documents of other spaces: the trail names each once, and counts from the second time on.
func TestTrail_CountsWhatItComesThroughAgain(t *testing.T) {
	var trail *Trail
	for round := range uint64(3) {
		for i, at := range []string{"a", "b", "c"} {
			trail = trail.Through(at, "x")
			n, want := round*3+uint64(i)+1, []string{"a/x", "b/x", "c/x"}
			if round > 0 {
				want = slices.Concat(want[i+1:], want[:i+1])
			} else {
				want = want[:i+1]
			}
			if steps := n - min(n, 3); trail.Steps != steps || !slices.Equal(trail.Docs, want) {
				t.Fatalf("after %d documents: %+v, want %d steps, %v", n, trail, steps, want)
			}
		}
	}
}

// A trail does not grow beyond its limit, and a circle that is longer is counted all the same.
func TestTrail_ALongerWayIsCountedToo(t *testing.T) {
	var trail *Trail
	for i := range 100 {
		trail = trail.Through(fmt.Sprint("s", i), "x")
	}
	if len(trail.Docs) != MaxTrail || trail.Docs[MaxTrail-1] != "s99/x" || trail.Steps != 100-MaxTrail {
		t.Errorf("%+v, want the last %d documents and %d steps", trail, MaxTrail, 100-MaxTrail)
	}
}

func TestTrail_Further(t *testing.T) {
	short, long, turned := &Trail{Docs: []string{"a/x"}}, &Trail{Docs: []string{"a/x", "b/x"}}, &Trail{Docs: []string{"a/x"}, Steps: 1}
	for _, c := range [][3]*Trail{{nil, nil, nil}, {short, nil, short}, {nil, short, short}, {short, long, long}, {long, turned, turned}, {turned, long, turned}} {
		if got := c[0].Further(c[1]); got != c[2] {
			t.Errorf("%+v and %+v: %+v", c[0], c[1], got)
		}
	}
}

func TestBounds_Trails(t *testing.T) {
	for _, via := range []*Trail{{Docs: make([]string, MaxTrail+1)}, {Docs: []string{string(make([]byte, 2*MaxNameLen+2))}}, {Steps: MaxNumber + 1}} {
		c := Commit{Version: CommitVersion, Space: "s", Txs: []Tx{{N: 1, By: "b", Via: via}}}
		if _, err := DecodeCommit(AppendCommit(nil, &c, nil)); err == nil {
			t.Errorf("a commit with the trail %+v is accepted", via)
		}
	}
}
