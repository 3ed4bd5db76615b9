package wire

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/model"
)

// The headers of a stored message are bytes that any client can have written: the decoded values are within
// bounds, and the same for all readers.
func FuzzHeaders(f *testing.F) {
	for _, text := range []string{
		"NATS/1.0\r\nSettle-Position: 7\r\nSettle-Term: 1800000000123\r\nSettle-Prev-Term: 1\r\nSettle-Replay-Key: 18446744073709551615\r\nSettle-Depth: 3\r\n\r\n",
		"NATS/1.0\r\nSettle-Not-Before: 1800000000123\r\nSettle-Expires: -1\r\nSettle-Invalid: too large\r\ntraceparent: 00-1-2-01\r\ntracestate: a=b\r\n\r\n",
		"NATS/1.0\r\nSettle-Commit: w1/7/3/nonce\r\nNats-Expected-Last-Subject-Sequence: 12\r\n\r\n",
		"NATS/1.0\r\nSettle-Seq: 12\r\nKV-Operation: DEL\r\n\r\n",
		"NATS/1.0\r\nSETTLE-DEPTH: 1\r\nsettle-depth: 2\r\nSeTtLe-DePtH: 3\r\n\r\n",
		"NATS/1.0\r\nSettle-Seq: 18446744073709551616\r\nSettle-Fill: 1\r\n\r\n",
		"NATS/1.0\r\nno colon here\r\n\r\n", "NATS/1.0", "", "\x00",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := decodeStored(&storedMessage{Subject: "settle.lane.0.cart.add.e1", Sequence: 7, Header: data})
		if m.Seq != 7 {
			t.Fatalf("message %+v", m)
		}
		for _, name := range []string{HeaderPosition, HeaderTerm, HeaderPrevTerm, HeaderDepth, HeaderSeq, HeaderExpect} {
			n, known := Decimal(m.Header, name)
			if n > model.MaxNumber || !known && n != 0 || Number(m.Header, name) != n {
				t.Errorf("%s is %d, %v", name, n, known)
			}
		}
		for _, name := range []string{HeaderNotBefore, HeaderExpires} {
			if ms := Millis(m.Header, name); ms < -1 || ms > model.MaxMillis {
				t.Errorf("%s is %d", name, ms)
			}
		}
		if text := Reason(m.Header); len(text) > model.MaxReasonLen {
			t.Errorf("the reason has %d bytes", len(text))
		}
		if trace := Trace(m.Header); len(trace.Parent) > maxTraceparent || len(trace.State) > maxTracestate {
			t.Errorf("the trace is %+v", trace)
		}
		again := nats.Header{}
		for name, values := range m.Header { // any order: a copy
			again[name] = values
		}
		for _, name := range []string{HeaderCommit, HeaderDepth, HeaderKVOperation, HeaderFill, HeaderStatus} {
			if a, b := Header(m.Header, name), Header(again, name); a != b {
				t.Errorf("%s is %q and %q", name, a, b)
			}
		}
		_, _ = AddedNumber(m.Header, HeaderSequence), AddedTime(m.Header)
	})
}

// The fuzzer covers every subject of a lane; a client chooses all tokens after the partition.
func FuzzParseEvent(f *testing.F) {
	for _, subject := range []string{"settle.lane.0.cart.add.e1", "settle.lane.0.cart.add.cart:7:1:0", "settle.lane.0.cart", "...", "", "settle.lane.0.a b.add.e1", "settle.lane.0.cart.add.\xff", "settle.send.0.cart.add.e1", "settle.send.0.cart.add.e1.alice", "settle.send.0.cart.add.a:1:1:0.b=c"} {
		f.Add(subject)
	}
	f.Fuzz(func(t *testing.T, subject string) {
		m, sent, ok := ParseEvent(subject)
		if ok && (CheckMessage(&m) != nil || sent && model.IsMinted(m.ID)) {
			t.Errorf("%q is event %+v", subject, m)
		}
		_ = LastToken(subject)
	})
}
