package settletest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/cron"
	"github.com/settlehq/settle/settletest"
)

// The diary of these tests has an hourly job, and each day a reminder for the next day.
type Diary struct {
	Hours     int64 `json:"hours"`
	Reminders int64 `json:"reminders"`
}

var (
	diary    = settle.NewCell[Diary]("diary")
	days     = settle.NewDerived[int64]("days")
	hourly   = settle.NewStream[cron.Tick]("hourly")
	reminder = settle.NewTrigger("reminder")
	begin    = settle.NewTrigger("begin")
)

func diaries() *settle.Program {
	p := settle.NewProgram("diary")
	hourly.Handle(p, func(tx *settle.Tx, _ cron.Tick) error {
		diary.Update(tx, func(d *Diary) { d.Hours++ })
		return nil
	})
	remind := func(tx *settle.Tx) {
		reminder.SetTimer(tx, "reminder", tx.Now().Add(24*time.Hour))
	}
	begin.Handle(p, func(tx *settle.Tx) error {
		remind(tx)
		return nil
	})
	reminder.Handle(p, func(tx *settle.Tx) error {
		diary.Update(tx, func(d *Diary) { d.Reminders++ })
		remind(tx)
		return nil
	})
	days.Compute(p, func(v *settle.View) (int64, error) { return diary.Get(v).Hours / 24, nil })
	p.Cron("hourly", "0 * * * *", hourly)
	return p
}

// A month of a diary has 720 jobs and 30 timers. The test counts their cost instead of timing it: each hour
// is one run of one handler and one computation, however many tests run in parallel.
func TestAHundredParallelTestsAdvanceAMonthEach(t *testing.T) {
	t.Parallel()
	program := diaries()
	for i := range 100 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			w := settletest.New(t, program)
			s := w.Space("home")
			seen := settletest.Watch(s, days)
			settletest.Call(s, begin)
			s.Mark()
			w.Advance(30 * 24 * time.Hour)
			settletest.Expect(s, diary, Diary{Hours: 720, Reminders: 30})
			s.ExpectRuns("days", 720) // the reminders coincide with a job
			if got := seen.Values(); len(got) != 31 || got[30] != 30 {
				t.Errorf("the watch received %v", got)
			}
			if got := w.Now(); !got.Equal(time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)) {
				t.Errorf("it is %s", got)
			}
		})
	}
}

func BenchmarkMonth(b *testing.B) {
	program := diaries()
	for b.Loop() {
		w := settletest.New(b, program)
		settletest.Call(w.Space("home"), begin)
		w.Advance(30 * 24 * time.Hour)
	}
}
