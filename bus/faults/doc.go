// Package faults makes requests of a bus fail on purpose, for tests: bus.Config.Faults decides the fate of
// every attempt.
package faults
