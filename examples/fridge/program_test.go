package fridge_test

import (
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/examples/fridge"
	"github.com/settlehq/settle/settletest"
)

// open returns a fridge with three sensors, all at 4 °C.
func open(t *testing.T) *settletest.Space {
	t.Helper()
	s := settletest.New(t, fridge.Program()).Space("kitchen")
	all(s, 4)
	return s
}

// all sends a reading of every sensor.
func all(s *settletest.Space, c float64) {
	for _, sensor := range []string{"top", "middle", "bottom"} {
		settletest.Send(s, fridge.Temp, fridge.Reading{Sensor: sensor, C: c})
	}
}

func expectAlarm(t *testing.T, s *settletest.Space, want bool) {
	t.Helper()
	if on := fridge.Alarm.Get(s).On; on != want {
		t.Errorf("at %s the alarm is %v: %s", s.World().Now().Format(time.TimeOnly), on, fridge.Status.Get(s))
	}
}

func TestAnAlarmComesWhenItWasTooWarmForAWhile(t *testing.T) {
	t.Parallel()
	s := open(t)
	all(s, 9)
	expectAlarm(t, s, false)
	s.Advance(fridge.Patience - time.Second)
	expectAlarm(t, s, false)
	s.Advance(time.Second)
	expectAlarm(t, s, true)
	settletest.Expect(s, fridge.Status, "9 °C, warm, ALARM")
}

func TestADoorThatIsOpenForAMomentRaisesNoAlarm(t *testing.T) {
	t.Parallel()
	s := open(t)
	settletest.Send(s, fridge.Door, fridge.Movement{Open: true})
	all(s, 8.5)
	s.Advance(fridge.Patience - time.Second)
	settletest.Send(s, fridge.Door, fridge.Movement{Open: false})
	all(s, 5)
	s.Advance(time.Hour)
	expectAlarm(t, s, false)

	settletest.Send(s, fridge.Door, fridge.Movement{Open: true})
	s.Advance(fridge.Patience)
	expectAlarm(t, s, true)
	if why := fridge.Alarm.Get(s).Why; why != fridge.Open {
		t.Errorf("the alarm is because of %q", why)
	}
}

// TestTheAlarmDoesNotFlap lets the temperature waver around the limit for an hour. A rule that compares
// each mean with the limit would change the alarm every time.
func TestTheAlarmDoesNotFlap(t *testing.T) {
	t.Parallel()
	s := open(t)
	alarms := settletest.Watch(s, fridge.Alarm)
	rule, flaps := false, 0
	for i := range 60 {
		c := 7.9 + 0.2*float64(i%2)
		all(s, c)
		s.Advance(time.Minute)
		if now := c > fridge.TooWarm; now != rule {
			rule, flaps = now, flaps+1
		}
	}
	if got := len(alarms.Values()) - 1; got != 1 || flaps != 59 {
		t.Errorf("the alarm changed %d times and the rule %d times, want 1 and 59", got, flaps)
	}
	all(s, 6.5)
	expectAlarm(t, s, true) // not cool again yet
	all(s, 5.5)
	expectAlarm(t, s, false)
}

// TestAReadingRunsWhatItConcerns counts runs. All eleven nodes are observed; a reading runs only those
// that read a value that it has changed.
func TestAReadingRunsWhatItConcerns(t *testing.T) {
	t.Parallel()
	s := open(t)
	settletest.Send(s, fridge.Temp, fridge.Reading{Sensor: "bottom", C: 3})
	settletest.Send(s, fridge.Temp, fridge.Reading{Sensor: "top", C: 5})
	s.Advance(time.Hour)
	for _, doc := range []string{"status", "tiles", "trend", "extent"} {
		s.Watch(doc)
	}
	ran := func() string { return strings.Join(s.Ran(), " ") }

	s.Mark()
	settletest.Send(s, fridge.Temp, fridge.Reading{Sensor: "middle", C: 4})
	if got := ran(); got != "" {
		t.Errorf("a sensor says what it has said before: %s ran", got)
	}

	s.Mark()
	settletest.Send(s, fridge.Temp, fridge.Reading{Sensor: "middle", C: 4.3})
	if got, want := ran(), "mean extent verdict trend tiles--middle status"; got != want {
		t.Errorf("a sensor went up a little:\n got %s\nwant %s", got, want)
	}

	s.Mark()
	settletest.Send(s, fridge.Door, fridge.Movement{Open: true})
	if got, want := ran(), "verdict status"; got != want {
		t.Errorf("the door was opened:\n got %s\nwant %s", got, want)
	}
}

func TestWhatNobodyLooksAtDoesNotRun(t *testing.T) {
	t.Parallel()
	s := open(t)
	all(s, 9)
	s.Advance(time.Minute)
	expectAlarm(t, s, true) // and yet
	for _, node := range []string{"tiles", "trend", "day"} {
		s.ExpectRuns(node, 0)
	}
}

// TestAnAlarmThatIsPendingSurvivesACrash: the time since it has been too warm is not only in the memory of a
// process.
func TestAnAlarmThatIsPendingSurvivesACrash(t *testing.T) {
	t.Parallel()
	s := open(t)
	all(s, 9)
	s.Advance(fridge.Patience / 2)
	s.World().Crash()
	s.Advance(fridge.Patience/2 - time.Second)
	expectAlarm(t, s, false)
	s.Advance(time.Second)
	expectAlarm(t, s, true)
}

func TestADayHasARecordOfEachHour(t *testing.T) {
	t.Parallel()
	s := open(t)
	for h := range 30 {
		all(s, 3+float64(h%4))
		s.Advance(time.Hour)
	}
	if n := fridge.Hours.Len(s); n != fridge.Keep {
		t.Errorf("there are %d records, want %d", n, fridge.Keep)
	}
	settletest.Expect(s, fridge.Day, fridge.Record{Coldest: 3, Warmest: 6})
	settletest.Expect(s, fridge.Trend, "as ever")
	all(s, 7)
	settletest.Expect(s, fridge.Trend, "warmer than all day")
}

func TestAReadingThatCannotBeIsRefusedWithWords(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, c := range []struct{ payload, want any }{
		{map[string]any{"sensor": "", "c": 4}, "payload of temp: it names no sensor"},
		{map[string]any{"c": 4}, "payload of temp: /sensor: the field is missing"},
		{map[string]any{"sensor": "top", "c": 4000}, "payload of temp: sensor top: 4000 °C; a reading lies between -60 and 60"},
		{map[string]any{"sensor": "top", "c": "cold"}, `payload of temp: /c: a string is here; a number is wanted`},
	} {
		if r := s.Send("temp", c.payload); r.Error != c.want {
			t.Errorf("%v: %q, want %q", c.payload, r.Error, c.want)
		}
	}
	settletest.Expect(s, fridge.Mean, 4)
}
