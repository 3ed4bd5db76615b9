package wire

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/settlehq/settle/internal/seeded" // see there
	"github.com/settlehq/settle/model"
)

// An event's subject, which the server accepts once, is always the same for the same event, and different for
// another space, stream or id. Its parts can be read from it: no name can extend into the next.
func TestO03_O04_AnEventHasOneSubjectAndNoOtherHasIt(t *testing.T) {
	n := NewNames("settle")
	names := []string{"a", "b", "a-b", "a_b", "ab", "1"}
	ids := slices.Concat(names, []string{"a:1:2:3", "a:1:2:4", "b:1:2:3"})
	rapid.Check(t, func(t *rapid.T) {
		event := rapid.Custom(func(t *rapid.T) model.Message {
			return model.Message{
				Space:  rapid.SampledFrom(names).Draw(t, "space"),
				Stream: rapid.SampledFrom(names).Draw(t, "stream"),
				ID:     rapid.SampledFrom(ids).Draw(t, "id"),
			}
		})
		a, b := event.Draw(t, "a"), event.Draw(t, "b")
		same := a.Space == b.Space && a.Stream == b.Stream && a.ID == b.ID
		if same != (n.Event(0, &a) == n.Event(0, &b)) {
			t.Fatalf("subjects %s and %s", n.Event(0, &a), n.Event(0, &b))
		}
		if got, ok := ParseEvent(n.Event(3, &a)); !ok || got.Space != a.Space || got.Stream != a.Stream || got.ID != a.ID {
			t.Fatalf("%s reads as %+v", n.Event(3, &a), got)
		}
	})
}

// A name with a delimiter cannot become part of a subject, nor be read from one.
func TestO04_NamesWithDelimitersMakeNoSubject(t *testing.T) {
	n := NewNames("settle")
	for _, m := range []model.Message{
		{Space: "x", Stream: "y.z", ID: "e"},
		{Space: "x.y", Stream: "z", ID: "e"},
		{Space: "x", Stream: "y", ID: "z.e"},
		{Space: "x", Stream: "y:z", ID: "e"},
		{Space: "x:y", Stream: "z", ID: "e"},
		{Space: "x", Stream: "*", ID: "e"},
		{Space: "x", Stream: "y", ID: ">"},
		{Space: "", Stream: "y", ID: "e"},
		{Space: "x", Stream: "y", ID: "e f"},
	} {
		if CheckMessage(&m) == nil {
			t.Errorf("%+v is accepted", m)
		}
		if got, ok := ParseEvent(n.Event(0, &m)); ok && got.Space == m.Space && got.Stream == m.Stream && got.ID == m.ID {
			t.Errorf("%s reads as %+v", n.Event(0, &m), got)
		}
	}
}
