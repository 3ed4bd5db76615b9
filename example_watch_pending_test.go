package settle_test

import (
	"context"
	"fmt"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/remote"
	"github.com/settlehq/settle/space"
)

// A process elsewhere performs the tasks of a space: it gets each, with its type, and reports how it has ended.
func ExampleAction_WatchPending() {
	approve := settle.NewAction[int, bool]("approve")
	spend, state := settle.NewStream[int]("spend"), settle.NewCell[string]("state")
	p := settle.NewProgram("expenses")
	spend.Handle(p, func(tx *settle.Tx, cents int) error {
		approve.Start(tx, tx.Event().ID, cents)
		return nil
	})
	approve.External(p, remote.Watched())
	approve.Done(p, func(tx *settle.Tx, t settle.Task[int, bool]) error {
		state.Set(tx, fmt.Sprint(t.Key, " ", t.State == space.TaskDone && t.Out, " ", t.Err))
		return nil
	})
	d, end := deployment(p)
	defer end()
	ctx, team := context.Background(), d.Client().Space("team")
	err := spend.Call(ctx, team, settle.ID("lunch"), 1250)
	if err == nil {
		err = spend.Call(ctx, team, settle.ID("yacht"), 99_000_000)
	}
	seen := 0
	for t, wrong := range approve.WatchPending(ctx, team) {
		if err != nil || wrong != nil {
			fmt.Println(err, wrong)
			return
		}
		fmt.Println(t.Key, t.In)
		if t.In > 10_000 {
			err = approve.Fail(ctx, team, t.Key, fmt.Errorf("too dear"))
		} else {
			err = approve.Complete(ctx, team, t.Key, true)
		}
		if seen++; seen == 2 {
			break
		}
	}
	for s, wrong := range state.Watch(ctx, team) {
		if err != nil || wrong != nil {
			fmt.Println(err, wrong)
			return
		}
		if s.Value == "yacht false too dear" {
			fmt.Println(s.Value)
			return
		}
	}
	// Output:
	// lunch 1250
	// yacht 99000000
	// yacht false too dear
}
