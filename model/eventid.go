package model

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// DefaultHorizon is how long events are remembered in a deployment that was created without a horizon.
const DefaultHorizon = 7 * 24 * time.Hour

// MaxClockSkew is how far the clock that made a timed id may be ahead of the server's. Events are kept that
// much longer than the horizon, so that an id is too old before its event is forgotten.
const MaxClockSkew = time.Hour

// A timed id is "at-<milliseconds since 1970, 12 hexadecimal digits>-<anything>".
const (
	timedPrefix = "at-"
	timedDigits = 12
	timedLen    = len(timedPrefix) + timedDigits + len("-")
)

// TimedEventID returns an event id that contains a time. rest distinguishes it from others with the same
// time, and may be a name that means something to the sender.
func TimedEventID(at time.Time, rest string) string {
	return fmt.Sprintf("%s%0*x-%s", timedPrefix, timedDigits, max(at.UnixMilli(), 0), rest)
}

// TimeOfEventID returns the time in an id, and false if there is none. An id with a ':' was minted by Settle
// and is not subject to the horizon.
func TimeOfEventID(id string) (time.Time, bool) {
	_, id = CutPrincipal(id)
	if len(id) <= timedLen || !strings.HasPrefix(id, timedPrefix) || id[timedLen-1] != '-' || strings.Contains(id, ":") {
		return time.Time{}, false
	}
	ms, err := strconv.ParseUint(id[len(timedPrefix):timedLen-1], 16, timedDigits*4)
	if err != nil {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(ms)).UTC(), true
}

// ExpiredError reports that an event must not be handled because of the time in its id: an event with that id
// may have been handled and forgotten since, and would be handled a second time.
type ExpiredError struct {
	ID string
	// Made is the time in the id, and At the time at which it was checked.
	Made, At time.Time
	Horizon  time.Duration
}

func (e *ExpiredError) Error() string {
	if e.Made.After(e.At) {
		return fmt.Sprintf("event id %s was made %v in the future: correct the clock of the sender, %v ahead is tolerated", e.ID, e.Made.Sub(e.At).Round(time.Second), MaxClockSkew)
	}
	return fmt.Sprintf("event id %s was made %v ago, and events are remembered for %v: whether it was handled is no longer known; send it under a new id if it was not", e.ID, e.At.Sub(e.Made).Round(time.Second), e.Horizon)
}

// CheckEventAge checks whether an event may be stored or handled at a time. The error is an *ExpiredError.
// Ids without a time are accepted.
func CheckEventAge(id string, at time.Time, horizon time.Duration) error {
	made, timed := TimeOfEventID(id)
	if !timed || at.IsZero() || at.Sub(made) <= horizon && made.Sub(at) <= MaxClockSkew {
		return nil
	}
	return &ExpiredError{ID: id, Made: made, At: at, Horizon: horizon}
}
