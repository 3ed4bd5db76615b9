package workflow

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// day is the longest pause between two attempts, unless a policy has another one, in milliseconds.
const day = 24 * 60 * 60 * 1000

// MaxAttempts is the largest number of attempts of a policy.
const MaxAttempts = 1_000_000

// MaxFactor is the largest factor of a policy.
const MaxFactor = 100

// Check returns an error for a policy that cannot be meant.
func (p *Policy) Check() error {
	switch {
	case p.Attempts < 0 || p.Attempts > MaxAttempts:
		return fmt.Errorf("attempts are from 1 to %d in all", MaxAttempts)
	case p.Factor != 0 && (p.Factor < 1 || p.Factor > MaxFactor):
		return fmt.Errorf("a factor is from 1 to %d", MaxFactor)
	case p.Factor != 0 && p.Step != 0:
		return errors.New("factor makes each pause a multiple of the one before, and step makes it longer by a time; write one of them")
	case min(p.Backoff, p.Step, p.MaxBackoff, p.Timeout) < 0:
		return errors.New("the times of a policy are positive")
	}
	return nil
}

// again reports whether a failed call is retried, and after how many milliseconds.
func (p *Policy) again(f *Failure, attempt int) (pause int64, again bool) {
	if p == nil || attempt >= max(p.Attempts, 1) || len(p.On) > 0 && !slices.ContainsFunc(p.On, f.is) {
		return 0, false
	}
	return p.pause(attempt), true
}

// pause returns the milliseconds after a failed attempt. It is finite, however many attempts there were.
func (p *Policy) pause(attempt int) int64 {
	first, limit := float64(cmp.Or(p.Backoff, p.Step)), float64(cmp.Or(p.MaxBackoff, day))
	if first == 0 {
		return 0 // not a multiple of it, which may be infinite
	}
	pause := first*math.Pow(cmp.Or(p.Factor, 1), float64(attempt-1)) + float64(p.Step)*float64(attempt-1)
	return int64(min(pause, limit))
}
