package ordered_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/ordered"
)

// The log of a key and its state go back, alone or with the lane, under a running server or while none runs.
// Later sends of the key arrive once; the effects of the lost commits' sends remain, and are not repeated.
func TestReissue_SendsUnderReissuedPositionsArriveOnce(t *testing.T) {
	for _, alive := range []bool{true, false} {
		for _, lane := range []bool{true, false} {
			t.Run(fmt.Sprintf("alive %v, lane lost %v", alive, lane), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, 2)
					from, to := worldtest.SpacesIn(0, 2, 1)[0], worldtest.SpacesIn(1, 2, 1)[0]
					send := func(first, last int) {
						for i := first; i <= last; i++ {
							w.Send(from, "pay", fmt.Sprint("e", i), fmt.Sprintf(`{"cents":%d,"to":%q}`, 1<<i, to))
						}
					}
					name := 1
					serve := func() *serving { return w.serve(ordered.Config{Name: fmt.Sprint("o", name)}, nil) }
					s := serve()
					send(1, 3)
					w.EventuallyEnded(to, 3)
					old := w.Server.Snapshot()
					send(4, 6)
					w.EventuallyEnded(to, 6)
					if !alive {
						w.stop(s)
						name++
					}
					w.Server.GoBackIn(0, old, lane)
					if !alive {
						s = serve()
					}
					send(7, 9)
					w.Eventually("all sends have arrived", func() bool { return w.Doc(to, "balance") == fmt.Sprint(1<<10-2) })
					w.Pass(time.Minute)
					w.wantDoc(to, "balance", fmt.Sprint(1<<10-2)) // each has taken effect once
					send(4, 6)                                    // lost with the lane, so they are new to the key, but known to the other
					w.Pass(time.Minute)
					w.wantDoc(from, "balance", fmt.Sprint(1<<10-2))
					w.wantDoc(to, "balance", fmt.Sprint(1<<10-2))
					if i := slices.IndexFunc(w.Receipts(to), func(rc *model.Receipt) bool { return rc != nil && rc.Outcome != model.Handled }); i >= 0 {
						t.Errorf("%+v", w.Receipts(to)[i])
					}
					w.stop(s)
				})
			})
		}
	}
}
