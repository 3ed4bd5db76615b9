package faultlog

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// logged returns a Log, and a function that returns its output.
func logged() (*Log, *bytes.Buffer) {
	var out bytes.Buffer
	return New(slog.New(slog.NewTextHandler(&out, nil))), &out
}

func TestPace_LinesBecomeRareAndCountWhatWasLeftOut(t *testing.T) {
	began := time.Unix(1_000_000, 0)
	var p Pace
	var at []time.Duration
	met, counted := 0, 0
	for d := time.Duration(0); d <= time.Hour; d += time.Second {
		met++
		if left, due := p.Due(began.Add(d)); due {
			at = append(at, d)
			counted += 1 + left
			if counted != met {
				t.Errorf("after %v, lines stand for %d of %d times", d, counted, met)
			}
		}
	}
	want := []time.Duration{0, time.Minute, 3 * time.Minute, 7 * time.Minute, 15 * time.Minute}
	for next := 25 * time.Minute; next <= time.Hour; next += most {
		want = append(want, next)
	}
	if !slices.Equal(at, want) {
		t.Errorf("logged after %v, want %v", at, want)
	}
}

func TestPace_AFaultThatWasNotMetForLongIsANewOne(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	var p Pace
	for range 3600 {
		p.Due(now)
		now = now.Add(time.Second)
	}
	now = now.Add(quietFor + time.Second)
	if left, due := p.Due(now); !due || left != 0 {
		t.Errorf("it is logged: %v, and stands for %d others", due, left)
	}
	if _, due := p.Due(now.Add(least)); !due {
		t.Error("the pause is that of the fault before")
	}
}

func TestLog_FaultsAreToldApartByMessageAndByWhatIsConcerned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, out := logged()
		for range 3 {
			l.Warn("save", "a", "space", "a")
			l.Warn("save", "b", "space", "b")
			l.Error("load", "a", "space", "a")
		}
		if n := strings.Count(out.String(), "\n"); n != 3 {
			t.Errorf("%d lines, want 3:\n%s", n, out)
		}
		l.Over("save", "a")
		l.Warn("save", "a", "space", "a")
		if n := strings.Count(out.String(), "\n"); n != 4 {
			t.Errorf("a fault that was over is not logged when it is met again:\n%s", out)
		}
		time.Sleep(least)
		l.Warn("save", "b", "space", "b")
		if !strings.Contains(out.String(), "space=b left_out=2\n") {
			t.Errorf("what was left out is not counted:\n%s", out)
		}
	})
}

// Ten thousand spaces that fail for the same reason cause neither ten thousand lines nor ten thousand
// records.
func TestLog_VeryManyFaultsOfAKindArePacedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, out := logged()
		const spaces = 10_000
		for range 60 {
			for i := range spaces {
				l.Warn("save", fmt.Sprint(i), "space", i)
			}
			time.Sleep(time.Minute)
		}
		if n := strings.Count(out.String(), "\n"); n < individually || n > 9*(individually+1) {
			t.Errorf("%d lines in an hour", n)
		}
		if n := len(l.kinds["save"].paces); n > individually {
			t.Errorf("%d faults are remembered", n)
		}
		time.Sleep(quietFor)
		l.Warn("save", "another", "space", "another")
		if l.kinds["save"].paces["another"] == nil {
			t.Error("the others are over, and what is met now is not paced by itself")
		}
	})
}
