// Package daily is a workflow over the flights of a day: it reads the day's file in chunks, checks each flight (all at the same
// time), sums up one airport after the other with an action that fails at first, sleeps, waits for the approval of a person, and
// publishes a report. Run it with `settle demo pipeline`.
//
//	daily.star   the workflow
//	program.go   the program: its actions in Go
//	plain.go     the same report from a plain loop over the same flights, to compare with
//	ledger.go    the record that performers of actions keep of what they have performed
package daily
