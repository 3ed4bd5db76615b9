//go:build race

package raced

// On is true in a program that is built with the race detector.
const On = true
