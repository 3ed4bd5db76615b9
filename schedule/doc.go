// Package schedule computes when runs of a workflow start: the next occurrence of a schedule, the occurrences that
// were missed, and what the overlap rule decides about each.
//
// A Definition says when and what. A Schedule is a definition in a space with its state, which is data. Its methods are
// functions of that state and of the time that they are passed: Turn decides about what is due, until a run has to
// start, and Wake returns when the next turn is. Trigger, Fill, Pause, Resume, Redefine and Ended are what happens
// meanwhile. Package runs stores schedules in spaces, and starts and cancels the runs.
//
// Times are milliseconds since 1970, 0 for none. The package reads no clock and draws no random number: the jitter of an
// occurrence is derived from the schedule and the occurrence, and so is the ID of its run.
package schedule
