package settle_test

import (
	"context"
	"fmt"

	"github.com/settlehq/settle"
)

// A performing function knows its space, its action, the event behind it, and a key for the service that it calls, which no other task has.
func ExampleAction_AttemptOf() {
	rent, unlock := settle.NewTrigger("rent"), settle.NewAction[string, string]("unlock")
	p := settle.NewProgram("bikes")
	rent.Handle(p, func(tx *settle.Tx) error {
		unlock.Start(tx, "today", "front")
		return nil
	})
	told := make(chan string, 1)
	unlock.Perform(p, func(ctx context.Context, key, wheel string) (string, error) {
		a := unlock.AttemptOf(ctx)
		told <- fmt.Sprintln(a.Space, a.Action, key, wheel, a.Number, a.Event, a.IdempotencyKey())
		return "unlocked", nil
	})
	unlock.Done(p, func(*settle.Tx, settle.Task[string, string]) error { return nil })
	d, end := deployment(p)
	defer end()
	if err := rent.Call(context.Background(), d.Client().Space("bike-7"), settle.ID("r-1")); err != nil {
		fmt.Println(err)
	}
	fmt.Print(<-told)
	// Output:
	// bike-7 unlock today front 1 r-1 settle.bike-7.unlock.today
}
