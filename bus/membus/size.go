package membus

import (
	"strconv"

	"github.com/settlehq/settle/model"
)

// These functions compute the size of a message that counts against the server's max_payload: its body and
// its headers, but not its subject. The header names differ from the real bus, so a message within a few
// bytes of the limit may be judged differently there.

func appendSize(a model.Append) int {
	return len(a.Data) + headerSize(
		"Nats-Expected-Last-Subject-Sequence", strconv.FormatUint(a.Expect, 10),
		"Settle-Commit", a.ID,
		"traceparent", a.Trace.Parent, "tracestate", a.Trace.State, "baggage", a.Trace.Baggage)
}

func messageSize(m model.Message) int {
	position, depth := "", ""
	if m.Position != 0 {
		position = strconv.FormatUint(m.Position, 10)
	}
	if m.Depth != 0 {
		depth = strconv.FormatUint(m.Depth, 10)
	}
	terms := [3]string{}
	for i, n := range []uint64{m.Term, m.PrevTerm, m.ReplayKey} {
		if n != 0 {
			terms[i] = strconv.FormatUint(n, 10)
		}
	}
	notBefore := ""
	if m.NotBefore != 0 {
		notBefore = strconv.FormatInt(m.NotBefore, 10)
	}
	expires := ""
	if m.Expires != 0 {
		expires = strconv.FormatInt(m.Expires, 10)
	}
	return len(m.Payload) + headerSize(
		"Settle-Position", position, "Settle-Depth", depth, "Settle-Not-Before", notBefore, "Settle-Expires", expires, "Settle-Invalid", m.Invalid,
		"Settle-Term", terms[0], "Settle-Prev-Term", terms[1], "Settle-Replay-Key", terms[2],
		"traceparent", m.Trace.Parent, "tracestate", m.Trace.State, "baggage", m.Trace.Baggage)
}

func docSize(d model.StateDoc) int {
	return len(d.Data) + headerSize(
		"Nats-Expected-Last-Subject-Sequence", strconv.FormatUint(d.Rev, 10),
		"Settle-Seq", strconv.FormatUint(d.Seq, 10))
}

// headerSize returns the size of a NATS header block with the given names and values. Headers without a value
// are left out.
func headerSize(namesAndValues ...string) int {
	size := len("NATS/1.0\r\n\r\n")
	for i := 0; i < len(namesAndValues); i += 2 {
		if namesAndValues[i+1] != "" {
			size += len(namesAndValues[i]) + len(": ") + len(namesAndValues[i+1]) + len("\r\n")
		}
	}
	return size
}
