package cron_test

import (
	"fmt"
	"time"

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
