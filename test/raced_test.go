//go:build race

package test

// slowdown is the factor by which the work is reduced under the race detector.
const slowdown = 10
