package model

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// DefaultHorizon is for how long events are remembered, unless a deployment was
// created with another horizon.
const DefaultHorizon = 7 * 24 * time.Hour

// MaxClockSkew is how far the clock of whoever makes a timed id may be ahead of the
// server's. Events are kept for that much longer than the horizon, so that an id is
// too old before what it named is forgotten.
const MaxClockSkew = time.Hour

// A timed id is "at-<milliseconds since 1970, 12 hexadecimal digits>-<anything>".
const (
	timedPrefix = "at-"
	timedDigits = 12
	timedLen    = len(timedPrefix) + timedDigits + len("-")
)

// TimedEventID makes an event id that carries the time at which it was made. rest
// tells it from others of that time, and may be a name from the sender's world.
func TimedEventID(at time.Time, rest string) string {
	return fmt.Sprintf("%s%0*x-%s", timedPrefix, timedDigits, max(at.UnixMilli(), 0), rest)
}

// TimeOfEventID is the time that an id carries, and false if it carries none. One with
// a ':' is minted or redriven: whoever may do that knows what was handled.
func TimeOfEventID(id string) (time.Time, bool) {
	if len(id) <= timedLen || !strings.HasPrefix(id, timedPrefix) || id[timedLen-1] != '-' || strings.Contains(id, ":") {
		return time.Time{}, false
	}
	ms, err := strconv.ParseUint(id[len(timedPrefix):timedLen-1], 16, timedDigits*4)
	if err != nil {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(ms)).UTC(), true
}

// ExpiredError says that an event is not to be handled because of the time that its
// id carries: an event of that id may have been handled and forgotten since, so
// handling it could be the second time.
type ExpiredError struct {
	ID string
	// Made is the time in the id, and At the one by which it was judged.
	Made, At time.Time
	Horizon  time.Duration
}

func (e *ExpiredError) Error() string {
	if e.Made.After(e.At) {
		return fmt.Sprintf("event id %s was made %v in the future: set the clock of whoever made it, %v ahead is tolerated", e.ID, e.Made.Sub(e.At).Round(time.Second), MaxClockSkew)
	}
	return fmt.Sprintf("event id %s was made %v ago, and events are remembered for %v: whether it has been handled is not known any more; find out, and send it under a new id if it has not", e.ID, e.At.Sub(e.Made).Round(time.Second), e.Horizon)
}

// CheckEventAge reports whether an event may be handled that is stored, or about to
// be, at a time. The error is an *ExpiredError. Ids without a time pass.
func CheckEventAge(id string, at time.Time, horizon time.Duration) error {
	made, timed := TimeOfEventID(id)
	if !timed || at.IsZero() || at.Sub(made) <= horizon && made.Sub(at) <= MaxClockSkew {
		return nil
	}
	return &ExpiredError{ID: id, Made: made, At: at, Horizon: horizon}
}
