package bus

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus/internal/bustest"
	"github.com/settlehq/settle/model"
)

// A partition whose spaces send to each other has the data of its commits delivered; one where nearly none does, not.
func TestBodies_AreLeftOutWhereNearlyAllEntriesAreInert(t *testing.T) {
	t.Parallel()
	b := &bodies{}
	consumers := 0
	begin := func() bool { consumers++; return b.left() }
	entries := func(n int, inert bool) {
		for range n {
			if b.note(inert); b.change() {
				begin()
			}
		}
	}
	if begin() {
		t.Error("the first consumer leaves them out")
	}
	for range 10 {
		entries(mostlyInert-1, true)
		entries(1, false)
	}
	if b.without || consumers != 1 {
		t.Errorf("with one of %d that is not inert, consumer %d leaves them out: %v", mostlyInert, consumers, b.without)
	}
	entries(mostlyInert, true)
	if !b.without || consumers != 2 {
		t.Errorf("after %d inert ones, consumer %d leaves them out: %v", mostlyInert, consumers, b.without)
	}
	for range 10 {
		entries(25, true)
		entries(1, false)
	}
	if !b.without || consumers != 2 {
		t.Errorf("with few that are not, consumer %d leaves them out: %v", consumers, b.without)
	}
	entries(manyOthers, false)
	if b.without || consumers != 3 {
		t.Errorf("with many that are not, consumer %d leaves them out: %v", consumers, b.without)
	}
}

// An entry that was delivered without its data exists. A leader that has none of the kind was deposed and does not know it yet, and one that
// has another commit there has lost the end of the log: neither says what the coordinator has to release.
func TestFollowReleases_TheDataOfAnEntryIsThatOfTheSameCommit(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(nc *nats.Conn, request string, m *nats.Msg) bool{
		"a deposed leader": func(_ *nats.Conn, _ string, m *nats.Msg) bool {
			return m.Respond([]byte(`{"error":{"code":404,"err_code":10037,"description":"no message found"}}`)) == nil
		},
		"another commit": func(nc *nats.Conn, request string, m *nats.Msg) bool {
			return bustest.Amend(nc, request, m, func(a *server.JSApiMsgGetResponse) {
				a.Message.Header, a.Message.Data = []byte("NATS/1.0\r\nSettle-Commit: b/0/1\r\n\r\n"), []byte("of another commit")
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := embeddedBus(t, Config{})
			for i := range uint64(mostlyInert + 1) {
				inert := i < mostlyInert
				if _, err := appendTo(b, model.Append{Space: "cart", ID: fmt.Sprintf("a/0/%d", i+1), Expect: i, Inert: inert, Data: []byte("sends")}); err != nil {
					t.Fatal(err)
				}
			}
			var asked atomic.Int64
			relayed(t, b, func(nc *nats.Conn, request string, m *nats.Msg) bool {
				return strings.HasPrefix(request, "STREAM.MSG.GET.SETTLE_LOG") && asked.Add(1) == 1 && answer(nc, request, m)
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			time.AfterFunc(20*time.Second, cancel)
			var last model.LogEntry
			_ = b.FollowReleases(ctx, 0, 0, func(e model.LogEntry) {
				if last = e; e.Seq > mostlyInert {
					cancel()
				}
			})
			if last.ID != "a/0/257" || string(last.Data) != "sends" || asked.Load() < 2 {
				t.Errorf("the last entry is %s with %q, after %d requests", last.ID, last.Data, asked.Load())
			}
		})
	}
}
