// Package demo runs "settle demo flights": a deployment in this process, real
// flights through it, workers that are killed on the way, people who watch, and a
// verification that trusts none of it.
//
//	options.go   what can be chosen
//	run.go       the run from start to verdict
//	logs.go      how far it is, by following the logs
//	watches.go   the live queries
//	chaos.go     workers die and others join
//	processes.go workers and a coordinator as processes of their own; role.go: inside of one
//	report.go    the figures, as JSON
//	screen*.go   what is shown meanwhile; summary.go: in the end
package demo
