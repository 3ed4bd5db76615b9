package bus

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
)

// What only takes a name has no content, in its payload or in a header.
func TestIsFill_AClientHidesNothingInOne(t *testing.T) {
	for what, c := range map[string]struct { // any order: each on its own
		m    wire.StoredMsg
		want bool
	}{
		"one that Settle stores":  {wire.StoredMsg{Header: nats.Header{wire.HeaderFill: {"1"}, wire.HeaderExpect: {"0"}, "Nats-Sequence": {"7"}}}, true},
		"an event":                {wire.StoredMsg{Header: nats.Header{}, Data: []byte("1")}, false},
		"an event with no header": {wire.StoredMsg{Data: []byte("1")}, false},
		"one with a payload":      {wire.StoredMsg{Header: nats.Header{wire.HeaderFill: {"1"}}, Data: []byte("secret")}, false},
		"one with a note":         {wire.StoredMsg{Header: nats.Header{wire.HeaderFill: {"1"}, "Nats-Note": {"secret"}}}, false},
		"one with another header": {wire.StoredMsg{Header: nats.Header{wire.HeaderFill: {"1"}, "Name": {"secret"}}}, false},
	} {
		if got := isFill(&c.m); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}

// Messages that are no events do not end a page: a reader takes a page that is not full for the end of the lane.
func TestReadLane_APageIsFullIfThereAreMoreEvents(t *testing.T) {
	t.Parallel()
	b := embeddedBus(t, Config{Partitions: 1})
	for i := range 30 {
		for _, m := range []*nats.Msg{
			{Subject: fmt.Sprintf("settle.send.0.cart.add.f%d", i), Header: nats.Header{wire.HeaderFill: {"1"}}},
			{Subject: fmt.Sprintf("settle.send.0.cart.add.none=%d", i), Data: []byte("1")},
		} {
			if _, err := b.JetStream().PublishMsg(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		if i%10 == 9 {
			sent := make(chan error, 1)
			b.Send(model.Message{Space: "cart", Stream: "add", ID: fmt.Sprint("e", i)}, func(_ model.SendResult, err error) { sent <- err })
			if err := <-sent; err != nil {
				t.Fatal(err)
			}
		}
	}
	after := uint64(0)
	for _, want := range []string{"[e9 e19]", "[e29]", "[]"} {
		found, err := b.ReadLane(t.Context(), "cart", after, 2)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, m := range found {
			ids, after = append(ids, m.ID), m.Seq
		}
		if got := fmt.Sprint(ids); got != want {
			t.Errorf("a page has %s, want %s", got, want)
		}
	}
}
