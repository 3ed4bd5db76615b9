// Command mutants breaks promises on purpose, one at a time, and runs the tests on each broken copy of
// the code. A mutant is an edit of production code that breaks what docs/guarantees.md or a comment
// promises; the mutants were chosen from reading that code, and not its tests. A mutant that no test
// notices (a survivor) shows that a test is missing, unless the edit has no observable effect (an
// equivalent mutant).
//
// The mutants lie in list/, a file for each package, in this form:
//
//	@ W01 worker/saver.go
//	: what a failed save did not store is never stored again
//	- h.core.CheckpointFailed(c.Checkpoint)
//	+ _ = c
//	= it is equivalent, because ... (only if it is)
//	? ./worker ./history (only if other packages are to be tried than plan.go says)
//
// that is: the mutant's name and file, the promise that it breaks, the old text and the new one. The
// text follows the sign and one space; in a text of several lines, each line has the sign. The old text
// must occur exactly once in the file. It is kept short, so that the entry survives changes nearby.
//
//	make mutants                       # continue where the last run stopped
//	go run ./test/mutants -only W0     # the mutants whose names begin so, again
//	go run ./test/mutants -survivors   # survivors again, after a test was added
//	go run ./test/mutants -report      # only rewrite README.md
//
// Each result is a line of results.txt: which test caught the mutant, with the seed if it was the
// simulation. The summary is README.md. A run takes hours: a mutant takes up to a minute, a survivor
// several. It works on a copy of the tree in -dir, so the tree may be edited during the run. With -quick
// 1 only the tests of the mutant's own package are run, and a mutant that passes them is open: the next
// run without -quick continues there. -tests selects tests by name. The result of an entry that has
// changed since is ignored.
//
// TestListIsTrue fails when a mutant's old text is no longer in its file. To update the entry, replace
// the text by the code that keeps the promise now, and run `go run ./test/mutants -only NAME`; if the
// promise no longer exists, delete the entry and its line in results.txt. Then run `go run
// ./test/mutants -report`.
//
// test/sim/MUTATIONS.md is an older list of mutants that only the simulation catches; they are not
// repeated here.
package main
