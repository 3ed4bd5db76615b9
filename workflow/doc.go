// Package workflow runs workflows: graphs of steps, each started by the completion of those before it.
//
// A Graph is data. It is compiled once, from ordinary code (package workflow/compile), and its version is the
// hash of its JSON. A Run is one execution of it:
//
//	effects, err := run.Step(input)
//
// An Input is an event: the run begins, an action has ended, a timer has fired. The Effects are requests:
// actions and children (runs of other workflows) to start or cancel, timers to set, the outcome. Step does no I/O, reads no clock and starts no
// goroutine, so a run is a function of its inputs:
//
//   - only the input of a step has to be stored. It is as large as the result of the action, however much
//     state the run has;
//   - Run.Snapshot is the complete state of a run, and Load continues from a snapshot and the inputs after
//     it. A run that is loaded after every step has the same outcome as one that never is;
//   - an input that the run knows already (a second end of an action, the end of an abandoned attempt) has
//     no effect.
//
// # Readiness
//
// Every activation of a node (a node in one iteration of its loops, in one call of its function) counts
// completions. A completion adds one to each successor. A successor starts as soon as it has as many as it
// needs; one more is an error, and the step is refused. Only a join needs more than one: as many as its fan-out
// has children, a number that the step sets that starts them. A branch that is not taken does nothing, and
// one completion suffices where branches meet.
//
// A loop head decides whether there is another iteration. BACK leads to the activations of the next
// one. A finished iteration leaves no state, so the cost of a loop is that of its body.
package workflow
