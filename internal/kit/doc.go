// Package kit is the engine of package settletest: spaces in memory, driven by whoever calls
// it, in virtual time. It knows no testing.TB, so that hosts of other languages can run tests
// of their own with it.
//
// A world holds spaces, and drives their cores (package space) directly: there is no worker,
// no coordinator and no bus. What they do is done here in the simplest way in which it can be
// right:
//
//	append       the log takes every commit at once; nobody else writes there
//	release      what a commit sends is in the lane of its target when the commit is in the
//	             log; a space comes to life for the first event
//	mirror       a document of another space is observed there and delivered with each commit
//	notice       who sent what no handler took is told, as coordinators do
//	time         Advance goes from one time at which a space wants to be woken to the next
//	checkpoint   Save; Restart and Crash load all spaces anew from it and from their logs
//
// Spaces are settled in the order in which it became known that they have something to do,
// one step at a time, so a world does the same every time.
//
// What a program does wrong is collected as Problems. A function that blocks ends the world
// (see turn.go).
package kit
