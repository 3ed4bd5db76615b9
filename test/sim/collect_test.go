package sim

import (
	"runtime"
	"sync"
)

const (
	// collectEvery is the number of seeds between garbage collections: small enough that memory is
	// reused while it is in the caches, and that two processes fit into memory.
	collectEvery = 8
	// usualStack is approximately the stack size of most goroutines of a seed. The runtime gives new
	// goroutines the mean stack size that it found at the last garbage collection, which is small
	// between two seeds, and copies each stack as it grows, which would take a seventh of the time of a
	// seed.
	usualStack = 6 << 10
)

// collect collects garbage after every collectEvery seeds.
func collect(i uint64) {
	if i%collectEvery != 0 {
		return
	}
	var ready, ended sync.WaitGroup
	over := make(chan struct{})
	for range 64 {
		ready.Add(1)
		ended.Go(func() { useStack(usualStack, func() { ready.Done(); <-over }) }) // ends below
	}
	ready.Wait()
	runtime.GC()
	close(over)
	ended.Wait()
}

// useStack calls f with about this many bytes of the stack in use.
//
//go:noinline
func useStack(bytes int, f func()) (used byte) {
	var frame [512]byte
	if frame[bytes&0xff] = 1; bytes <= 0 {
		f()
		return frame[0]
	}
	return useStack(bytes-len(frame), f) + frame[1]
}
