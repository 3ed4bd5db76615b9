package bus

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/model"
)

// A server that has just come to lead may not have taken in everything yet: the end of a stream is asked for again before
// it is said to have lost messages.
func TestReach_OneLookIsNotEnough(t *testing.T) {
	for name, c := range map[string]struct {
		behind int // so many answers are of a log that ends earlier
		lost   bool
	}{
		"behind at first": {2, false},
		"behind for long": {looks, true},
	} {
		b := storedLog(t, Config{AckTimeout: 10 * time.Second})
		if err := b.SavePosition(t.Context(), 0, "released", 3); err != nil {
			t.Fatal(err)
		}
		behind := c.behind
		relayed(t, b, func(nc *nats.Conn, request string, m *nats.Msg) bool {
			if request != "STREAM.INFO."+pastLog || behind == 0 {
				return false
			}
			behind--
			return amend(nc, request, m, func(a *server.JSApiStreamInfoResponse) { a.State.LastSeq = 2 })
		})
		r := (&surveyor{Survey: &Survey{}, b: b}).reach(t.Context(), 0)
		if lost := len(r.Lost("settle")) > 0; lost != c.lost {
			t.Errorf("%s: lost: %v", name, r.Lost("settle"))
		}
	}
}

// The oldest open letter and the first error of the stream with most of them need not be the same letter.
func TestDead_TheOldestOpenLetterAndTheStreamOfMost(t *testing.T) {
	b := embeddedBus(t, Config{AckTimeout: 10 * time.Second})
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
		if err := b.Bury(t.Context(), &d); err != nil {
			t.Fatal(err)
		}
	}
	f := (&surveyor{Survey: &Survey{}, b: b}).dead(context.Background())
	if f == nil || !f.OldestOpen.Equal(begun.Add(2*time.Second)) || f.Stream != "more" || f.OfStream != 2 || len(f.Firsts) != 2 || f.Firsts[1].Error != "of e3" {
		t.Errorf("it says %+v, begun %v", f, begun)
	}
}

func TestMostOpen_OfStreamsWithAsManyTheFirstByName(t *testing.T) {
	var names []model.DeadName
	for _, stream := range []string{"d", "b", "a", "c", "b", "a"} {
		names = append(names, model.DeadName{Space: "s", Stream: stream, Event: "e" + string(rune('0'+len(names)))})
	}
	if stream, n := mostOpen(names, model.NewDeadIndex(names)); stream != "a" || n != 2 {
		t.Errorf("%d of %s", n, stream)
	}
}
