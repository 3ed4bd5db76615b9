// Package star hosts programs that are written in Starlark: what a program registers in a
// file becomes a space.Program, that any number of spaces run. docs/starlark.md is the
// language; this is how it works, and what it is safe for.
//
// # The ambient transaction
//
// A cell is a live place: reading stats.departures in a function reads that path in the
// transaction of the run, and makes it what the node depends on; assigning to it writes
// there. A place holds no value, so globals can be frozen, as Starlark wants it, and still
// stand for documents that change.
//
// Starlark tells an attribute nothing of the thread that asks for it. So a program is
// instantiated a few times (machine): each instance has globals of its own, and the places
// among them know their instance, and by it the run under way. A run borrows an instance;
// what it pulls in the middle of a read runs on the same one, a level higher, which it finds
// through space.Tx.Slot. Instances are made by executing the files again, which comes to the
// same every time, and are kept for the next run.
//
// Values of documents are looked at in place: an object or array that was read is a view of
// the immutable model.Value, and only the scalars that are named are converted.
//
// # Limits
//
// The interpreter counts instructions, and does not know what one of them costs. So the tree
// of a file is rewritten before it is compiled (rewrite.go): operators, methods, indexes,
// slices and builtins that can cost more than their instruction become calls of operations
// that count what they go through as steps, and what they allocate as bytes, before they do
// it. Every other instruction counts as stepBytes bytes. What is hashed, compared or written
// as text is walked with the same account, and to a depth; what leaves a run is bounded too
// (Limits). Integers have 64 bits, so that none grows. Text is bounded before it is parsed,
// and its nesting before it is resolved; what a program keeps, before it is frozen, since
// freezing follows tuples as often as it meets them.
//
// All of it depends on the program and its input alone, never on a clock or on the memory of
// the process: a run that is stopped here is stopped in the same place elsewhere, and its
// event ends in the same failed receipt.
//
// # Determinism
//
// There is no clock but now, in handlers, which the transaction answers; no randomness, no
// files, no network, no environment, no identity of values, no order that is not that of
// insertion or of keys. Files are loaded from the program's own and nowhere else.
//
// # Trust
//
// This mode is for authors whom one would let write a program for one's deployment, and who
// make mistakes, or do their worst, with the language alone: no text that they can write
// takes more than the limits, ends the process, or reaches anything but the documents of
// spaces that the runtime may read anyway. It is not a boundary between tenants who attack
// the process itself: the interpreter shares its memory, and a mistake in it, in this
// package or in Go would be one of theirs to use. Nor does it bound how many runs a
// program causes (the core does that per pass), how much it keeps in documents over time
// (spaces have limits for a commit, not for their sum), or how long a single run takes on a
// slow machine: a million steps are some tens of milliseconds, and an operation in the middle
// of which a run is stopped is finished first. Memory is counted by rule: the process may
// need a few times of what is counted, for the garbage that is not collected yet. Whoever
// hosts strangers runs a worker for each, under the limits of the operating system.
//
// # Fingerprints
//
// A node's Version is a hash of the code of its function, and of all that this names: other
// functions, constants by their values, cells by their names and defaults, what a closure has
// captured, what a file was loaded for, and the node's options. Comments, docstrings, layout
// and places do not count. So a space that goes on with a new version of its program runs
// again what has changed, and nothing else.
//
// # Errors
//
// Every error is an *Error: file:line:col, a message, and the calls that led there.
package star
