package bus

import (
	"errors"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
)

// What an answer leads to: the end with a sequence or an error, another attempt, or
// a look at who stands there.
func TestAppendRulings(t *testing.T) {
	tests := []struct {
		name  string
		a     answer
		doubt bool
		want  string
	}{
		{"stored", answer{outcome: stored, seq: 9}, false, "sequence 9"},
		{"stored by a later attempt", answer{outcome: stored, seq: 9}, true, "sequence 9"},
		{"refused", answer{outcome: moved, seq: 8}, false, "refused"},
		{"refused in doubt", answer{outcome: moved, seq: 8}, true, "lookup"},
		{"refused with a head that was passed", answer{outcome: moved, seq: 4}, false, "again"},
		{"refused with no head", answer{outcome: moved, seq: 0}, true, "again"},
		{"in flight", answer{outcome: busy}, false, "again"},
		{"no leader", answer{outcome: unavailable}, false, "again"},
		{"no room", answer{outcome: full}, false, "again"},
		{"unclear", answer{outcome: unclear}, false, "again"},
		{"too large", answer{outcome: tooLarge}, false, "too large"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := unconnected(Config{})
			b.clustered.Store(true)
			j := &appending{logs: b.logs, a: model.Append{Space: "cart", Expect: 5}}
			if got := describe(j.judge(test.a, test.doubt)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// A head from before the one expected is a deposed leader's, but not for ever, and
// not where there is only one server.
func TestAppendBelievesAShorterLogInTheEnd(t *testing.T) {
	past := answer{outcome: moved, seq: 4}
	b := unconnected(Config{})
	b.timing.pastLimit = time.Minute
	alone := &appending{logs: b.logs, a: model.Append{Space: "cart", Expect: 5}}
	if got := describe(alone.judge(past, false)); got != "lookup" { // whether the store has gone back
		t.Errorf("on a single server: %s, want lookup", got)
	}
	b.clustered.Store(true)
	member := &appending{logs: b.logs, a: model.Append{Space: "cart", Expect: 5}}
	if got := describe(member.judge(past, false)); got != "again" {
		t.Errorf("in a cluster: %s, want again", got)
	}
	member.past = time.Now().Add(-2 * time.Minute)
	if got := describe(member.judge(past, false)); got != "lookup" {
		t.Errorf("after a long time: %s, want lookup", got)
	}
}

func TestSendRulings(t *testing.T) {
	tests := []struct {
		name  string
		a     answer
		doubt bool
		want  string
	}{
		{"stored", answer{outcome: stored, seq: 9}, false, "sequence 9"},
		{"there already", answer{outcome: moved, seq: 3}, false, "sequence 0"},
		{"there already, in doubt", answer{outcome: moved, seq: 3}, true, "sequence 0"},
		{"taken, maybe by one in flight", answer{outcome: taken}, false, "lookup"},
		{"in flight", answer{outcome: busy}, false, "again"},
		{"no leader", answer{outcome: unavailable}, false, "again"},
		{"no room", answer{outcome: full}, false, "lane full"},
		{"no room, in doubt", answer{outcome: full}, true, "again"},
		{"too large", answer{outcome: tooLarge}, false, "too large"},
		{"unclear", answer{outcome: unclear}, false, "again"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := &sending{m: model.Message{Space: "cart", Stream: "add", ID: "e1"}}
			if got := describe(s.judge(test.a, test.doubt)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// A send in doubt into a full lane ends all the same.
func TestSendInDoubtGivesUpOnAFullLane(t *testing.T) {
	s := &sending{}
	for range 100 {
		if describe(s.judge(answer{outcome: full}, true)) == "lane full" {
			return
		}
	}
	t.Error("it never ends")
}

func describe(v ruling) string {
	switch {
	case v.lookup != nil:
		return "lookup"
	case v.again:
		return "again"
	case errors.Is(v.err, model.ErrRefused):
		return "refused"
	case errors.Is(v.err, model.ErrTooLarge):
		return "too large"
	case errors.Is(v.err, model.ErrLaneFull):
		return "lane full"
	case v.err != nil:
		return v.err.Error()
	}
	return "sequence " + string(rune('0'+v.seq))
}
