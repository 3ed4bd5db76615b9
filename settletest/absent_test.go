package settletest_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/settletest"
)

var (
	toBook  = settle.NewStream[int]("book")
	toLook  = settle.NewRequest[string, int]("look")
	booked  = settle.NewCell[int]("booked")
	counts  = settle.NewDerived[int]("counts")
	boarded = settle.NewDerived[string]("board")
)

// clinic has a board in hall over all doctors: what each derives in counts, "-" for one without it.
func clinic(count func(n int) (int, error), options ...settle.Option) *settle.Program {
	p, doctors := settle.NewProgram("clinic"), settle.All("doctor-*")
	toBook.Handle(p, func(tx *settle.Tx, n int) error {
		booked.Update(tx, func(all *int) { *all += n })
		return nil
	})
	toLook.Handle(p, func(tx *settle.Tx, doctor string) (int, error) { return counts.In(doctor).Or(-1).Get(tx), nil })
	counts.Compute(p, func(v *settle.View) (int, error) { return count(booked.Get(v)) }, options...)
	boarded.Compute(p, func(v *settle.View) (string, error) {
		var lines []string
		for _, name := range doctors.Names(v) {
			line := "-"
			if n, ok := counts.In(name).Lookup(v); ok {
				line = fmt.Sprint(n)
			}
			lines = append(lines, name+" "+line)
		}
		return strings.Join(lines, ", "), nil
	})
	return p
}

func same(n int) (int, error) { return n, nil }

// A derived document of another space is not read before it was computed, however late its space begins to exist.
func TestAbsent_ADerivedDocumentIsReadOnceItWasComputed(t *testing.T) {
	t.Parallel()
	w := settletest.New(t, clinic(same))
	settletest.Send(w.Space("doctor-1"), toBook, 7)
	if n := settletest.Call(w.Space("door"), toLook, "doctor-1"); n != 7 {
		t.Errorf("a handler has read %d, want 7", n)
	}
	board := settletest.Watch(w.Space("hall"), boarded)
	settletest.Send(w.Space("doctor-2"), toBook, 8)
	if got, want := board.Values(), []string{"doctor-1 7", "doctor-1 7, doctor-2 8"}; !slices.Equal(got, want) {
		t.Errorf("the boards are %q, want %q", got, want)
	}
	w.Crash()
	settletest.Send(w.Space("doctor-3"), toBook, 9)
	if got, want := board.Values()[2:], []string{"doctor-1 7, doctor-2 8, doctor-3 9"}; !slices.Equal(got, want) {
		t.Errorf("after a crash the boards are %q, want %q", got, want)
	}
}

// A document that cannot be computed, that nothing derives or that is derived as absent, is absent at once.
func TestAbsent_WhatIsNotComputedIsAbsent(t *testing.T) {
	t.Parallel()
	w := settletest.New(t, clinic(func(n int) (int, error) {
		if n == 7 {
			return 0, errors.New("as it should")
		}
		return n, nil
	}), settletest.AllowErrors("counts"))
	settletest.Send(w.Space("doctor-1"), toBook, 7)
	settletest.Send(w.Space("doctor-2"), toBook, 8)
	board := settletest.Watch(w.Space("hall"), boarded)
	if got, want := board.Values(), []string{"doctor-1 -, doctor-2 8"}; !slices.Equal(got, want) {
		t.Errorf("the boards are %q, want %q", got, want)
	}
	settletest.Expect(w.Space("hall"), booked.In("doctor-3"), 0)
}

// A document that a gate holds back, since its last run has not derived it, is waited for, for five seconds at most.
func TestAbsent_AGateIsWaitedForForALimitedTime(t *testing.T) {
	t.Parallel()
	for held, want := range map[time.Duration][]string{ // any order: each on its own
		2 * time.Second:  {"", "doctor-1 7"},
		10 * time.Second: {"", "doctor-1 -", "doctor-1 7"},
	} {
		w := settletest.New(t, clinic(func(n int) (int, error) {
			if n < 7 {
				return 0, errors.New("as it should")
			}
			return n, nil
		}, settle.Debounce(held)), settletest.AllowErrors("counts"))
		settletest.Send(w.Space("doctor-1"), toBook, 1)
		settletest.Watch(w.Space("doctor-1"), counts)
		settletest.Send(w.Space("doctor-1"), toBook, 6)
		w.Advance(time.Second)
		board := settletest.Watch(w.Space("hall"), boarded)
		w.Advance(4 * time.Second)
		if held > 6*time.Second && len(board.Values()) > 1 {
			t.Errorf("held back for %v, the boards are %q after 4 s", held, board.Values())
		}
		w.Advance(20 * time.Second)
		if got := board.Values(); !slices.Equal(got, want) {
			t.Errorf("held back for %v, the boards are %q, want %q", held, got, want)
		}
	}
}

// Spaces that derive from each other go on at once.
func TestAbsent_SpacesThatDeriveFromEachOtherBegin(t *testing.T) {
	t.Parallel()
	p := settle.NewProgram("mutual")
	most := settle.NewDerived[int]("most")
	most.Compute(p, func(v *settle.View) (int, error) {
		other := most.In("left")
		if v.Space() == "left" {
			other = most.In("right")
		}
		return min(3, other.Get(v)+1), nil
	})
	settletest.Expect(settletest.New(t, p).Space("left"), most, 3)
}
