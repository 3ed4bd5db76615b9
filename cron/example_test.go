package cron_test

import (
	"fmt"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/cron"
)

// Next returns one time after the other; on a day on which clocks skip the time, the job runs later by
// as much as they were put forward.
func ExampleParse() {
	s, err := cron.Parse("CRON_TZ=Europe/Berlin 30 2 * * *")
	if err != nil {
		panic(err)
	}
	at := time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC)
	for range 3 {
		at = s.Next(at)
		fmt.Println(at.UTC().Format(time.DateTime))
	}
	_, err = cron.Parse("every day")
	fmt.Println(err)
	// Output:
	// 2026-03-28 01:30:00
	// 2026-03-29 01:30:00
	// 2026-03-30 00:30:00
	// cron expression "every day": expected 5 to 6 fields, found 2: [every day]
}

// A reminder that is an hour late is worth nothing.
func ExampleSkipMissed() {
	remind := settle.NewStream[cron.Tick]("remind")
	p := settle.NewProgram("canteen").Cron("lunch", "0 12 * * *", remind, cron.SkipMissed(time.Hour))
	remind.Handle(p, func(tx *settle.Tx, t cron.Tick) error {
		tx.Log("lunch", "at", t.At)
		return nil
	})
	fmt.Println(p.Err())
	// Output: <nil>
}

// Each day is billed, however long no worker ran; beyond a year, the days are reported and not billed.
func ExampleEveryMissed() {
	bill := settle.NewStream[cron.Tick]("bill")
	p := settle.NewProgram("meter").Cron("daily", "0 0 * * *", bill, cron.EveryMissed(366))
	days := settle.NewCell[int]("days")
	bill.Handle(p, func(tx *settle.Tx, _ cron.Tick) error {
		days.Update(tx, func(n *int) { *n++ })
		return nil
	})
	fmt.Println(p.Err())
	// Output: <nil>
}
