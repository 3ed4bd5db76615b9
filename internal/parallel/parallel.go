// Package parallel sets how many tests of a package run at a time.
package parallel

import (
	"flag"
	"strconv"
)

// tests is how many tests run at a time. They start servers and wait for elections, time limits and
// processes much longer than they compute, so that the number does not depend on the number of processors.
const tests = 6

// Allow lets six tests run at a time that call [testing.T.Parallel], instead of one per processor, unless
// -parallel says otherwise. TestMain calls it before it runs the tests.
func Allow() {
	if err := flag.Set("test.parallel", strconv.Itoa(tests)); err != nil {
		panic(err) // not in a test
	}
}
