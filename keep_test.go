package settle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/settletest"
)

// A task that has ended is kept for as long as its action says: those that have been over for longer make room when there are many.
func TestKeep_CountsForActionsThatOthersPerform(t *testing.T) {
	t.Parallel()
	for after, left := range map[time.Duration]int{59 * time.Minute: 64, 61 * time.Minute: 1} {
		pay, start := settle.NewAction[string, int]("pay"), settle.NewStream[string]("start")
		p := settle.NewProgram("post")
		pay.External(p, settle.Keep(time.Hour))
		start.Handle(p, func(tx *settle.Tx, key string) error { pay.Start(tx, key, "in"); return nil })
		w := settletest.New(t, p)
		s := w.Space("s")
		pays := func(n int) {
			key := fmt.Sprint("k", n)
			settletest.Send(s, start, key)
			s.Send("pay", map[string]any{"key": key, "out": 5})
		}
		for n := range 63 {
			pays(n)
		}
		w.Advance(after)
		pays(63)
		if n := s.Get("pay").Get("tasks").Len(); n != left {
			t.Errorf("%s after 63 tasks have ended there are %d, want %d", after, n, left)
		}
	}
}
