package model

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// However letters and notes are divided into pages, the totals equal those of an index of all of them: even
// for a letter that was stored after a note about it, and for a note without a letter.
func TestDeadTotals_EqualTheCountsOfAnIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []DeadName
		for e := range rapid.IntRange(1, 8).Draw(t, "events") {
			n := DeadName{fmt.Sprint("s", e%2), fmt.Sprint("t", e%3), fmt.Sprint("e", e/2)}
			again := DeadName{n.Space, n.Stream, RedriveID(n.Event)}
			all = append(all, n, n.RedrivenNote(), n.Note(Dismissed), again, again.RedrivenNote(), again.Note(Dismissed))
		}
		all = rapid.Permutation(all).Draw(t, "order")
		all = all[:rapid.IntRange(0, len(all)).Draw(t, "stored")]
		var totals DeadTotals
		index := DeadIndex{}
		for rest := all; len(rest) > 0; {
			page := rest[:rapid.IntRange(1, len(rest)).Draw(t, "page")]
			rest = rest[len(page):]
			before := DeadIndex{}
			_, known := DeadTouched(page)
			for _, n := range known {
				before[n] = index[n]
			}
			for _, n := range page {
				index[n] = true
			}
			totals.Add(page, before)
		}
		for _, space := range []string{"", "s0", "s1", "s2"} {
			for _, stream := range []string{"", "t0", "t1", "t2"} {
				got, kept := totals.Of(space, stream)
				want := index.Count(func(n DeadName) bool {
					return (space == "" || n.Space == space) && (stream == "" || n.Stream == stream)
				})
				if kept != (space == "" || stream == "") || kept && got != want {
					t.Fatalf("of space %q and stream %q: %+v, %v; an index of %v counts %+v", space, stream, got, kept, all, want)
				}
			}
		}
	})
}

// If there are too many streams or spaces, their individual counts are dropped, and the totals stay correct.
func TestDeadTotals_KeepOnlyTheSumOfTooManyKeys(t *testing.T) {
	var totals DeadTotals
	for i := range maxDeadTotals + 1 {
		if _, kept := totals.Of("s0", ""); !kept {
			t.Fatalf("%d spaces are too many", i)
		}
		totals.Add([]DeadName{{fmt.Sprint("s", i), "t", "e"}}, nil)
	}
	if _, kept := totals.Of("s0", ""); kept {
		t.Error("the counts of a space are kept")
	}
	if got, kept := totals.Of("", "t"); !kept || got.Open != maxDeadTotals+1 {
		t.Errorf("the stream has %+v, %v", got, kept)
	}
	if stream, n := totals.MostOpen(); stream != "t" || n != maxDeadTotals+1 {
		t.Errorf("most are %d of %q", n, stream)
	}
	if n := totals.All.Letters; n != maxDeadTotals+1 {
		t.Errorf("%d letters", n)
	}
}
