// Package leaks ends the tests of a package with the question whether they have left goroutines
// behind.
package leaks

import (
	"fmt"
	"os"
	"time"

	"go.uber.org/goleak"
)

// patience is how long a goroutine may take to end that is about to. goleak itself waits for less
// than half a second, which a machine that is busy takes to close a connection.
const patience = time.Minute

// VerifyTestMain is goleak.VerifyTestMain for machines that are slow. What a NATS server in this
// process leaves behind for a moment is none of ours.
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

// left are the goroutines that are there until a deadline, nil if none is.
func left(deadline time.Time) error {
	for {
		err := goleak.Find(goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server.(*Server).startGoRoutine.func1"))
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
