package host

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Timers of one instant fire in any order, and their actions run in the order of names.
func TestReturns_ActionsOfOneInstantRunInTheOrderOfNames(t *testing.T) {
	spaces := []string{"h", "c", "f", "a", "e", "b", "g", "d"}
	for name, c := range map[string]struct {
		of   func(space string) time.Duration
		end  time.Duration // of the context
		want []string
	}{
		"at one instant": {
			func(string) time.Duration { return time.Second }, time.Minute,
			[]string{"a", "b", "c", "d", "e", "f", "g", "h"},
		},
		"at one instant, and one before": {
			func(space string) time.Duration {
				if space == "h" {
					return time.Second / 2
				}
				return time.Second
			}, time.Minute,
			[]string{"h", "a", "b", "c", "d", "e", "f", "g"},
		},
		"when the context ends": {
			func(string) time.Duration { return time.Hour }, time.Minute,
			[]string{"a", "b", "c", "d", "e", "f", "g", "h"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r returns
				var got []string // guarded by mu
				var mu sync.Mutex
				ctx, cancel := context.WithTimeout(t.Context(), c.end)
				defer cancel()
				var all sync.WaitGroup
				for _, space := range spaces {
					all.Go(func() { // ends with the pause, or with ctx
						r.after(ctx, c.of(space), space, func() {
							mu.Lock()
							defer mu.Unlock()
							got = append(got, space)
						})
					})
				}
				all.Wait()
				if !slices.Equal(got, c.want) {
					t.Errorf("the actions ran in the order %v, want %v", got, c.want)
				}
				if len(r.list) > 0 {
					t.Errorf("%d are left", len(r.list))
				}
			})
		})
	}
}
