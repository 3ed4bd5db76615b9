//go:build unix

package main

import (
	"syscall"
	"time"
)

// cpuTime returns the CPU time of the process so far, garbage collection included.
func cpuTime() time.Duration {
	var u syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
