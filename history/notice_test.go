package history

import (
	"errors"
	"testing"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// The outcome of a notice is that of the receipt, so a program need not know what reasons look like.
func TestNotice_HasTheOutcomeOfTheReceipt(t *testing.T) {
	ev := &model.Event{Space: "b", Stream: "add", ID: "a:1:2:0", Position: 7, Expires: 1, Payload: model.String("x")}
	no := &receipts.Rejection{Code: "full", Message: "no place", Data: model.Int(3)}
	ends := []*model.Receipt{
		receipts.Handled(ev, model.Int(1)), receipts.Failed(ev, errors.New("broken")), receipts.Refused(ev, "why"),
		receipts.Cancelled(ev, "why"), receipts.Expired(ev), receipts.Rejected(ev, no),
	}
	if len(ends) != len(model.Outcomes) {
		t.Fatalf("%d of %d outcomes", len(ends), len(model.Outcomes))
	}
	for _, rc := range ends {
		if to := NoticeTo(rc); (to == "a") != rc.Outcome.Notifies() {
			t.Errorf("%s: a notice to %q", rc.Outcome, to)
		}
		n := NoticeOf("b", &model.Tx{By: receipts.By("add"), Receipt: rc})
		if n.Outcome != rc.Outcome || n.Reason != rc.Error || (n.Code == "full" && model.Equal(n.Data, model.Int(3))) != (rc.Outcome == model.Rejected) {
			t.Errorf("%s: %+v", rc.Outcome, n)
		}
	}
}
