// Package workflows compares engines of durable workflows at actions that do nothing.
//
//	engine.go     what an engine is
//	engine_*.go   the engines
//	programs.go   the programs, in Starlark for Settle, and in Go over an interface for all others
//	shape.go      what is measured
//	shape_*.go    the shapes
//	run.go        all engines at all shapes, in turns
package workflows
