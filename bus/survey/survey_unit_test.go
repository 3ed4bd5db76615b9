package survey

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/internal/bustest"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/model"
)

// A new leader may not have applied everything yet: the end of a stream is read again before lost messages
// are reported.
func TestReach_OneReadIsNotEnough(t *testing.T) {
	for name, c := range map[string]struct {
		behind int // how many answers are of a log that ends earlier
		lost   bool
	}{
		"lagging at first": {2, false},
		"lagging for long": {looks, true},
	} {
		b, s := deployed(t)
		appended(t, b, 3)
		if err := b.SavePosition(t.Context(), 0, "released", 3); err != nil {
			t.Fatal(err)
		}
		behind := c.behind
		b.Streams().API = bustest.Relay(t, s, func(nc *nats.Conn, request string, m *nats.Msg) bool {
			if request != "STREAM.INFO.SETTLE_LOG_0" || behind == 0 {
				return false
			}
			behind--
			return bustest.Amend(nc, request, m, func(a *server.JSApiStreamInfoResponse) { a.State.LastSeq = 2 })
		})
		var err error
		streams := b.Streams()
		if streams.JS, err = jetstream.NewWithAPIPrefix(b.Conn(), streams.API); err != nil {
			t.Fatal(err)
		}
		r := (&surveyor{Survey: &Survey{}, b: b}).reach(t.Context(), 0)
		if lost := len(r.Lost("settle")) > 0; lost != c.lost {
			t.Errorf("%s: lost: %v", name, r.Lost("settle"))
		}
	}
}

// The oldest open letter and the first error of the stream with most letters need not be the same letter.
func TestDead_TheOldestOpenLetterAndTheStreamOfMost(t *testing.T) {
	b, _ := deployed(t)
	begun := time.Now().UTC()
	dismissed := model.DeadName{Space: "cart", Stream: "done", Event: "e1"}.Note(model.Dismissed)
	for n, d := range []model.DeadLetter{
		{Stream: "done", Event: "e1"},
		{Stream: "done", Event: dismissed.Event},
		{Stream: "few", Event: "e2"},
		{Stream: "more", Event: "e3"},
		{Stream: "more", Event: "e4"},
	} {
		d.Version, d.Space, d.Outcome, d.Ended, d.Error = model.DeadVersion, "cart", model.Failed, begun.Add(time.Duration(n)*time.Second), "of "+d.Event
		if n == 1 {
			d.Outcome = model.Dismissed
		}
		if err := b.StoreDead(t.Context(), &d); err != nil {
			t.Fatal(err)
		}
	}
	f := (&surveyor{Survey: &Survey{}, b: b}).dead(context.Background())
	if f == nil || !f.OldestOpen.Equal(begun.Add(2*time.Second)) || f.Stream != "more" || f.OfStream != 2 || len(f.Firsts) != 2 || f.Firsts[1].Error != "of e3" {
		t.Errorf("the facts are %+v, begun %v", f, begun)
	}
}

// deployed returns a bus with a deployment of one partition on its own server.
func deployed(t *testing.T) (*bus.Bus, *embedded.Server) {
	t.Helper()
	s := natstest.StartServer(t, embedded.Config{})
	b, err := bus.Connect(t.Context(), bus.Config{Server: s, Partitions: 1, AckTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b, s
}

// appended appends n commits to the log of a space.
func appended(t *testing.T, b *bus.Bus, n uint64) {
	t.Helper()
	for i := range n {
		done := make(chan error, 1)
		b.Append(model.Append{Space: "cart", ID: fmt.Sprint("a/0/", i+1), Expect: i}, func(_ uint64, err error) { done <- err })
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}
