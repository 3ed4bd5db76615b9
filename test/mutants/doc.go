// Command mutants breaks promises on purpose, one at a time, and runs the tests on each broken
// copy of the code. A mutant is an edit of production code that breaks what docs/guarantees.md
// or a comment promises; the mutants were chosen from reading that code, and not its tests.
// A mutant that no test notices (a survivor) is a missing test, unless the edit changes nothing
// that can be observed (an equivalent mutant).
//
// The mutants lie in list/, a file for each package, in this form:
//
//	@ W01 worker/saver.go
//	: what a failed save did not store is never stored again
//	- h.core.SpoilCheckpoint(c.Checkpoint)
//	+ _ = c
//	= it is equivalent, because ... (only if it is)
//	? ./worker ./history (only if other packages are to be tried than plan.go says)
//
// that is: the mutant's name and file, the promise that it breaks, the old text and the new one.
// Behind the sign comes the text itself, without one space; of a text of several lines, each line
// has the sign. The old text must occur exactly once in the file. It is kept short, so that the
// entry survives changes beside it.
//
//	make mutants                       # go on where the last run stopped
//	go run ./test/mutants -only W0     # the mutants whose names begin so, again
//	go run ./test/mutants -survivors   # survivors again, after a test was added
//	go run ./test/mutants -report      # write README.md anew, and run nothing
//
// What came of each is a line of results.txt: which test caught it, with the seed if that is the
// simulation. The summary is README.md. A run takes hours: a mutant takes up to a minute, a survivor
// several. It works on a copy of the tree in -dir, so the tree may be edited meanwhile. With -quick 1
// only the tests of the mutant's own package are run, and a mutant that passes them is open: the next
// run without it goes on there. -tests narrows that down to the tests whose names match. What came of an entry that was changed since does not count.
//
// TestListIsTrue fails when a mutant's old text is not in its file any more. To update the entry,
// look for the code that now keeps the promise, put that in, and run `go run ./test/mutants -only
// NAME`; if nothing keeps the promise any more because there is no such promise, delete the entry
// and its line in results.txt. Then run `go run ./test/mutants -report`.
//
// test/sim/MUTATIONS.md is an older list of the same kind, of what the simulation alone catches;
// nothing of it is repeated here.
package main
