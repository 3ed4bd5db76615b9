package bus_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
)

// A space that is loaded usually finds no commit after its checkpoint, or one. The server must not have to search its
// log for that.
func TestReadLog_AfterTheHeadSearchesNothing(t *testing.T) {
	var searches atomic.Int64
	b := through(t, func(request string, _ *nats.Msg) bool {
		if strings.HasPrefix(request, "DIRECT.GET.SETTLE_LOG") {
			searches.Add(1)
		}
		return true
	})
	if err := b.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := mustAppend(t, b, "cart", "a/0/1", 0)
	second := mustAppend(t, b, "cart", "a/0/2", first)
	mustAppend(t, b, "shop", "a/0/1", 0)
	head := mustAppend(t, b, "cart", "a/0/3", second)
	for _, test := range []struct {
		after    uint64
		want     []uint64
		searches int64
	}{
		{head + 1, nil, 0},
		{head, nil, 0},
		{head - 1, []uint64{head}, 0},
		{second, []uint64{head}, 0},
		{first, []uint64{second, head}, 1},
		{0, []uint64{first, second, head}, 1},
	} {
		searches.Store(0)
		found, err := b.ReadLog(t.Context(), "cart", test.after, 10)
		var seqs []uint64
		for _, e := range found {
			seqs = append(seqs, e.Seq)
			if want := map[uint64]uint64{second: first, head: second}[e.Seq]; e.Prev != want || e.ID == "" || len(e.Data) == 0 || e.Stored.IsZero() {
				t.Errorf("after %d: %+v, and its predecessor is %d", test.after, e, want)
			}
		}
		if err != nil || !slices.Equal(seqs, test.want) || searches.Load() != test.searches {
			t.Errorf("after %d: %v by %d searches, %v; want %v by %d", test.after, seqs, searches.Load(), err, test.want, test.searches)
		}
	}
}
