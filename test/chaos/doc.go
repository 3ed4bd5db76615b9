// Command chaos runs a deployment of real processes, breaks it in every way that the
// machine allows, and checks the outcome of every single event afterwards.
//
//	go run ./test/chaos --duration 30m --topology cluster
//
// It starts itself in other roles: NATS servers, workers and coordinators, like the programs in cmd/.
// Each has a network namespace of its own, and one server a small disk, if the machine allows it (Linux,
// root); faults that are not possible are reported as NOT TRIED.
//
//	main.go                flags
//	run.go                 the run, from start to rest
//	topology.go            which processes there are, and where
//	process.go, network.go, disk.go, power.go   how they are started, cut off, starved and left without power
//	roles.go, program.go, hosted.*    what they do
//	clients.go, observers.go          the load
//	nemesis*.go            the faults, in an order that follows from the seed
//	monitor.go             progress
//	restored.go            a backup under load, restored
//	judge.go               reading it all back, for package history to check
//	report.go              the result
//	soak.go, soak/         a long run in pieces, and its book
//	broken.go, sabotage.go defects on purpose, to test the checker
//
// The faults:
//
//	workers        SIGKILL of one or two; SIGSTOP for less and for more than the time after
//	               which they are given up; leaving in good order, one or all in turn; links
//	               to the servers cut in both directions, or in one
//	               the clock of each is wrong by another amount; a new version of the
//	               program in Starlark is deployed
//	coordinators   SIGKILL
//	servers        SIGKILL of one, of the leader of a stream, of all; SIGSTOP; SIGTERM;
//	               leaders made to step down; links between them cut, both ways or one;
//	               a full disk; with --power, power failures of one or all at once: data that was not written
//	               through is gone
//	backups        are made meanwhile; the last one is restored, and checked like the run itself
//	clients        their connections end with events under way; they send again what was not
//	               acknowledged, and some of what was; observers, over NATS and over HTTP, come and go
//
// Package history describes the checks. They trust no worker: the lanes, the logs,
// the dead letters and the buckets are read as any NATS client can read them.
//
// With --purge the log is purged while the run lasts, and the run is judged by totals.
//
// Faults come in two sequences at the same time, one of workers and coordinators, one of
// servers. Safety is judged for all of the time; that everything is handled, watched and
// saved is judged after the last fault has ended.
//
// With --power and --sync interval a power failure loses acknowledged data. The last time at which the disks had everything is
// known, because the run writes everything through shortly before each failure. Data that was acknowledged, returned or delivered between
// the two may be lost, and is counted; everything else is checked as without a loss.
//
// The exit status is 0 for a run without a violation.
package main
