package bus

import (
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/model"
)

// Headers that Settle writes. They are read by name without regard to case, since
// libraries spell them differently.
const (
	headerCommit   = "Settle-Commit"   // Append.ID
	headerPosition = "Settle-Position" // Message.Position
	headerTerm     = "Settle-Term"     // Message.Term
	headerPrevTerm = "Settle-Prev-Term"
	headerReplay   = "Settle-Replay-Key"
	headerDepth    = "Settle-Depth"   // Message.Depth
	headerInvalid  = "Settle-Invalid" // Message.Invalid
	headerSeq      = "Settle-Seq"     // StateDoc.Seq
	headerFill     = "Settle-Fill"    // of a message in a lane that is no event
	headerParent   = "traceparent"
	headerState    = "tracestate"

	// headerNotBefore is Message.NotBefore: milliseconds since 1970.
	headerNotBefore = "Settle-Not-Before"
	// headerExpires is Message.Expires: milliseconds since 1970.
	headerExpires = "Settle-Expires"
)

// Headers that the server understands or adds.
const (
	headerExpect       = "Nats-Expected-Last-Subject-Sequence"
	headerSubject      = "Nats-Subject"
	headerSequence     = "Nats-Sequence"
	headerLastSequence = "Nats-Last-Sequence"
	headerNumPending   = "Nats-Num-Pending"
	headerTimeStamp    = "Nats-Time-Stamp"
	headerKVOperation  = "KV-Operation"
	headerStatus       = "Status"
	headerDescription  = "Description"
)

// decimal headers hold a sequence.

func setNumber(h nats.Header, name string, n uint64) {
	h[name] = []string{strconv.FormatUint(n, 10)}
}

// setPositive sets a header unless its value is 0.
func setPositive(h nats.Header, name string, n uint64) {
	if n > 0 {
		setNumber(h, name, n)
	}
}

// number returns the value of a decimal header, 0 if it is absent or not a number.
func number(h nats.Header, name string) uint64 {
	n, _ := strconv.ParseUint(header(h, name), 10, 64)
	return n
}

// header returns the first value of a header, by its exact name if present.
func header(h nats.Header, name string) string {
	if values, ok := h[name]; ok && len(values) > 0 {
		return values[0]
	}
	for key, values := range h { // any order: one name, differently spelt, does not occur twice
		if strings.EqualFold(key, name) && len(values) > 0 {
			return values[0]
		}
	}
	return ""
}

// added returns the value of a header that the server has added to a stored message: the
// last one of that name, since the author of the message may have set one too.
func added(h nats.Header, name string) string {
	values := h[name]
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

func addedNumber(h nats.Header, name string) uint64 {
	n, _ := strconv.ParseUint(added(h, name), 10, 64)
	return n
}

// addedTime returns when a message was stored, the zero time if the server does not report it.
func addedTime(h nats.Header) time.Time {
	t, err := time.Parse(time.RFC3339Nano, added(h, headerTimeStamp))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// setTrace writes the W3C names in lower case: NATS headers keep their case, and
// the server looks for exactly these.
func setTrace(h nats.Header, t model.Trace) {
	if t.Parent != "" {
		h[headerParent] = []string{t.Parent}
	}
	if t.State != "" {
		h[headerState] = []string{t.State}
	}
}

// The W3C trace context has 55 characters in its first version, and permits
// dropping a state of more than 512.
const (
	maxTraceparent = 128
	maxTracestate  = 512
)

func trace(h nats.Header) model.Trace {
	if len(h) == 0 {
		return model.Trace{}
	}
	t := model.Trace{Parent: header(h, headerParent), State: header(h, headerState)}
	if len(t.Parent) > maxTraceparent {
		return model.Trace{} // invalid: it would be passed on to everything that the event causes
	}
	if len(t.State) > maxTracestate {
		t.State = ""
	}
	return t
}
