// Package tidy contains only tests of the source itself: rules of this repository that a linter cannot
// express, and rules so important that breaking them must fail `go test ./...` and not only CI.
//
// # The rules
//
//	core         model, lanes, lineage, receipts, replica and space are
//	             deterministic: no goroutine, no channel, no select, no clock, and
//	             no range over a map unless a comment on that line or the line
//	             above says "any order:" and why the order cannot matter.
//	imports      the allowed imports (imports_test.go has the table).
//	tests        no test skips itself, and none sleeps.
//	everywhere   a package comment for every package, at most 700 lines a file,
//	             no notes about unfinished work, no paths of a developer's machine.
//
// # How it is tested
//
// testdata/tree is a small tree that breaks every rule at least once. A line that breaks one is marked:
// want "part of the message". The test compares the findings with the marks in both directions, so a
// rule that stops finding anything fails, and so does a rule that finds too much.
//
// The core's rules need types (what is a map?). They come from go/types with the compiler's own export
// data, which `go list -export` provides.
package tidy
