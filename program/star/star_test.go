package star

import (
	"strings"
	"testing"

	"github.com/settlehq/settle/model"
)

const airport = `"""Airports count their flights."""

stats = cell("stats", {"departures": 0, "arrivals": 0, "delay_sum": 0})

def departure(e):
    stats.departures += 1
    stats.delay_sum += e.delay
    send(e.destination, "arrival", {"flight": e.flight, "origin": space()})
    return {"flight": e.flight}

handle("departure", departure, payload = {"flight": str, "delay": int, "destination": str, "note?": str})

def arrival(e):
    stats.arrivals += 1

handle("arrival", arrival, payload = {"flight": str, "origin": str})

def punctuality():
    if not stats.departures:
        return None
    return {"mean_delay": stats.delay_sum / stats.departures}

compute("punctuality", punctuality)
`

func TestHandler_ReadsWritesSendsAndReturns(t *testing.T) {
	s := newStage(t, compiled(t, airport).Space())
	s.observe("punctuality")
	r := s.must("departure", map[string]any{"flight": "BT600", "delay": 12, "destination": "RIX"})
	if got := r.String(); got != `{"flight":"BT600"}` {
		t.Errorf("the receipt says %s", got)
	}
	s.must("departure", map[string]any{"flight": "BT601", "delay": 3, "destination": "RIX"})
	s.must("arrival", map[string]any{"flight": "BT7", "origin": "RIX"})
	s.expect("stats", `{"arrivals":1,"delay_sum":15,"departures":2}`)
	s.expect("punctuality", `{"mean_delay":7.5}`)
	if len(s.sends) != 2 || s.sends[0].To != "RIX" || s.sends[0].Payload.String() != `{"flight":"BT600","origin":"ATL"}` {
		t.Errorf("sent %v", s.sends)
	}
	// The computation reads two paths, and arrivals is not one of them.
	if s.runs["punctuality"] != 3 {
		t.Errorf("punctuality ran %d times, want 3", s.runs["punctuality"])
	}
}

func TestHandler_PayloadsAreChecked(t *testing.T) {
	s := newStage(t, compiled(t, airport).Space())
	for payload, want := range map[string]string{
		`{"flight":"BT600","delay":"x","destination":"RIX"}`: "payload.delay must be an integer, not a string",
		`{"flight":"BT600","destination":"RIX"}`:             "payload.delay is missing",
		`{"flight":"B","delay":1,"destination":"R","x":1}`:   "payload.x is not expected; the schema has delay, destination, flight, note",
		`7`: "payload must be an object, not an int",
	} {
		v, _ := model.ParseValue([]byte(payload))
		rc := s.send("departure", v)
		if rc.Outcome != model.Failed || !strings.Contains(rc.Error, want) {
			t.Errorf("%s: %s %q, want %q", payload, rc.Outcome, rc.Error, want)
		}
	}
	if rc := s.send("departure", map[string]any{"flight": "B", "delay": 1, "destination": "R", "note": nil}); rc.Outcome != model.Handled {
		t.Errorf("an optional field may be null: %s", rc.Error)
	}
}

func TestError_NamesPlaceAndCalls(t *testing.T) {
	s := newStage(t, compiled(t, "def inner(x):\n    return x.y\n\ndef h(e):\n    return inner(1)\n\nhandle(\"h\", h)\n").Space())
	rc := s.send("h", nil)
	want := "test.star:2:13: int has no .y field or method\n  test.star:2:13: in inner\n  test.star:5:17: in h"
	if rc.Outcome != model.Failed || rc.Error != want {
		t.Errorf("got %s\n%s\nwant\n%s", rc.Outcome, rc.Error, want)
	}
}

func TestPlace_ADocumentThatIsAScalarIsAsTrueAsThat(t *testing.T) {
	s := newStage(t, compiled(t, `
door = cell("door", False)

def move(e):
    was = "open" if door else "closed"
    door.set(e)
    return [was, "open" if door else "closed", door.get()]

handle("move", move, payload = bool)
`).Space())
	for _, open := range []bool{true, true, false} {
		got := s.must("move", open)
		if last := got.Index(2); !model.Equal(last, model.MustOf(open)) || (got.Index(1).String() == `"open"`) != open {
			t.Errorf("moved to %v: %s", open, got)
		}
	}
}

// What a schema refuses is known before the handler is called.
func TestHandler_PayloadsAreCheckedBefore(t *testing.T) {
	p := compiled(t, airport).Space()
	for payload, want := range map[string]string{
		`{"flight":"BT600","delay":"x","destination":"RIX"}`: "payload of departure.delay must be an integer",
		`{"flight":"BT600","delay":5,"destination":"RIX"}`:   "",
	} {
		v, _ := model.ParseValue([]byte(payload))
		if err := p.CheckPayload("departure", v); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", payload, err, want)
		}
	}
}
