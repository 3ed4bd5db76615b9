package pause

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestFor_WaitsForTheTimeOrForTheEndOfTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, c := range []struct {
			d, after time.Duration
			err      error
		}{
			{0, 0, nil},
			{time.Second, time.Second, nil},
			{time.Hour, time.Minute, context.DeadlineExceeded},
			{time.Hour, time.Minute, context.DeadlineExceeded},
			{0, time.Minute, context.DeadlineExceeded},
		} {
			if err := For(ctx, c.d); !errors.Is(err, c.err) || time.Since(began) != c.after {
				t.Errorf("a pause of %v: %v after %v, want %v after %v", c.d, err, time.Since(began), c.err, c.after)
			}
		}
	})
}

func TestBackoff_GrowsUpToASecond(t *testing.T) {
	for n, want := range map[int]time.Duration{0: 0, 1: time.Millisecond, 2: 2 * time.Millisecond, 10: 512 * time.Millisecond, 11: time.Second, 1000: time.Second} {
		if got := Backoff(n); got != want {
			t.Errorf("after %d answers: %v, want %v", n, got, want)
		}
	}
}
