package bus

import (
	"strconv"
	"testing"
)

func TestRevisions_OfAnEvictedSpaceAreForgotten(t *testing.T) {
	t.Parallel()
	var r revisions
	for i := range 1000 {
		space := "s" + strconv.Itoa(i)
		r.note(space+".a", uint64(i+1), uint64(2*i))
		r.note(space+".a", uint64(i+2), uint64(2*i+1)) // once more
		r.note(space+".b", uint64(i+3), uint64(2*i))
		if i > 0 {
			r.forget(space)
		}
	}
	if n := r.len(); n != 2 {
		t.Errorf("%d items are remembered, want the two of the space that has not left", n)
	}
	if seq, known := r.seq("s0.a", 2); !known || seq != 1 {
		t.Errorf("item s0.a: %d, %v, want 1", seq, known)
	}
	if _, known := r.seq("s1.a", 3); known {
		t.Error("an item of a space that has left is known")
	}
}

func TestRevisions_AreBounded(t *testing.T) {
	t.Parallel()
	var r revisions
	for i := range 5 * revisionsRoom {
		r.note("s"+strconv.Itoa(i)+".a", 1, 1)
	}
	if n := r.len(); n > 2*revisionsRoom {
		t.Errorf("%d items are remembered, want %d at most", n, 2*revisionsRoom)
	}
	if _, known := r.seq("s"+strconv.Itoa(5*revisionsRoom-1)+".a", 1); !known {
		t.Error("the latest item is not known")
	}
}
