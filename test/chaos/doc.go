// Command chaos runs a deployment of real processes, breaks it in every way that the
// machine allows, and checks afterwards what became of every single event.
//
//	go run ./test/chaos --duration 30m --topology cluster
//
// It runs itself in other roles: NATS servers, workers and coordinators, which are what the
// programs in cmd/ are. Each has a network namespace of its own, and one server a small
// disk, where the machine allows both (Linux, root); what it does not allow is reported as
// NOT TRIED.
//
//	main.go                flags
//	run.go                 the run, from start to rest
//	topology.go            which processes there are, and where
//	process.go, network.go, disk.go, power.go   how they are started, cut off, starved and left without power
//	roles.go, program.go, hosted.*    what they do
//	clients.go, observers.go          the load
//	nemesis*.go            the faults, in an order that follows from the seed
//	monitor.go             how far it is
//	restored.go            a backup under load, restored
//	judge.go               reading it all back, for package history to check
//	report.go              what came of it
//	soak.go, soak/         a long run in pieces, and its book
//	broken.go, sabotage.go what is broken on purpose, to see that it is found
//
// What is done to it:
//
//	workers        SIGKILL of one or two; SIGSTOP for less and for more than the time after
//	               which they are given up; leaving in good order, one or all in turn; links
//	               to the servers cut in both directions, or in one
//	               the clock of each is off by an amount of its own; a new version of the
//	               program in Starlark is deployed
//	coordinators   SIGKILL
//	servers        SIGKILL of one, of the leader of a stream, of all; SIGSTOP; SIGTERM;
//	               leaders made to step down; links between them cut, both ways or one;
//	               a full disk; with --power, their power cut, one or all at once: what was not written
//	               through is gone
//	backups        are made meanwhile; the last one is restored, and checked like the run itself
//	clients        their connections end with events under way; they send again what was not
//	               acknowledged, and some of what was; observers, over NATS and over HTTP, come and go
//
// What is checked, package history says. Nothing of it trusts a worker: the lanes, the logs,
// the dead letters and the buckets are read as any NATS client could.
//
// With --purge the log is purged while the run lasts, and the run is judged by totals.
//
// Faults come in two sequences at the same time, one of workers and coordinators, one of
// servers. Safety is judged for all of the time; that everything is handled, watched and
// saved is judged when the last fault is healed.
//
// With --power and --sync interval a power cut loses what was acknowledged. When the disks had everything for the last time is
// known, for the run writes everything through some moments before each cut. What was acknowledged, told or shown between
// the two may be gone, and is counted; for all else the same is checked as without a loss.
//
// The exit status is 0 for a run without a violation.
package main
