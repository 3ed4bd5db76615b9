package settletest

import "fmt"

// TB receives the findings of a world: a *testing.T, *testing.B, *testing.F or *rapid.T, or Must
// outside tests.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

// Must is a TB for use outside tests, in examples or small programs: it panics with the first
// finding.
var Must TB = must{}

type must struct{}

func (must) Helper()                           {}
func (must) Logf(string, ...any)               {}
func (must) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (must) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
