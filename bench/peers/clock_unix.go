//go:build unix

package main

import (
	"syscall"
	"time"
)

// cpuTime returns what the process has used so far, the garbage collector included.
func cpuTime() time.Duration {
	var u syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
