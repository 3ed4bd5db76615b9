// Package space breaks the rules of the core that are about statements.
package space

import (
	"maps"
	"slices"
	"time"
)

type nodes map[string]int

type wake struct {
	c chan int // want "channel type"
}

func concurrency(w wake) {
	go concurrency(w) // want "go statement"
	w.c <- 1          // want "channel send"
	<-w.c             // want "channel receive"
	select {          // want "select in the core"
	case <-w.c:
	default:
	}
	for range w.c { // want "range over a channel"
	}
}

type iterator interface{ WatchCh() <-chan struct{} }

func outOfDate(it iterator) <-chan struct{} { return it.WatchCh() }

func making() (<-chan int, chan int) { // want "channel type"
	c := make(chan int) // want "channel type"
	return c, c
}

func clock() time.Duration {
	now := time.Now // want "time.Now in the core"
	time.Sleep(1)   // want "time.Sleep in the core"
	return now().Sub(time.Unix(0, 0))
}

func order(n nodes, list []int, m map[int]bool) {
	for k := range n { // want "range over a map (space.nodes)"
		_ = k
	}
	for range m { // want "range over a map"
	}
	for k := range maps.Keys(m) { // want "maps.Keys has no order"
		_ = k
	}
	_ = slices.Collect(maps.Values(m)) // want "maps.Values has no order"
	// any order:
	for range m { // want "range over a map"
	}

	for range list {
	}
	for range slices.Sorted(maps.Keys(m)) {
	}
	for range m { // any order: only counted
	}
	// any order: the sum is the same, and this reason is so long that it
	// takes a second line
	for range m {
	}
	_ = slices.Collect(maps.Keys(m)) // any order: the caller sorts
}

func generic[M ~map[K]V, K comparable, V any](m M) {
	for range m { // want "range over a map"
	}
}

func unknown() {
	for range missing { // want "unknown type"
	}
}
