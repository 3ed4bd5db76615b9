// Package starter writes a first program into a directory: a door that locks itself, in Starlark or
// in Go, with its tests.
//
// The files are part of this repository: the tests of this package run star, and door is a package
// of its own, compiled and tested with all others. Only go.mod is generated. It requires the
// version of Settle that the command was built with; for a command built from a checkout it
// replaces the module by that directory and copies the checkout's requirements with their
// checksums, so that the program builds at once, without a network.
package starter
