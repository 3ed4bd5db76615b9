package ordered_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/ordered"
)

// The log of a key and its state go back alone, or with the lane, under a server that lives on or while none runs. What the key sends afterwards
// arrives once; what its lost commits had sent stays, and is not done a second time.
func TestReissue_WhatIsSentUnderPositionsThatAreGivenOutAgainArrivesOnce(t *testing.T) {
	for _, alive := range []bool{true, false} {
		for _, lane := range []bool{true, false} {
			t.Run(fmt.Sprintf("alive %v, lane lost %v", alive, lane), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, 2)
					from, to := keyOf(0), keyOf(1)
					send := func(first, last int) {
						for i := first; i <= last; i++ {
							w.send(from, "pay", fmt.Sprint("e", i), fmt.Sprintf(`{"cents":%d,"to":%q}`, 1<<i, to))
						}
					}
					name := 1
					serve := func() *serving { return w.serve(ordered.Config{Name: fmt.Sprint("o", name)}, nil) }
					s := serve()
					send(1, 3)
					w.eventuallyEnded(to, 3)
					old := w.server.Snapshot()
					send(4, 6)
					w.eventuallyEnded(to, 6)
					if !alive {
						w.stop(s)
						name++
					}
					w.server.GoBackIn(0, old, lane)
					if !alive {
						s = serve()
					}
					send(7, 9)
					w.eventually("all of it has arrived", func() bool { return w.doc(to, "balance") == fmt.Sprint(1<<10-2) })
					w.pass(time.Minute)
					w.wantDoc(to, "balance", fmt.Sprint(1<<10-2)) // each has taken effect once
					send(4, 6)                                    // they are lost with the lane, so they are new to the key, and known to the other
					w.pass(time.Minute)
					w.wantDoc(from, "balance", fmt.Sprint(1<<10-2))
					w.wantDoc(to, "balance", fmt.Sprint(1<<10-2))
					if i := slices.IndexFunc(w.receipts(to), func(rc *model.Receipt) bool { return rc != nil && rc.Outcome != model.Handled }); i >= 0 {
						t.Errorf("%+v", w.receipts(to)[i])
					}
					w.stop(s)
				})
			})
		}
	}
}

// keyOf is a key of one of two partitions.
func keyOf(partition int) string {
	for i := 0; ; i++ {
		if key := fmt.Sprint("k", i); model.PartitionOf(key, 2) == partition {
			return key
		}
	}
}
