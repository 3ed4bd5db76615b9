// Package runs keeps runs of workflows (package workflow) in spaces.
//
//	set := runs.New()
//	set.Add(graph, nil)
//	set.Use(action)       // of each action that the graph calls, before program.Action(action)
//	set.Register(program) // a space.Program
//
// The program then handles the streams StreamStart, StreamSignal, StreamCancel and StreamTimer, and those on which runs of
// spaces report to each other: a run starts others, its children, and waits for them (docs/adr/0054). A run is documents of
// its space (docs/adr/0044): Doc(ID) has its state and its outcome, Index lists the runs.
//
// A step of a run is a transaction: its input is appended to the records of the run, and what it requests (tasks of
// actions, a timer, the outcome) takes effect with it. A run that is not in memory is rebuilt from its last snapshot
// and the records after it, so a restart after any step makes no difference.
package runs
