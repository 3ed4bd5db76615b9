// Package starter writes a newcomer's first program into a directory: a door that locks itself,
// in Starlark or in Go, with its tests.
//
// What it writes are files of this repository: star is run by the tests of this package, and door
// is a package of its own, which is compiled and tested with all others. Only go.mod is
// made. It asks for the version of Settle that the command was built with; for one that was
// built from a checkout it says where that lies, and takes over what the checkout needs with the
// checksums, so that the program builds at once, without a network.
package starter
