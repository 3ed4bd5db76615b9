// Package star hosts programs written in Starlark: it compiles the files of a program to a
// space.Program, which any number of spaces run. docs/starlark.md describes the language.
//
// # The packages below
//
//	meter         counts the steps and bytes of a run
//	value         places, views and links; conversion between the language and documents; schemas
//	interp        rewriting, and the operators, methods and builtins that compute
//	fingerprint   hashes of the code of nodes
//
// This package declares programs on top of them: the builtins that register, read, write and send, the
// instances on which functions run, and the language of tests.
//
// # The ambient transaction
//
// A cell is a place: reading stats.departures in a function reads that path in the transaction of the
// run, and the node depends on it; an assignment to it is a write. A place holds no value, so globals
// can be frozen, as Starlark requires, and still refer to documents that change.
//
// Starlark does not pass the thread to an attribute that is read. So a program is instantiated a few
// times (instance): each instance has globals of its own, and its places know the run under way on it. A
// run borrows an instance. A node that the run pulls in the middle of a read runs on the same instance,
// which it finds through space.Tx.Slot. Executing the files again makes another instance, with the same
// result every time; instances are kept for later runs.
//
// An object or array that was read is a view of the immutable model.Value. Only scalars are converted,
// when they are used.
//
// # Limits
//
// The interpreter counts instructions, but not what each of them costs. So the tree of a file is
// rewritten before it is compiled (interp.Rewrite): operators, methods, indexes, slices and builtins that
// can cost more than an instruction become calls of operations. An operation charges what it goes
// through as steps and what it allocates as bytes, before it acts. Every other instruction is charged 32
// bytes. Hashing, comparing and formatting a value is charged element by element, and to a limited
// depth; values that leave a run are limited too (Limits). Integers have 64 bits, so their size is
// bounded. The size of the text is checked before it is parsed, its nesting before it is resolved, and
// the size of the globals before they are frozen, because freezing visits a tuple each time it is reached.
//
// All of this depends on the program and its input, never on a clock or on the memory of the process: a
// run that is stopped on one worker is stopped at the same instruction on every other, and its event ends
// in the same failed receipt.
//
// # Determinism
//
// The only clock is now, in handlers, which the transaction answers. There is no randomness, no file, no
// network, no environment and no identity of values, and every order is that of insertion or of keys.
// load finds files of the same program only.
//
// # Trust
//
// Programs may be careless, or hostile within the language: no program exceeds the limits,
// ends the process, or reaches anything but the documents that its space may read. The language is not a
// security boundary against an attack on the process itself: programs share its memory with the
// interpreter, so a vulnerability in the interpreter, in this package or in Go affects all of them.
// Nor does this package limit how many runs a program causes (the core does, per pass), how much it
// stores in documents over time (a space limits a commit, not their sum), or how long a run takes on a
// slow machine: a million steps take some tens of milliseconds, and a stopped run finishes the operation
// that it is in. Memory is counted by rule: the process may need a few times what is counted, because of
// garbage that is not collected yet. Programs of authors that are not trusted need a worker each, limited
// by the operating system.
//
// # Fingerprints
//
// A node's Version is a hash of the code of its function and of all that the function names: other
// functions, constants by their values, cells by their names and defaults, what a closure has captured,
// what was loaded, and the node's options. Comments, docstrings, layout and positions do not count. So a
// space that continues with a new version of its program runs the changed nodes again, and no others.
//
// # Errors
//
// Every error of a program is an *Error: file:line:col, a message, and the calls that led there.
package star
