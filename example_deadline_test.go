package settle_test

import (
	"fmt"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/deadline"
	"github.com/settlehq/settle/settletest"
	"github.com/settlehq/settle/space"
)

var (
	repair   = settle.NewAction[string, string]("repair")
	report   = settle.NewStream[string]("report")
	urgent   = settle.NewStream[string]("urgent")
	repaired = settle.NewRows[string]("repaired")
)

// A repair that no garage has ended within three days has failed, an urgent one within two hours.
func Example_deadline() {
	p := settle.NewProgram("cars")
	report.Handle(p, func(tx *settle.Tx, car string) error {
		repair.Start(tx, car, "brakes")
		return nil
	})
	urgent.Handle(p, func(tx *settle.Tx, car string) error {
		repair.Start(tx, car, "brakes", space.Deadline(2*time.Hour))
		return nil
	})
	repair.External(p, deadline.After(3*24*time.Hour))
	repair.Done(p, func(tx *settle.Tx, t settle.Task[string, string]) error {
		repaired.Set(tx, t.Key, fmt.Sprint(t.State, ": ", t.Err))
		return nil
	})
	w := settletest.New(settletest.Must, p)
	s := w.Space("garage")
	settletest.Send(s, report, "car-1")
	settletest.Send(s, urgent, "car-2")
	fmt.Println(repair.Get(s, "car-1").Deadline.Sub(w.Now()))
	w.Advance(2 * time.Hour)
	fmt.Println(repaired.Get(s, "car-2"))
	w.Advance(70 * time.Hour)
	fmt.Println(repair.Get(s, "car-1").State)
	// Output:
	// 72h0m0s
	// failed: DeadlineError: the task has not ended within 2h0m0s
	// failed
}
