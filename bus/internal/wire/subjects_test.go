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
	ids := slices.Concat(names, []string{"a:1:2:3", "a:1:2:4", "b:1:2:3", "a=a", "a=b", "b=a", "a=a:r1", "a=b:r1", "a:r1"})
	rapid.Check(t, func(t *rapid.T) {
		event := rapid.Custom(func(t *rapid.T) model.Message {
			return model.Message{
				Space:  rapid.SampledFrom(names).Draw(t, "space"),
				Stream: rapid.SampledFrom(names).Draw(t, "stream"),
				ID:     rapid.SampledFrom(ids).Draw(t, "id"),
			}
		})
		a, other := event.Draw(t, "a"), event.Draw(t, "other")
		b := a
		for _, part := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"space", "stream", "id"}), rapid.ID).Draw(t, "differ") {
			switch part {
			case "space":
				b.Space = other.Space
			case "stream":
				b.Stream = other.Stream
			default:
				b.ID = other.ID
			}
		}
		same := a.Space == b.Space && a.Stream == b.Stream && a.ID == b.ID
		if same != (n.Event(0, &a) == n.Event(0, &b)) {
			t.Fatalf("subjects %s and %s", n.Event(0, &a), n.Event(0, &b))
		}
		if got, _, ok := ParseEvent(n.Event(3, &a)); !ok || got.Space != a.Space || got.Stream != a.Stream || got.ID != a.ID {
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
		{Space: "x", Stream: "y", ID: "=e"},
		{Space: "x", Stream: "y", ID: "a:b=e"},
		{Space: "x", Stream: "y", ID: "a=b=e"},
	} {
		if CheckMessage(&m) == nil {
			t.Errorf("%+v is accepted", m)
		}
		if got, _, ok := ParseEvent(n.Event(0, &m)); ok && got.Space == m.Space && got.Stream == m.Stream && got.ID == m.ID {
			t.Errorf("%s reads as %+v", n.Event(0, &m), got)
		}
	}
}

// What may stand in a message is decided by its subject: under that of a client no id is one that the system mints, or that of
// another principal, and a pattern of permissions gives a principal its own events and no others.
func TestBorder_ASubjectSaysWhoseEventItIs(t *testing.T) {
	n := NewNames("settle")
	for subject, want := range map[string]string{
		"settle.send.0.cart.add.e1":               "e1, sent",
		"settle.send.0.cart.add.e1.alice":         "alice=e1, sent",
		"settle.send.0.cart.add.at-0123.bob":      "bob=at-0123, sent",
		"settle.lane.0.cart.add.shop:7:1:0":       "shop:7:1:0",
		"settle.lane.0.cart.add.alice=e1:r1":      "alice=e1:r1",
		"settle.lane.0.cart.add.e1":               "e1", // of a client of an earlier version
		"settle.send.0.cart.add.shop:7:1:0":       "",
		"settle.send.0.cart.add.shop:7:1:0.alice": "",
		"settle.send.0.cart.add.e1:r1":            "",
		"settle.send.0.cart.add.bob=e1":           "",
		"settle.send.0.cart.add.bob=e1.alice":     "",
		"settle.send.0.cart.add.e1.a:b":           "",
		"settle.send.0.cart.add.e1.=":             "",
		"settle.send.0.cart.add.e1.alice.x":       "",
		"settle.send.0.cart.add":                  "",
		"settle.lane.0.cart.add.e1.alice":         "",
		"settle.lane.0.cart.add.alice=e1":         "",
		"settle.feed.0.cart.add.e1":               "",
	} {
		m, sent, ok := ParseEvent(subject)
		got := ""
		if ok {
			got = m.ID
		}
		if ok && sent {
			got += ", sent"
		}
		if got != want {
			t.Errorf("%s is %q, want %q", subject, got, want)
		}
	}
	mine := SubjectRules{Allow: []string{n.Sends("alice")}}
	for id, may := range map[string]bool{"alice=e1": true, "bob=e1": false, "e1": false, "alice": false, "cart:1:1:0": false, "alice=e1:r1": false} {
		subject := n.Event(0, &model.Message{Space: "cart", Stream: "add", ID: id})
		if got := len(mine.Lacks("publish", []string{subject})) == 0; got != may {
			t.Errorf("alice may publish %s: %v", subject, got)
		}
	}
}
