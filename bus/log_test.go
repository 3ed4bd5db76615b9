package bus_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
)

// A space that is loaded usually finds no commit after its checkpoint. The server must not have to search its
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
	head := mustAppend(t, b, "cart", "a/0/2", first)
	mustAppend(t, b, "shop", "a/0/1", 0)
	for after, want := range map[uint64]int64{head: 0, head + 1: 0, first: 1} {
		searches.Store(0)
		found, err := b.ReadLog(t.Context(), "cart", after, 10)
		if err != nil || int64(len(found)) != want || searches.Load() != want {
			t.Errorf("after %d: %d entries by %d searches, %v; want %d", after, len(found), searches.Load(), err, want)
		}
	}
}
