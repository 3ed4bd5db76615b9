package settletest_test

import (
	"fmt"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/settletest"
)

// A program decides by the outcome what an undelivered event means to it, and not by the words of the reason.
func TestNotice_HasTheOutcomeOfTheEvent(t *testing.T) {
	t.Parallel()
	var (
		forward = settle.NewStream[string]("forward")
		notices = settle.NewCell[[]string]("notices")
		full    = settle.NewStream[struct{}]("full")
		broken  = settle.NewStream[struct{}]("broken")
		unknown = settle.NewStream[struct{}]("unknown")
		notice  = settle.NewStream[model.Notice](model.Undelivered)
	)
	p := settle.NewProgram("notices")
	forward.Handle(p, func(tx *settle.Tx, stream string) error {
		to := settle.To("other")
		switch stream {
		case "full":
			full.Send(tx, to, struct{}{})
		case "broken":
			broken.Send(tx, to, struct{}{})
		case "unknown":
			unknown.Send(tx, to, struct{}{})
		}
		return nil
	})
	full.Handle(p, func(*settle.Tx, struct{}) error { return settle.Reject("full", "no place is left", 3) })
	broken.Handle(p, func(*settle.Tx, struct{}) error { return fmt.Errorf("broken") })
	notice.Handle(p, func(tx *settle.Tx, n model.Notice) error {
		notices.Update(tx, func(l *[]string) {
			*l = append(*l, fmt.Sprintf("%s %s %s %s, a dead letter: %v", n.Stream, n.Outcome, n.Code, n.Data, n.Outcome.Lost()))
		})
		return nil
	})
	w := settletest.New(t, p, settletest.AllowErrors())
	home := w.Space("home")
	for _, stream := range []string{"full", "broken", "unknown"} {
		settletest.Call(home, forward, stream)
	}
	settletest.Expect(home, notices, []string{"full rejected full 3, a dead letter: false", "unknown refused  absent, a dead letter: true"})
	var dead []string
	for _, l := range w.DeadLetters() {
		dead = append(dead, l.Stream)
	}
	if got := fmt.Sprint(dead); got != "[broken unknown]" {
		t.Errorf("dead letters of %s", got)
	}
}
