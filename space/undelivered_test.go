package space

import (
	"slices"
	"strings"
	"testing"

	"github.com/settlehq/settle/model"
)

// A program without a handler for failure notices lets them succeed: refusing them would add a failure to the
// one that the notice reports.
func TestAFailureNoticeWithoutAHandlerSucceeds(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", counter(t).Program)
	w.send(home, model.Undelivered, "e1", nil)
	w.send(home, "add", "e2", 1)
	h.run()
	if got, want := w.receipts(home), []string{"e1 handled", "e2 handled"}; !slices.Equal(got, want) {
		t.Errorf("receipts %v, want %v", got, want)
	}
}

func TestAFailureNoticeReachesTheHandlerOfItsStream(t *testing.T) {
	p := counter(t).handle(model.Undelivered, func(tx *Tx, ev *model.Event) any { return "noted" })
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	w.send(home, model.Undelivered, "e1", nil)
	h.run()
	if rc := w.receipt(home, "e1"); rc.Outcome != model.Handled || rc.Result.String() != `"noted"` {
		t.Errorf("receipt %+v", rc)
	}
}

func TestNoHandlerSendsFailureNoticesItself(t *testing.T) {
	p := newProgram(t).handle("tell", func(tx *Tx, _ *model.Event) any {
		tx.Send("other", model.Undelivered, nil)
		return nil
	})
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	w.send(home, "tell", "e1", nil)
	h.run()
	if rc := w.receipt(home, "e1"); rc.Outcome != model.Failed || !strings.Contains(rc.Error, "kept for notices") {
		t.Errorf("receipt %+v", rc)
	}
}
