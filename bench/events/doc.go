// Package events compares ways to handle events exactly once and in order, on the same work.
//
//	engine.go     what an engine is, and what it may offer beyond increments
//	engine_*.go   the engines
//	shape.go      what a shape is
//	shape_*.go    the shapes
//	run.go        all engines at all shapes, in turns
package events
