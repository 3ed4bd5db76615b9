// Package worker serves spaces whose cores are graphs: it builds a core from package space and a program, and
// hosts it by package worker/host, which is the worker itself: processes, partitions, hosts, loops.
//
//	Worker, Attach   a process that serves spaces, and one that takes part in a single space
//	core             a space.Space as package host drives it: conversions, spans, log lines, tasks
//	engine           what the cores of a process share: its configuration, counts of runs, slots for tasks
//
// This package contains what depends on nodes, programs or transactions of the application. What would be the
// same for a core that only handles events belongs in worker/host.
package worker
