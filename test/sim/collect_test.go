package sim

import (
	"runtime"
	"sync"
)

const (
	// collectEvery is after how many seeds garbage is collected: often enough that memory is used again while it
	// is in the caches, and that two processes find room.
	collectEvery = 8
	// usualStack is about what most goroutines of a seed use. The runtime gives new goroutines the mean of what it
	// found in use when it collected garbage last, which is little between two seeds, and copies the stack of each
	// as it grows: a seventh of the time of a seed.
	usualStack = 6 << 10
)

// collect sometimes collects garbage between two seeds.
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

// useStack calls f with about so many bytes of the stack in use.
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
