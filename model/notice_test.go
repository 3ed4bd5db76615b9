package model

import (
	"strings"
	"testing"
)

func TestNotice_HasAReservedIDAndStream(t *testing.T) {
	minted := TxID{Space: strings.Repeat("s", MaxNameLen), Epoch: 1<<64 - 1, N: 1<<64 - 1}.Event(1 << 30)
	id := NoticeID(minted)
	if err := CheckAnyEventID(id); err != nil {
		t.Errorf("no lane accepts it: %v", err)
	}
	if CheckEventID(id) == nil {
		t.Error("a client could choose it")
	}
	if _, minted := OriginOf(id); minted {
		t.Error("it is mistaken for the send of a transaction")
	}
	if NoticeID(minted) != id {
		t.Error("sending the notice twice does not give one event")
	}
	if CheckSendStream(Undelivered) == nil || CheckSendStream("add") != nil || CheckSendStream("a.b") == nil {
		t.Error("the stream is not reserved for notices")
	}
}

func TestNotice_CarriesAnyReason(t *testing.T) {
	n := Notice{Event: "a:1:2:0", To: "b", Stream: "add", Outcome: Rejected, Reason: "bad \"quote\"\n\xff", Code: "full", Data: Int(3), Payload: String("x"), Depth: 4}
	m := n.Message("a", Trace{Parent: "p"})
	v, err := ParseValue(m.Payload)
	if err != nil {
		t.Fatalf("%s: %v", m.Payload, err)
	}
	for member, want := range map[string]string{"event": "a:1:2:0", "to": "b", "stream": "add", "outcome": "rejected", "reason": "bad \"quote\"\n�"} {
		if got, _ := v.Get(member).AsString(); got != want {
			t.Errorf("%s is %q, want %q", member, got, want)
		}
	}
	if code, _ := v.Get("code").AsString(); code != "full" || !Equal(v.Get("data"), Int(3)) || !Equal(v.Get("payload"), String("x")) {
		t.Errorf("the payload of the notice is %s", m.Payload)
	}
	if m.Space != "a" || m.Stream != Undelivered || m.ID != "a:1:2:0:undelivered" || m.Position != 0 || m.Depth != 5 || m.Trace.Parent != "p" {
		t.Errorf("the message is %+v", m)
	}
}

// A notice that a coordinator of an earlier version has stored has no outcome.
func TestNotice_OfAnEarlierVersionIsReadWithoutAnOutcome(t *testing.T) {
	for payload, want := range map[string]Outcome{
		`{"event":"a:1:2:0","to":"b","stream":"add","reason":"why","code":"full","data":3,"payload":"x"}`:                      "",
		`{"event":"a:1:2:0","to":"b","stream":"add","outcome":"rejected","reason":"why","code":"full","data":3,"payload":"x"}`: Rejected,
	} {
		v, err := ParseValue([]byte(payload))
		if err != nil {
			t.Fatal(err)
		}
		var n Notice
		if err := v.Decode(&n); err != nil {
			t.Fatal(err)
		}
		if n.Outcome != want || n.Event != "a:1:2:0" || n.To != "b" || n.Stream != "add" || n.Reason != "why" || n.Code != "full" || !Equal(n.Data, Int(3)) || !Equal(n.Payload, String("x")) {
			t.Errorf("%s: %+v", payload, n)
		}
		if again := n.Message("a", Trace{}).Payload; string(again) != payload {
			t.Errorf("%s is written as %s", payload, again)
		}
	}
}

func TestTombstone_KeepsThePlaceAndFitsAHeader(t *testing.T) {
	m := Message{Space: "b", Stream: "add", ID: "a:1:2:0", Position: 7, Depth: 3, Payload: []byte("1"), Trace: Trace{Parent: "p"}}
	g := m.Tombstone("too\r\nlarge: é" + strings.Repeat("x", 2*MaxReasonLen))
	if g.Space != m.Space || g.Stream != m.Stream || g.ID != m.ID || g.Position != 7 || g.Depth != 3 || g.Payload != nil || g.Trace != m.Trace {
		t.Errorf("the tombstone is %+v", g)
	}
	if len(g.Invalid) != MaxReasonLen || !strings.HasPrefix(g.Invalid, "too  large: ") || strings.ContainsAny(g.Invalid, "\r\né") {
		t.Errorf("its text is %q", g.Invalid)
	}
	m.Stream = "no.stream"
	if g := m.Tombstone("why"); g.Stream != Undelivered {
		t.Errorf("stream %q cannot be in a subject", g.Stream)
	}
	placed := Message{Space: "b", Stream: "add", ID: "a:1:2:0", Position: 7, Term: 20, PrevTerm: 10, ReplayKey: 99}
	if g := placed.Tombstone("why"); g.Term != 20 || g.PrevTerm != 10 || g.ReplayKey != 99 {
		t.Errorf("its place is %+v", g)
	}
}
