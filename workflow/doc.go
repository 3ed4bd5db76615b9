// Package workflow runs workflows: graphs of steps that are pushed forward, one completion at a time.
//
// A Graph is data. It is compiled once, from ordinary code (package workflow/compile), and has the hash of
// its JSON as its version. A Run is one execution of it:
//
//	effects, err := run.Step(input)
//
// An Input is what has happened: the run begins, an action has ended, a timer has come. The Effects are what
// is to be done next: actions to start, to cancel, timers to set, the outcome. Step does no I/O, reads no
// clock and starts no goroutine, so a run is a function of its inputs:
//
//   - what has to be stored for a step is its input, and nothing else. That is as long as the result of the
//     action, however much the run has gathered before;
//   - Run.Snapshot is the whole of a run, and Load continues from a snapshot and the inputs behind it. A run
//     that is loaded after every step comes to the same as one that never is;
//   - an input that says what is known already (an action that has ended twice, an attempt that was given
//     up) changes nothing.
//
// # Readiness
//
// Every activation of a node, that is the node, in one iteration of the loops around it, in one call of its
// function, has a counter of what it needs. A completion pushes its successors; one whose counter reaches
// its need is started at that moment, and one that is pushed further is an error, which refuses the step.
// Only a join needs more than one: as many as its fan-out has children, which is set in the step that starts
// them. A branch that is not taken is silent, and where branches meet one of them is enough.
//
// A loop head decides whether there is another iteration. BACK leads to the activations of the next
// one; nothing of a finished iteration is kept, so a loop costs what its body costs.
package workflow
