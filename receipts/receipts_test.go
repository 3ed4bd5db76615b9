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
	} {
		if c.rc.Event != "e1" || c.rc.Lane != 12 || c.rc.Pos != 3 {
			t.Errorf("%s: receipt of %+v", c.outcome, c.rc)
		}
		if c.rc.Outcome != c.outcome || c.rc.Result.String() != c.result || c.rc.Error != c.err {
			t.Errorf("%s: %+v", c.outcome, c.rc)
		}
	}
}

// A failing handler cannot make its own failure too large, or too malformed, to record.
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
