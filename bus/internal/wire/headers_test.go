package wire

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/model"
)

// A trace context is passed on to everything that an event causes, so an invalid one, however long, is
// dropped on arrival.
func TestAnInvalidTraceContextIsDropped(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, c := range []struct {
		what                   string
		parent, state, baggage string
		want                   model.Trace
	}{
		{"a plain one", parent, "a=1", "user=7", model.Trace{Parent: parent, State: "a=1", Baggage: "user=7"}},
		{"a long state", parent, strings.Repeat("x", 513), "", model.Trace{Parent: parent}},
		{"long baggage", parent, "a=1", strings.Repeat("x", 513), model.Trace{Parent: parent, State: "a=1"}},
		{"a long parent", strings.Repeat("x", 129), "a=1", "user=7", model.Trace{}},
		{"none", "", "", "", model.Trace{}},
	} {
		h := nats.Header{headerParent: {c.parent}, headerState: {c.state}, headerBaggage: {c.baggage}}
		if got := Trace(h); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
}
