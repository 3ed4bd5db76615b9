package bus

import (
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/model"
)

// Headers that Settle writes. They are read by name without regard to case, since
// libraries disagree on how to spell them.
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

// setPositive leaves a header out that would be 0.
func setPositive(h nats.Header, name string, n uint64) {
	if n > 0 {
		setNumber(h, name, n)
	}
}

// number is the value of a decimal header, 0 if it is absent or not a number.
func number(h nats.Header, name string) uint64 {
	n, _ := strconv.ParseUint(header(h, name), 10, 64)
	return n
}

// header is the first value of a header, by its exact name if that is there.
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

// added is the value of a header that the server has added to a stored message: the
// last one of that name, for whoever wrote the message may have put one there too.
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

// addedTime is when a message was stored, the zero time if the server does not say.
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

// The W3C trace context has 55 characters in its first version, and lets those who
// pass a state on drop one of more than 512.
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
		return model.Trace{} // not one: and it would travel on in all that the event causes
	}
	if len(t.State) > maxTracestate {
		t.State = ""
	}
	return t
}
