// Package demo runs "settle demo flights": a deployment in this process, real flights through it,
// workers that are killed on the way, live queries, and an independent verification.
//
//	options.go   options
//	run.go       the run from start to verdict
//	logs.go      progress, by following the logs
//	watches.go   the live queries
//	chaos.go     workers die and others join
//	processes.go workers and a coordinator as processes of their own; role.go: inside of one
//	report.go    the figures, as JSON
//	screen*.go   progress on the terminal; summary.go: the result
package demo
