// Package heap shows that what lies below a core package is of the core.
package heap

func bad(m map[int]int) {
	for range m { // want "range over a map"
	}
}
