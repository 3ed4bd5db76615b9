package space

import (
	"errors"
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

// A library that sends events sees the notices about them, whether the program handles notices or not, and in the
// transaction of the handler: an error of it is one of the event.
func TestAFailureNoticeIsSeenBeforeItsHandler(t *testing.T) {
	for _, handles := range []bool{false, true} {
		p := counter(t)
		if handles {
			p.handle(model.Undelivered, func(tx *Tx, _ *model.Event) any { return tx.Get("seen") })
		}
		p.Notice(func(tx *Tx, ev *model.Event) error {
			tx.Set("seen", ev.ID)
			if ev.ID == "e2" {
				return errors.New("not this one")
			}
			return nil
		})
		w := newWorld(t)
		h := w.owner("w1", p.Program)
		w.send(home, model.Undelivered, "e1", nil)
		w.send(home, model.Undelivered, "e2", nil)
		h.run()
		if rc := w.receipt(home, "e1"); rc.Outcome != model.Handled || handles && rc.Result.String() != `"e1"` {
			t.Errorf("handles %v: receipt %+v", handles, rc)
		}
		if rc := w.receipt(home, "e2"); rc.Outcome != model.Failed || !strings.Contains(rc.Error, "not this one") {
			t.Errorf("handles %v: receipt %+v", handles, rc)
		}
	}
}
