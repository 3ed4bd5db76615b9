package wire

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
	HeaderCommit   = "Settle-Commit"   // Append.ID
	HeaderRelease  = "Settle-Release"  // NothingToRelease, if Append.Inert
	HeaderPosition = "Settle-Position" // Message.Position
	HeaderTerm     = "Settle-Term"     // Message.Term
	HeaderPrevTerm = "Settle-Prev-Term"
	HeaderReplay   = "Settle-Replay-Key"
	HeaderDepth    = "Settle-Depth"    // Message.Depth
	HeaderInvalid  = "Settle-Invalid"  // Message.Invalid
	HeaderSeq      = "Settle-Seq"      // StateDoc.Seq
	HeaderKeptSeq  = "Settle-Kept-Seq" // StateDoc.Kept
	HeaderKeptRev  = "Settle-Kept-Rev"
	HeaderFill     = "Settle-Fill" // of a message in a lane that is no event
	headerParent   = "traceparent"
	headerState    = "tracestate"
	headerBaggage  = "baggage"

	// HeaderNotBefore is Message.NotBefore: milliseconds since 1970.
	HeaderNotBefore = "Settle-Not-Before"
	// HeaderExpires is Message.Expires: milliseconds since 1970.
	HeaderExpires = "Settle-Expires"
)

// NothingToRelease is the value of HeaderRelease of a commit that is nothing to coordinators. Without the header that is not known.
const NothingToRelease = "none"

// Headers that the server understands or adds.
const (
	HeaderExpect       = "Nats-Expected-Last-Subject-Sequence"
	headerSubject      = "Nats-Subject"
	HeaderSequence     = "Nats-Sequence"
	HeaderLastSequence = "Nats-Last-Sequence"
	headerNumPending   = "Nats-Num-Pending"
	headerTimeStamp    = "Nats-Time-Stamp"
	HeaderKVOperation  = "KV-Operation"
	HeaderStatus       = "Status"
	HeaderDescription  = "Description"
)

// decimal headers hold a sequence.

func SetNumber(h nats.Header, name string, n uint64) {
	h[name] = []string{strconv.FormatUint(n, 10)}
}

// SetPositive sets a header unless its value is 0.
func SetPositive(h nats.Header, name string, n uint64) {
	if n > 0 {
		SetNumber(h, name, n)
	}
}

// Number returns the value of a decimal header, 0 if it is absent, not a number, or greater than model.MaxNumber.
func Number(h nats.Header, name string) uint64 {
	n, _ := Decimal(h, name)
	return n
}

// Decimal is Number, and reports whether there is such a value.
func Decimal(h nats.Header, name string) (n uint64, ok bool) {
	n, err := strconv.ParseUint(Header(h, name), 10, 64)
	if err != nil || n > model.MaxNumber {
		return 0, false
	}
	return n, true
}

// Hash returns the value of a decimal header that may have any 64 bits, 0 if it is absent or not a number.
func Hash(h nats.Header, name string) uint64 {
	n, err := strconv.ParseUint(Header(h, name), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Millis returns the time in a header, in milliseconds since 1970; 0 if there is no such header, and -1 if its value is no
// time: then the time of the event is unknown.
func Millis(h nats.Header, name string) int64 {
	text := Header(h, name)
	if text == "" {
		return 0
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms < 0 || ms > model.MaxMillis {
		return -1
	}
	return ms
}

// Reason returns the text of a tombstone, which is one line of bounded length.
func Reason(h nats.Header) string {
	text := Header(h, HeaderInvalid)
	if len(text) > model.MaxReasonLen {
		text = strings.ToValidUTF8(text[:model.MaxReasonLen], "")
	}
	return text
}

// Header returns the first value of a header, by its exact name if present. Of several names that differ in case only, the
// first one counts in the order of bytes, so that all readers of a message agree.
func Header(h nats.Header, name string) string {
	if values, ok := h[name]; ok && len(values) > 0 {
		return values[0]
	}
	found := ""
	for key, values := range h { // any order: the least name counts
		if strings.EqualFold(key, name) && len(values) > 0 && (found == "" || key < found) {
			found = key
		}
	}
	if found == "" {
		return ""
	}
	return h[found][0]
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

func AddedNumber(h nats.Header, name string) uint64 {
	n, _ := strconv.ParseUint(added(h, name), 10, 64)
	return n
}

// AddedTime returns when a message was stored, the zero time if the server does not report it.
func AddedTime(h nats.Header) time.Time {
	t, err := time.Parse(time.RFC3339Nano, added(h, headerTimeStamp))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// SetTrace writes the W3C names in lower case: NATS headers keep their case, and
// the server looks for exactly these.
func SetTrace(h nats.Header, t model.Trace) {
	if t.Parent != "" {
		h[headerParent] = []string{t.Parent}
	}
	if t.State != "" {
		h[headerState] = []string{t.State}
	}
	if t.Baggage != "" {
		h[headerBaggage] = []string{t.Baggage}
	}
}

// The W3C trace context has 55 characters in its first version, and permits
// dropping a state of more than 512. Baggage is stored with everything that an event causes.
const (
	maxTraceparent = 128
	maxTracestate  = 512
	maxBaggage     = 512
)

func Trace(h nats.Header) model.Trace {
	if len(h) == 0 {
		return model.Trace{}
	}
	t := model.Trace{Parent: Header(h, headerParent), State: Header(h, headerState), Baggage: Header(h, headerBaggage)}
	if len(t.Parent) > maxTraceparent {
		return model.Trace{} // invalid: it would be passed on to everything that the event causes
	}
	if len(t.State) > maxTracestate {
		t.State = ""
	}
	if len(t.Baggage) > maxBaggage {
		t.Baggage = ""
	}
	return t
}

// Metadata of a service: the id of the server that its process embeds, and that server's sync
// interval, which the server itself does not report to clients.
const (
	MetaEmbeds = "settle.io/embeds"
	MetaSync   = "settle.io/sync" // syncAlways, or a duration
	SyncAlways = "always"
)
