//go:build race

package test

// slowdown is by how much less there is to be done under the race detector.
const slowdown = 10
