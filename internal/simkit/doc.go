// Package simkit is the engine of package settletest: spaces in memory and in virtual time, driven by
// their caller. It does not depend on testing.TB, so that hosts of other languages can run their
// own tests with it.
//
// A world holds spaces, and drives their cores (package space) directly: there is no worker, no
// coordinator and no bus. Their work is done here in the simplest correct way:
//
//	append       the log accepts every commit at once; there is no other writer
//	release      a commit's sends are in the lanes of their targets when the commit is in the
//	             log; a space is loaded for its first event
//	mirror       a document of another space is observed there and delivered with each commit;
//	             its absence, only when that space has nothing to compute for it
//	notice       the origin of a refused event is notified, as by a coordinator
//	time         Advance moves from one scheduled wake-up of a space to the next
//	checkpoint   Save; Restart and Crash load all spaces from it and from their logs
//
// Spaces are stepped one at a time, in the order in which they got work, so a world is
// deterministic.
//
// Mistakes of a program are collected as Problems. A function that blocks ends the world (see
// turn.go).
package simkit
