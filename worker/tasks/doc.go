// Package tasks does the work outside of a space that its actions and inputs ask for
// (space.ActionSpec, docs/adr/0029), beside the loop of who serves the space.
//
//	the log says   a task is pending        looked for in the confirmed documents, whenever
//	                                        one that holds tasks has another revision
//	attempt        Performer.Do             a goroutine each, so many per action and space, and
//	                                        per worker
//	told           an event to the action   through the lane, as from anybody, under an id that
//	                                        follows from the task
//	the log says   it is not pending
//
// What is speculative is never looked at, so nothing is done for a transaction that may be
// undone. A task that is in the log is found by whoever serves the space, until an event in the
// log has ended it: as long as one is pending, the space stays in memory, and what is saved of
// it says that it wants to be woken at once, like one with a follow-up (see worker/due.go).
//
// Nothing here has to be exact for that: of an event that is told twice, by two owners, the lane
// keeps one, and one about a task that has ended does nothing.
package tasks
