package star

import (
	"strings"
	"testing"
)

// Events that a hosted handler sends may expire; an invalid duration, and one that ends before the event may
// be handled, are errors.
func TestExpires_OfWhatAHandlerSends(t *testing.T) {
	s := newStage(t, compiled(t, `
def h(e):
    send(space(), "ok", expires = "90s")
    set_timer("t", "ok", after = "1m", expires = "2m")
def bad(e):
    send(space(), "ok", expires = e)
def late(e):
    send(space(), "ok", after = "2m", expires = "1m")
handle("h", h)
handle("bad", bad)
handle("late", late)
handle("ok", lambda e: None)
`).Space())
	s.must("h", nil)
	for stream, want := range map[string]string{
		"bad":  `send: expires: "soon" is not a duration`,
		"late": "it expires before its time",
	} {
		if rc := s.send(stream, "soon"); !strings.Contains(rc.Error, want) {
			t.Errorf("%s: %s %q, without %q", stream, rc.Outcome, rc.Error, want)
		}
	}
}
