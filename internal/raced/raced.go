// Package raced tells tests whether the race detector is on. It makes a program ten times slower and looks at how
// goroutines share memory, for which a few cases of a property are as good as many: those run without it.
package raced

// Fewer returns one of every factor cases, at least one, under the race detector, and all of them otherwise.
func Fewer(cases, factor int) int {
	if !On {
		return cases
	}
	return max(1, cases/factor)
}

// Step returns how far apart the cases to try are: factor under the race detector, 1 otherwise.
func Step(factor int) int {
	if !On {
		return 1
	}
	return factor
}
