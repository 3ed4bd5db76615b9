package settletest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/settletest"
	"github.com/settlehq/settle/space"
)

type Price struct {
	Cents int64 `json:"cents"`
}

var (
	owed  = settle.NewCell[int64]("owed")
	order = settle.NewStream[string]("order")
	undo  = settle.NewRequest[string, bool]("undo")
	ask   = settle.NewStream[string]("ask")
	drop  = settle.NewStream[string]("drop")
	ship  = settle.NewAction[string, int64]("ship")
	price = settle.NewInput[Price]("price")
	offer = settle.NewDerived[string]("offer")
)

// warehouse ships orders, and offers tea at a price that is an input.
func warehouse(shipper func(ctx context.Context, key, what string) (int64, error)) *settle.Program {
	p := settle.NewProgram("warehouse")
	order.Handle(p, func(tx *settle.Tx, what string) error {
		ship.Start(tx, what, what)
		if what == "nothing" {
			return errors.New("there is nothing to ship")
		}
		return nil
	})
	undo.Handle(p, func(tx *settle.Tx, what string) (bool, error) { return ship.Cancel(tx, what), nil })
	ask.Handle(p, func(tx *settle.Tx, what string) error {
		price.Refresh(tx, what)
		return nil
	})
	drop.Handle(p, func(tx *settle.Tx, what string) error {
		price.Forget(tx, what)
		return nil
	})
	ship.Perform(p, shipper, settle.Attempts(2))
	ship.Done(p, func(tx *settle.Tx, t settle.Task[string, int64]) error {
		if t.In == "glass" {
			return errors.New("it is broken")
		}
		if t.State == space.TaskDone {
			owed.Update(tx, func(cents *int64) { *cents += t.Out })
		}
		return nil
	})
	price.Fetch(p, func(_ context.Context, key string) (Price, error) {
		return Price{int64(100 * len(key))}, nil
	})
	offer.Compute(p, func(v *settle.View) (string, error) {
		tea := price.Get(v, "tea")
		switch {
		case tea.Err != nil:
			return fmt.Sprintf("%d %v %v", tea.Value.Cents, tea.Pending, tea.Err), nil
		case tea.Pending && !tea.Arrived:
			return "soon", nil
		}
		return fmt.Sprintf("%d %v", tea.Value.Cents, tea.Pending), nil
	}, settle.Using(price))
	return p
}

func shipFor5(context.Context, string, string) (int64, error) { return 5, nil }

func TestTasks_CompleteAndGiveUpAreHandledAsInADeployment(t *testing.T) {
	t.Parallel()
	s := settletest.New(t, warehouse(shipFor5)).Space("w")
	settletest.Call(s, order, "tea")
	settletest.Call(s, order, "tea")
	if got := settletest.PendingTasks(s, ship); len(got) != 1 || got[0] != "tea" {
		t.Errorf("pending are %v", got)
	}
	settletest.Complete(s, ship, "tea", 7)
	settletest.Expect(s, owed, 7)
	settletest.Call(s, order, "tea")
	if got := settletest.PendingTasks(s, ship); len(got) != 0 {
		t.Errorf("a finished task is pending again: %v", got)
	}
	settletest.Call(s, order, "milk")
	settletest.GiveUp(s, ship, "milk", errors.New("sour"))
	if got := ship.Get(s, "milk"); got.State != space.TaskFailed || got.Err.Error() != "sour" || got.In != "milk" {
		t.Errorf("got %+v", got)
	}
	settletest.Expect(s, owed, 7)
}

func TestTasks_OfAFailedHandlerAreNotPerformed(t *testing.T) {
	t.Parallel()
	s := settletest.New(t, warehouse(func(_ context.Context, key, _ string) (int64, error) {
		t.Errorf("task %s was performed", key)
		return 0, nil
	})).Space("w")
	settletest.Send(s, order, "nothing")
	if n := s.Perform(); n != 0 {
		t.Errorf("%d attempts", n)
	}
}

func TestTasks_PerformCallsTheFunctionsOfTheProgram(t *testing.T) {
	t.Parallel()
	ran := 0
	w := settletest.New(t, warehouse(func(_ context.Context, key, what string) (int64, error) {
		if ran++; what == "ice" {
			return 0, fmt.Errorf("no room for %s", key)
		}
		return 5, nil
	}))
	s := w.Space("w")
	settletest.Call(s, order, "tea")
	settletest.Call(s, order, "ice")
	seen := settletest.Watch(s, offer)
	if n := s.Perform(); n != 3 || ran != 2 {
		t.Errorf("%d attempts, %d calls", n, ran)
	}
	settletest.Expect(s, owed, 5)
	if got := seen.Values(); fmt.Sprint(got) != "[soon 300 false]" {
		t.Errorf("seen %v", got)
	}
	if got := ship.Get(s, "ice"); got.State != space.TaskPending || got.Attempts != 1 || got.Err == nil {
		t.Errorf("got %+v", got)
	}
	w.Crash()
	if n := s.Perform(); n != 1 {
		t.Errorf("%d attempts", n)
	}
	if got := ship.Get(s, "ice"); got.State != space.TaskFailed {
		t.Errorf("got %+v", got)
	}
}

func TestTasks_AnInputIsFetchedAgainWhenItIsRefreshedOrForgotten(t *testing.T) {
	t.Parallel()
	s := settletest.New(t, warehouse(shipFor5)).Space("w")
	seen := settletest.Watch(s, offer)
	settletest.Complete(s, price, "tea", Price{250})
	settletest.Call(s, ask, "tea")
	settletest.GiveUp(s, price, "tea", errors.New("closed"))
	settletest.Call(s, ask, "tea")
	settletest.Complete(s, price, "tea", Price{260})
	settletest.Call(s, drop, "tea")
	settletest.Complete(s, price, "tea", Price{270})
	want := []string{"soon", "250 false", "250 true", "250 false closed", "250 true", "260 false", "soon", "270 false"}
	if got := seen.Values(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("seen %v\nwant %v", got, want)
	}
}

func TestTasks_AFailedDoneCanBeRedriven(t *testing.T) {
	t.Parallel()
	s := settletest.New(t, warehouse(shipFor5)).Space("w")
	settletest.Call(s, order, "glass")
	o, err := ship.Completed(settle.To("w"), "glass", 5)
	if err != nil {
		t.Fatal(err)
	}
	if rc := s.Send("ship", o.Payload); rc.Outcome != model.Failed {
		t.Errorf("receipt %+v", rc)
	}
	got := ship.Get(s, "glass")
	if got.State != space.TaskFailed || !strings.Contains(got.Err.Error(), "it is broken") {
		t.Errorf("got %+v", got)
	}
	if rc := s.Send("ship", o.Payload); rc.Outcome != model.Failed {
		t.Errorf("the failed event was not handled again: %+v", rc)
	}
}

func TestTasks_ATaskThatWasCancelledTooLateIsDone(t *testing.T) {
	t.Parallel()
	s := settletest.New(t, warehouse(shipFor5)).Space("w")
	settletest.Call(s, order, "tea")
	if !settletest.Call(s, undo, "tea") || settletest.Call(s, undo, "tea") {
		t.Error("it is cancelled once")
	}
	if n := s.Perform(); n != 0 {
		t.Errorf("%d attempts", n)
	}
	o, _ := ship.Completed(settle.To("w"), "tea", 5)
	for range 2 {
		s.Call("ship", o.Payload)
	}
	settletest.Expect(s, owed, 5)
}

// A test completes a task, and checks the reaction.
func ExampleComplete() {
	s := settletest.New(settletest.Must, warehouse(shipFor5)).Space("w")
	settletest.Call(s, order, "tea")
	fmt.Println(ship.Get(s, "tea").State, settletest.PendingTasks(s, ship))
	settletest.Complete(s, ship, "tea", 700)
	fmt.Println(ship.Get(s, "tea").State, owed.Get(s))
	// Output:
	// pending [tea]
	// done 700
}

func ExampleSpace_Perform() {
	w := settletest.New(settletest.Must, warehouse(shipFor5))
	s := w.Space("w")
	settletest.Call(s, order, "tea")
	fmt.Println(s.Perform(), owed.Get(s))
	w.Advance(time.Hour)
	fmt.Println(s.Perform(), owed.Get(s))
	// Output:
	// 1 5
	// 0 5
}
