// Package tasks does the work outside of a space that its actions and inputs ask for
// (space.ActionSpec, docs/adr/0029), beside the loop of the host that serves the space.
//
//	the log has    a pending task           found in the confirmed documents, whenever
//	                                        one that holds tasks has another revision
//	attempt        Performer.Do             a goroutine each, limited per action and space, and
//	                                        per worker
//	report         an event to the action   sent by a transaction of the space (docs/adr/0057), or through
//	                                        the lane under an id that is derived from the task
//	the log has    the task ended
//
// Speculative state is never read, so no work is done for a transaction that may be
// undone. A task in the log is found by each owner of the space, until an event in the
// log has ended it: while a task is pending, the space stays in memory, and its saved state
// has it loaded at once, like a space with a follow-up (see worker/host/wakeups.go).
//
// This need not be exact: if two owners report the same completion, the lane
// keeps one event, and an event about a task that has ended has no effect.
package tasks
