package receipts

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/settlehq/settle/model"
)

var ev = &model.Event{Space: "cart", Stream: "add", ID: "e1", Lane: 12, Position: 3}

func TestAReceiptNamesTheEventAndItsOutcome(t *testing.T) {
	for _, c := range []struct {
		rc      *model.Receipt
		outcome model.Outcome
		result  string
		err     string
	}{
		{Handled(ev, model.Int(7)), model.Handled, "7", ""},
		{Handled(ev, model.Value{}), model.Handled, "absent", ""},
		{Failed(ev, errors.New("no such item")), model.Failed, "absent", "no such item"},
		{Refused(ev, "no handler"), model.Refused, "absent", "no handler"},
		{Rejected(ev, &Rejection{"full", "no place is left", model.Int(3)}), model.Rejected, "3", "no place is left"},
	} {
		if c.rc.Event != "e1" || c.rc.Lane != 12 || c.rc.Pos != 3 {
			t.Errorf("%s: receipt of %+v", c.outcome, c.rc)
		}
		if c.rc.Outcome != c.outcome || c.rc.Result.String() != c.result || c.rc.Error != c.err {
			t.Errorf("%s: %+v", c.outcome, c.rc)
		}
	}
}

// What the sender of an event gets a notice of has the payload, unless it is large; what it gets no notice of has not.
func TestReturned_IsThePayloadIfTheSenderIsNotified(t *testing.T) {
	at := func(bytes int) *model.Event {
		ev := *ev
		ev.Payload = model.String(strings.Repeat("x", bytes-2)) // and two quotes
		return &ev
	}
	small, large := at(model.MaxReturned), at(model.MaxReturned+1)
	ofClient := at(10)
	ofClient.Position = 0
	for _, end := range []func(*model.Event) *model.Receipt{
		func(ev *model.Event) *model.Receipt { return Refused(ev, "no handler") },
		func(ev *model.Event) *model.Receipt {
			return Rejected(ev, &Rejection{"full", "no place", model.Int(3)})
		},
		func(ev *model.Event) *model.Receipt { return Cancelled(ev, "not wanted") },
		Expired,
	} {
		if rc := end(small); !model.Equal(rc.Returned, small.Payload) || !rc.Outcome.Notifies() {
			t.Errorf("%s: %s is returned", rc.Outcome, rc.Returned)
		}
		for why, ev := range map[string]*model.Event{"a large payload": large, "the event of a client": ofClient, "an event without one": ev} {
			if rc := end(ev); !rc.Returned.IsAbsent() {
				t.Errorf("%s: %s is returned: %.20s", rc.Outcome, why, rc.Returned)
			}
		}
	}
	for _, rc := range []*model.Receipt{Handled(small, model.Int(1)), Failed(small, errors.New("no such item"))} {
		if !rc.Returned.IsAbsent() {
			t.Errorf("%s: the payload is returned, but there is no notice", rc.Outcome)
		}
	}
}

// A failing handler cannot make its own failure too large, or too malformed, to record.
func TestReject_TheReceiptCarriesTheRejection(t *testing.T) {
	err := Reject("seat.taken_2-b", "try another", map[string]int{"row": 7})
	var no *Rejection
	if !errors.As(err, &no) || no.Error() != "seat.taken_2-b: try another" || no.Data.String() != `{"row":7}` {
		t.Fatalf("%#v", err)
	}
	if got := RejectionOf(Rejected(ev, no)); got == nil || got.Code != no.Code || got.Message != no.Message || !model.Equal(got.Data, no.Data) {
		t.Errorf("the receipt has %+v", got)
	}
	if RejectionOf(Failed(ev, err)) != nil || RejectionOf(Handled(ev, no.Data)) != nil {
		t.Error("a receipt of another outcome has a rejection")
	}
	again := &model.Event{ID: "e1:again", Earlier: Rejected(ev, no)}
	if got := Reason(Repeated(again)); got != no.Error() {
		t.Errorf("the receipt of a repeated event says %q", got)
	}
}

func TestReject_ACodeHasAForm(t *testing.T) {
	for code, valid := range map[string]bool{
		"a": true, "A-1.b_c": true, strings.Repeat("x", MaxCodeLen): true, strings.Repeat("x", MaxCodeLen+1): false,
		"": false, "a b": false, "é": false, "a\n": false, "a/b": false,
	} {
		var no *Rejection
		if errors.As(Reject(code, "", nil), &no) != valid {
			t.Errorf("%q: valid %v", code, !valid)
		}
	}
	if err := Reject("a", "", func() {}); err == nil || !strings.Contains(err.Error(), "data of rejection a") {
		t.Errorf("data that is no JSON: %v", err)
	}
}

func TestAnErrorIsCutToTheRoomOfAReceipt(t *testing.T) {
	for _, text := range []string{strings.Repeat("x", MaxErrorLen+1), strings.Repeat("é", MaxErrorLen), "x" + strings.Repeat("😀", MaxErrorLen)} {
		got := Failed(ev, errors.New(text)).Error
		if len(got) > MaxErrorLen+len(" …") || !strings.HasSuffix(got, " …") {
			t.Errorf("%d bytes of error became %d", len(text), len(got))
		}
		if !utf8.ValidString(got) {
			t.Errorf("cut in the middle of a character: %q", got[len(got)-10:])
		}
	}
	exact := strings.Repeat("x", MaxErrorLen)
	if got := Failed(ev, errors.New(exact)).Error; got != exact {
		t.Error("an error that fits was cut")
	}
}

func TestO03_Find_DistinguishesStreams(t *testing.T) {
	c := &model.Commit{Txs: []model.Tx{
		{N: 1, By: "compute total"},
		{N: 2, By: By("add"), Receipt: &model.Receipt{Event: "e1"}},
		{N: 3, By: By("remove"), Receipt: &model.Receipt{Event: "e1"}},
	}}
	for _, want := range []struct {
		key Key
		n   uint64
	}{{Key{"add", "e1"}, 2}, {Key{"remove", "e1"}, 3}} {
		if tx := Find(c, want.key); tx == nil || tx.N != want.n {
			t.Errorf("Find(%v) = %v, want transaction %d", want.key, tx, want.n)
		}
	}
	for _, key := range []Key{{"add", "e2"}, {"total", "e1"}, {"", "e1"}} {
		if tx := Find(c, key); tx != nil {
			t.Errorf("Find(%v) = transaction %d", key, tx.N)
		}
	}
}

func TestStream_IsTheInverseOfBy(t *testing.T) {
	if s, ok := Stream(By("add")); !ok || s != "add" {
		t.Errorf("Stream(By(add)) = %q, %v", s, ok)
	}
	for _, by := range []string{"", "handle", "handle ", "compute total"} {
		if s, ok := Stream(by); ok {
			t.Errorf("Stream(%q) = %q", by, s)
		}
	}
}
