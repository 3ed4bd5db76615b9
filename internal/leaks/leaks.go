// Package leaks checks at the end of a package's tests whether they have left goroutines
// behind.
package leaks

import (
	"fmt"
	"os"
	"time"

	"go.uber.org/goleak"
)

// patience is the time limit for goroutines that are about to end. goleak itself waits for less
// than half a second, which a machine that is busy takes to close a connection.
const patience = time.Minute

// VerifyTestMain is goleak.VerifyTestMain for slow machines. It ignores goroutines that a NATS server in this
// process leaves behind for a moment.
func VerifyTestMain(m goleak.TestingM) {
	code := m.Run()
	if code == 0 { // a test that has failed may leave anything behind
		if err := left(time.Now().Add(patience)); err != nil {
			fmt.Fprintf(os.Stderr, "goroutines are left behind: %v\n", err)
			code = 1
		}
	}
	os.Exit(code)
}

// left returns the goroutines that still run at a deadline, nil if none does.
func left(deadline time.Time) error {
	for {
		err := goleak.Find(goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server.(*Server).startGoRoutine.func1"))
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
