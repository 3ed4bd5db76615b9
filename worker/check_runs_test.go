package worker_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// A worker that repeats a sample of the runs of its spaces finds computations that are not idempotent, and logs each of them once. Without the
// sample it repeats nothing.
func TestCheckRuns_ASampleFindsWhatIsNotIdempotentAndLogsItOnce(t *testing.T) {
	for _, sample := range []int{0, 5} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			calls := map[string]int{}
			p := space.NewProgram("dice")
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			must(p.Handle("add", func(tx *space.Tx, _ *model.Event) (model.Value, error) {
				n, _ := tx.Get("n").AsInt()
				tx.Set("n", n+1)
				return model.Value{}, nil
			}))
			for _, id := range []string{"dice", "pure"} {
				must(p.Add(space.NodeSpec{ID: id, Kind: space.Computation, Output: id, Run: func(tx *space.Tx) (model.Value, error) {
					n, _ := tx.Get("n").AsInt()
					if calls[id]++; id == "dice" {
						n = 1000*n + int64(calls[id])
					}
					return model.Int(n), nil
				}}))
			}
			w.process(worker.Config{ID: "w1", Programs: worldtest.Always(p), Options: worker.Options{Budgets: space.Budgets{CheckRuns: sample}}}, nil)
			w.watch("s", "dice")
			w.watch("s", "pure")
			for i := range 40 {
				w.Send("s", "add", fmt.Sprint("e", i))
				w.EventuallyEnded("s", i+1)
				w.Eventually("it is derived", func() bool { return w.Doc("s", "pure") == fmt.Sprint(i+1) })
			}
			found := 0
			if sample > 0 {
				found = 1
			}
			log := w.Log.String()
			if n := strings.Count(log, "dice is not idempotent"); n != found || strings.Contains(log, "pure is not idempotent") {
				t.Errorf("one in %d: it is logged %d times, want %d:\n%s", sample, n, found, log)
			}
			if extra := calls["pure"] > 41; extra != (sample > 0) {
				t.Errorf("one in %d: of about 41 runs of a pure computation there were %d calls", sample, calls["pure"])
			}
		})
	}
}
