package settle_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/settletest"
)

// askingOnce has a task whose function fails once, and reports what its context says of the attempt.
func askingOnce() (*settle.Program, settle.Trigger, settle.Action[string, string]) {
	begin, ask := settle.NewTrigger("begin"), settle.NewAction[string, string]("ask")
	p := settle.NewProgram("asking")
	begin.Handle(p, func(tx *settle.Tx) error {
		ask.Start(tx, "key 1", "in")
		return nil
	})
	ask.Perform(p, func(ctx context.Context, key, _ string) (string, error) {
		a := ask.AttemptOf(ctx)
		if a.Number < 2 {
			return "", errors.New("once more")
		}
		return fmt.Sprint(a.Space, " ", a.Action, " ", a.Key == key, " ", a.Number, " ", a.Event, " ", a.IdempotencyKey()), nil
	}, settle.Backoff(time.Millisecond, time.Millisecond))
	ask.Done(p, func(*settle.Tx, settle.Task[string, string]) error { return nil })
	return p, begin, ask
}

const asked = "s ask true 2 b settle.s.ask.-key-"

// A performing function knows its space, its action, its key and its attempt, and the event behind it, and a key that no other space has.
func TestAttempt_TheFunctionKnowsIt(t *testing.T) {
	t.Parallel()
	p, begin, ask := askingOnce()
	d, end := deployment(p)
	defer end()
	space := d.Client().Space("s")
	if err := begin.Call(t.Context(), space, settle.ID("b")); err != nil {
		t.Fatal(err)
	}
	for u, err := range space.Watch(t.Context(), ask.Name()) {
		if err != nil {
			t.Fatal(err)
		}
		if out, is := u.Value.Get("tasks").Get("key 1").Get("out").AsString(); is {
			if len(out) < len(asked) || out[:len(asked)] != asked {
				t.Errorf("the function knows %s", out)
			}
			return
		}
	}
}

// It knows the same in tests.
func TestAttempt_IsKnownInTests(t *testing.T) {
	t.Parallel()
	p, begin, ask := askingOnce()
	s := settletest.New(t, p).Space("s")
	settletest.SendID(s, begin, settle.ID("b"))
	s.Perform() // which fails
	s.Advance(time.Second)
	s.Perform()
	if out := ask.Get(s, "key 1").Out; len(out) < len(asked) || out[:len(asked)] != asked {
		t.Errorf("the function knows %q", out)
	}
}
