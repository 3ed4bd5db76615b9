package settletest_test

import (
	"context"
	"time"
)

// nap blocks without using its transaction, until it is released.
func nap(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(time.Minute / 1000)
	}
}
