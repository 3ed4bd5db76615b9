package model

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestTimedEventID_CarriesItsTime(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 250e6, time.UTC)
	id := TimedEventID(at, "order-17")
	if id != "at-019ca9450afa-order-17" {
		t.Errorf("id %s", id)
	}
	if err := CheckEventID(id); err != nil {
		t.Error(err)
	}
	if got, ok := TimeOfEventID(id); !ok || !got.Equal(at) {
		t.Errorf("its time is %v, %v; want %v", got, ok, at)
	}
	last := TimedEventID(time.UnixMilli(1<<48-1), "x")
	if got, ok := TimeOfEventID(last); !ok || got.UnixMilli() != 1<<48-1 {
		t.Errorf("the last one, %s: %v, %v", last, got, ok)
	}
}

func TestTimeOfEventID_OtherIDsCarryNone(t *testing.T) {
	for _, id := range []string{
		"", "at-", "e1", "order-17", "at-019ca941f8fa", "at-019ca941f8fa-", "at-019ca941f8f-order", "at-019ca941f8faorder",
		"at-+19ca941f8fa-x", "at-0_9ca941f8fa-x", "AT-019ca941f8fa-x", "at-019ca941f8fg-x", "s:1:2:3", "at-019ca9450afa-x:r1",
		"0195f3a5-7c1e-7abc-8def-0123456789ab", // a UUIDv7: it may identify something that lives longer
	} {
		if at, ok := TimeOfEventID(id); ok {
			t.Errorf("%s: %v", id, at)
		}
		if err := CheckEventAge(id, time.Now(), time.Minute); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestCheckEventAge_RefusesIDsThatMayBeForgotten(t *testing.T) {
	const horizon = 7 * 24 * time.Hour
	made := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	id := TimedEventID(made, "x")
	for _, c := range []struct {
		at   time.Time
		want string
	}{
		{made, ""},
		{made.Add(horizon), ""},
		{made.Add(horizon + time.Millisecond), "168h0m0s ago, and events are remembered for 168h0m0s"},
		{made.Add(-MaxClockSkew), ""},
		{made.Add(-MaxClockSkew - time.Second), "1h0m1s in the future"},
		{time.Time{}, ""}, // unknown
	} {
		err := CheckEventAge(id, c.at, horizon)
		var expired *ExpiredError
		if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &expired) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("at %v: %v, want %q", c.at, err, c.want)
		}
	}
}

// The time in the id that a principal has chosen counts as in any other: an old one is refused.
func TestHorizon_AnIDOfAPrincipalCarriesItsTime(t *testing.T) {
	made := time.UnixMilli(1_800_000_000_123).UTC()
	id := EventIDOf("alice", TimedEventID(made, "order-7"))
	if at, timed := TimeOfEventID(id); !timed || !at.Equal(made) {
		t.Errorf("%s carries %v, %v", id, at, timed)
	}
	if err := CheckAnyEventID(id); err != nil || CheckEventID(id) == nil {
		t.Errorf("%s: %v, and a client can choose it: %v", id, err, CheckEventID(id))
	}
	again := Event{ID: RedriveID(id)}
	if of, _ := RedriveOf(again.ID); of != id || again.By() != "alice" || CheckAnyEventID(again.ID) != nil {
		t.Errorf("redriven it is %s, of %s and by %q", again.ID, of, again.By())
	}
}
