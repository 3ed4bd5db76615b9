package bus

import (
	"errors"
	"testing"
	"time"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
)

// An answer has one of these consequences: the end with a sequence or an error, another attempt, or a
// comparison with the stored message.
func TestAppendRulings(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		a     wire.Answer
		doubt bool
		want  string
	}{
		{"stored", wire.Answer{Outcome: wire.Stored, Seq: 9}, false, "sequence 9"},
		{"stored by a later attempt", wire.Answer{Outcome: wire.Stored, Seq: 9}, true, "sequence 9"},
		{"refused", wire.Answer{Outcome: wire.Moved, Seq: 8}, false, "refused"},
		{"refused in doubt", wire.Answer{Outcome: wire.Moved, Seq: 8}, true, "lookup"},
		{"refused with a head that was passed", wire.Answer{Outcome: wire.Moved, Seq: 4}, false, "again"},
		{"refused with no head", wire.Answer{Outcome: wire.Moved, Seq: 0}, true, "again"},
		{"in flight", wire.Answer{Outcome: wire.Busy}, false, "again"},
		{"no leader", wire.Answer{Outcome: wire.Unavailable}, false, "again"},
		{"no room", wire.Answer{Outcome: wire.Full}, false, "again"},
		{"unclear", wire.Answer{Outcome: wire.Unclear}, false, "again"},
		{"too large", wire.Answer{Outcome: wire.TooLarge}, false, "too large"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := unconnected(Config{})
			b.streams.Clustered.Store(true)
			j := &appending{logs: b.logs, a: model.Append{Space: "cart", Expect: 5}}
			if got := describe(j.ruling(test.a, test.doubt)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// A deposed leader may report a head before the expected one, but not for long, and not on a single server.
func TestAppendBelievesAShorterLogInTheEnd(t *testing.T) {
	t.Parallel()
	past := wire.Answer{Outcome: wire.Moved, Seq: 4}
	b := unconnected(Config{})
	b.streams.Timing.PastLimit = time.Minute
	alone := &appending{logs: b.logs, a: model.Append{Space: "cart", Expect: 5}}
	if got := describe(alone.ruling(past, false)); got != "lookup" { // whether the store has gone back
		t.Errorf("on a single server: %s, want lookup", got)
	}
	b.streams.Clustered.Store(true)
	member := &appending{logs: b.logs, a: model.Append{Space: "cart", Expect: 5}}
	if got := describe(member.ruling(past, false)); got != "again" {
		t.Errorf("in a cluster: %s, want again", got)
	}
	member.past = time.Now().Add(-2 * time.Minute)
	if got := describe(member.ruling(past, false)); got != "lookup" {
		t.Errorf("after a long time: %s, want lookup", got)
	}
}

func TestSendRulings(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		a     wire.Answer
		doubt bool
		want  string
	}{
		{"stored", wire.Answer{Outcome: wire.Stored, Seq: 9}, false, "sequence 9"},
		{"there already", wire.Answer{Outcome: wire.Moved, Seq: 3}, false, "sequence 0"},
		{"there already, in doubt", wire.Answer{Outcome: wire.Moved, Seq: 3}, true, "sequence 0"},
		{"taken, maybe by one in flight", wire.Answer{Outcome: wire.Taken}, false, "lookup"},
		{"in flight", wire.Answer{Outcome: wire.Busy}, false, "again"},
		{"no leader", wire.Answer{Outcome: wire.Unavailable}, false, "again"},
		{"no room", wire.Answer{Outcome: wire.Full}, false, "lane full"},
		{"no room, in doubt", wire.Answer{Outcome: wire.Full}, true, "again"},
		{"too large", wire.Answer{Outcome: wire.TooLarge}, false, "too large"},
		{"unclear", wire.Answer{Outcome: wire.Unclear}, false, "again"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := &sending{m: model.Message{Space: "cart", Stream: "add", ID: "e1"}}
			if got := describe(s.ruling(test.a, test.doubt)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// A send in doubt into a full lane ends nevertheless.
func TestSendInDoubtGivesUpOnAFullLane(t *testing.T) {
	t.Parallel()
	s := &sending{}
	for range 100 {
		if describe(s.ruling(wire.Answer{Outcome: wire.Full}, true)) == "lane full" {
			return
		}
	}
	t.Error("it never ends")
}

func describe(v wire.Ruling) string {
	switch {
	case v.Lookup != nil:
		return "lookup"
	case v.Again:
		return "again"
	case errors.Is(v.Err, model.ErrRefused):
		return "refused"
	case errors.Is(v.Err, model.ErrTooLarge):
		return "too large"
	case errors.Is(v.Err, model.ErrLaneFull):
		return "lane full"
	case v.Err != nil:
		return v.Err.Error()
	}
	return "sequence " + string(rune('0'+v.Seq))
}
