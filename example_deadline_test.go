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
	promised = settle.NewStream[string]("promised")
	repaired = settle.NewRows[string]("repaired")
)

// A repair that no garage has ended within three days has failed, an urgent one within two hours, and one that was promised for the next noon at noon.
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
	promised.Handle(p, func(tx *settle.Tx, car string) error {
		repair.Start(tx, car, "brakes", space.DeadlineAt(tx.Now().Truncate(24*time.Hour).Add(36*time.Hour)))
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
	settletest.Send(s, promised, "car-3")
	fmt.Println(repair.Get(s, "car-1").Deadline.Sub(w.Now()))
	fmt.Println(repair.Get(s, "car-3").Deadline.Format("Mon 15:04"))
	w.Advance(2 * time.Hour)
	fmt.Println(repaired.Get(s, "car-2"))
	w.Advance(70 * time.Hour)
	fmt.Println(repair.Get(s, "car-1").State)
	fmt.Println(repaired.Get(s, "car-3"))
	// Output:
	// 72h0m0s
	// Fri 12:00
	// failed: DeadlineError: the task has not ended within 2h0m0s
	// failed
	// failed: DeadlineError: the task has not ended by 2026-01-02T12:00:00Z
}
