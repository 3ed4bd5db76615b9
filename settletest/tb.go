package settletest

import "fmt"

// TB is what a world tells its findings: *testing.T, *testing.B, *testing.F and *rapid.T are,
// and Must, for where there is no test.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

// Must is a TB for where there is no test, an example or a small program: it panics with the
// first finding.
var Must TB = must{}

type must struct{}

func (must) Helper()                           {}
func (must) Logf(string, ...any)               {}
func (must) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (must) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
