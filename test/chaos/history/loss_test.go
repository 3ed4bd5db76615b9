package history

import (
	"testing"
	"time"

	"github.com/settlehq/settle/model"
)

// losing returns a run with a power cut, and times before, during and after the lost period.
func losing(n int) (s *synthetic, before, during, after time.Time) {
	s = faultless(n)
	begun := s.now.Add(time.Hour)
	s.losses = []Loss{{From: begun, Until: begun.Add(time.Second), Known: begun.Add(2 * time.Second)}}
	return s, begun.Add(-time.Millisecond), begun.Add(time.Millisecond), begun.Add(time.Minute)
}

// Events acknowledged while the disks synced nothing may be lost, and are counted. Events acknowledged
// before or afterwards must not be lost.
func TestWhatAPowerCutHasTakenIsCountedAndNothingElseIsExcused(t *testing.T) {
	s, before, during, after := losing(40)
	gone := ack{client: 2, space: 3, n: 41, lane: 999, at: during}
	s.acks = append(s.acks, gone)
	if c := s.check(); !c.Sound() || c.Counts.LostToPower != 1 {
		t.Errorf("an event acknowledged during the loss: %v, %d lost", c.Examples, c.Counts.LostToPower)
	}
	for name, at := range map[string]time.Time{"before": before, "after": after} {
		s.acks[len(s.acks)-1].at = at
		if c := s.check(); c.Violations[Lost] != 1 || c.Counts.LostToPower != 0 {
			t.Errorf("an event acknowledged %s the loss: %v", name, c.Violations)
		}
	}
	again := gone
	again.at, again.lane = after, 0
	s.acks = append(s.acks[:len(s.acks)-1], gone, again)
	if c := s.check(); c.Violations[Lost] != 1 {
		t.Errorf("an event acknowledged again after the loss: %v", c.Violations)
	}
}

// A lost event may be stored again, at another sequence.
func TestAnEventThatWasLostMayBeSentAgain(t *testing.T) {
	for name, other := range map[string]uint64{"with a place": 998, "there already": 0} {
		s, before, during, _ := losing(40)
		last := len(s.acks) - 1
		first := s.acks[last]
		first.at, first.lane = during, first.lane+998
		second := s.acks[last]
		second.at = s.losses[0].Known
		if other == 0 {
			second.lane = 0
		}
		s.acks = append(s.acks[:last], first, second)
		if c := s.check(); !c.Sound() {
			t.Errorf("%s: %v", name, c.Examples)
		}
		s.acks[last].at = before
		if c := s.check(); c.Sound() {
			t.Errorf("%s: an event that was stored before the loss changes its place, and all is well", name)
		}
	}
}

// An event whose receipt a client saw during a loss may end differently when it is handled again.
func TestAnAnswerThatWasLostMayBeAnother(t *testing.T) {
	for _, c := range []struct {
		at   func(Loss) time.Time
		want int
	}{
		{func(l Loss) time.Time { return l.From }, 0},
		{func(l Loss) time.Time { return l.From.Add(-1) }, 1},
		{func(l Loss) time.Time { return l.Until }, 1},
	} {
		s, _, _, _ := losing(0)
		k := New(s.work, s.parts)
		k.Losses = s.losses
		k.Received(0, 1, 1, Answer{Outcome: model.Handled}, c.at(s.losses[0]))
		k.Received(0, 1, 1, Answer{Outcome: model.Failed}, c.at(s.losses[0]).Add(time.Hour))
		if k.Violations[Answers] != c.want {
			t.Errorf("%d violations, not %d", k.Violations[Answers], c.want)
		}
	}
}

// A watch may deliver lost values until the workers have detected the loss; then it begins again with
// the current value.
func TestAWatchMayShowWhatIsLost(t *testing.T) {
	pause := Noticing
	check := func(shownAt func(Loss) time.Time, again ...int) *Checker {
		s, before, _, after := losing(2)
		for range 3 {
			s.compute("s00", 1, 1)
		}
		d := s.watched
		lost := d[1]
		lost.revision, lost.value, lost.at = 1<<40, 7, shownAt(s.losses[0])
		d[0].at = before
		s.watched = []delivery{d[0], lost}
		for k, i := range again {
			d[i].at = after.Add(time.Duration(k) * pause)
			s.watched = append(s.watched, d[i])
		}
		return s.check()
	}
	during := func(l Loss) time.Time { return l.From }
	for _, again := range [][]int{{0, 1, 2}, {1, 2}, {2}} { // the delivered versions, later ones, or the newest
		if c := check(during, again...); !c.Sound() {
			t.Errorf("%v after the loss: %v", again, c.Examples)
		}
	}
	if c := check(func(l Loss) time.Time { return l.Known.Add(Noticing - 1) }, 2); !c.Sound() {
		t.Errorf("before the workers have noticed: %v", c.Examples)
	}
	for name, c := range map[string]*Checker{
		"before the loss":                      check(func(l Loss) time.Time { return l.From.Add(-1) }, 0, 1, 2),
		"after it":                             check(func(l Loss) time.Time { return l.Known.Add(Noticing) }, 0, 1, 2),
		"a version left out after the loss":    check(during, 0, 2),
		"a version again after the loss":       check(during, 0, 1, 1, 2),
		"the last one is not shown afterwards": check(during, 0, 1),
	} {
		if c.Sound() {
			t.Errorf("%s: all is well", name)
		}
	}
	pause = Noticing / 4 // the watch has gone on where it was, and begins anew then
	for _, again := range [][]int{{0, 1, 1, 2}, {0, 2}} {
		if c := check(during, again...); !c.Sound() {
			t.Errorf("%v after the loss, the client notices it late: %v", again, c.Examples)
		}
	}
}

// A watch that receives a value soon after the loss has to detect the loss soon: later deliveries do not
// extend the time.
func TestAWatchThatIsBackEarlyIsNotExcusedForLonger(t *testing.T) {
	check := func(again ...int) *Checker {
		s, before, _, _ := losing(2)
		for range 4 {
			s.compute("s00", 1, 1)
		}
		d, known := s.watched, s.losses[0].Known
		d[0].at = before
		s.watched = []delivery{d[0]}
		for k, i := range again {
			d[i].at = known.Add(time.Duration(k) * Noticing) // the first time, at its end, and when it is over
			if k == len(again)-1 {
				d[i].at = known.Add(Noticing + Noticing/2)
			}
			s.watched = append(s.watched, d[i])
		}
		return s.check()
	}
	if c := check(1, 2, 3); !c.Sound() {
		t.Errorf("every version: %v", c.Examples)
	}
	if c := check(0, 1, 3); c.Violations[Watches] != 1 {
		t.Errorf("a version left out when the time is over: %v", c.Violations)
	}
	if c := check(1, 3, 3); c.Violations[Regression] != 1 {
		t.Errorf("a version again when the time is over: %v", c.Violations)
	}
}
