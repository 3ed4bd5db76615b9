package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// A running worker can be asked to check a space. For two minutes the runs of its computations are compared, one in ten
// is repeated, and each node that is not idempotent is one warning per question.
func TestCheck_ARunningSpaceIsCheckedForASampleOfItsRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		program := space.NewProgram("moody")
		calls, variable := 0, int64(0)
		err := errors.Join(
			program.Handle("set", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
				tx.Set("in", ev.Payload)
				return model.Value{}, nil
			}),
			program.Add(space.NodeSpec{ID: "dice", Kind: space.Computation, Output: "dice", Run: func(tx *space.Tx) (model.Value, error) {
				calls++
				n, _ := tx.Get("in").AsInt()
				return model.Int(n + int64(calls)*1000), nil
			}}),
			program.Add(space.NodeSpec{ID: "moody", Kind: space.Computation, Output: "moody", Run: func(tx *space.Tx) (model.Value, error) {
				n, _ := tx.Get("in").AsInt()
				return model.Int(n%2 + variable), nil
			}}),
		)
		if err != nil {
			t.Fatal(err)
		}
		p := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(program)}, nil)
		defer p.Shutdown()
		dice, moody := w.watch("s", "dice"), w.watch("s", "moody")
		defer dice.end()
		defer moody.end()
		sent := 0
		send := func() {
			for i := range 40 {
				sent++
				w.Send("s", "set", fmt.Sprint("e", sent), fmt.Sprint(i%5))
				w.EventuallyEnded("s", sent)
				variable = int64(i / 20)
			}
		}
		const repeated, compared = "node dice is not idempotent", "node moody is not idempotent"
		send()
		if n := w.Log.Count("is not idempotent"); n != 0 {
			t.Errorf("%d warnings although nothing was asked:\n%s", n, w.Log)
		}
		ask := func() {
			if _, err := p.Worker.Inspect(context.Background(), "s", worker.InspectOptions{Record: true, Check: true}); err != nil {
				t.Fatal(err)
			}
		}
		ask()
		send()
		if w.Log.Count("WARN node space=s node=dice") != 1 || w.Log.Count(repeated) != 1 || w.Log.Count(compared) != 1 {
			t.Errorf("after a question:\n%s", w.Log)
		}
		if f := p.Worker.Figures().Differing; len(f) != 2 || f[0].Node != "dice" || f[0].Space != "s" || f[0].Spaces != 1 || !strings.Contains(f[1].Text, compared) {
			t.Errorf("its figures have %+v", f)
		}
		ask()
		send()
		if w.Log.Count(repeated) != 2 {
			t.Errorf("after a second question:\n%s", w.Log)
		}
	})
}
