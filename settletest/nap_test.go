package settletest_test

import (
	"context"
	"time"
)

// nap is what a function must not do, until it is let go.
func nap(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(time.Minute / 1000)
	}
}
