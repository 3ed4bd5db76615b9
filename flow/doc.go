// Package flow runs workflows in programs in Go, and is the client of runs (package runs).
//
// A workflow is written in Starlark (package workflow/compile); its actions are functions in Go, performed by the worker
// that serves the space:
//
//	w := flow.New(program)
//	w.Starlark("order.star", source)
//	flow.Perform(w, "charge", charge)
//	err := w.Register()
//
// Or its steps are in Go, too: see Define. The actions are the same.
//
// In returns the runs of a space for a client: to start one, to follow it, to send it a signal, to cancel it.
package flow
