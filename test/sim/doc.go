// Package sim runs whole deployments in virtual time, from one number: clients, workers,
// coordinators, logs, lanes and saved state, on a network and machines in which
// anything may fail. The shell and the core are the real ones; only the
// server and the wires are simulated (bus/membus).
//
//	seed -> plan -> chaos -> heal -> rest -> checks
//
// A plan is an explicit list of the clients' operations and of the faults. While it lasts, requests and
// answers are lost, delayed, repeated and reordered; processes are killed between any two of their
// steps, paused, cut off; stores are full, replicas are behind. Then all faults end, and the deployment
// must come to rest within a bound of virtual time. The checks then examine its history; each has a file
// of its own.
//
// # Faults
//
// Each is enabled in a random part of the plans, and the run fails if one never occurred (sometimes,
// sometimesNewer, sometimesNewest, sometimesRuns, sometimesLatest; of 10,000 seeds from a first one on also seldomNewest and seldomRuns).
//
//	network   requests and answers lost, late, overtaken, copied; replicas and leaders that answer from the past;
//	          clients cut off in one direction or both
//	processes killed, also when a request leaves, arrives or is answered; stopped for a while; leaving; started
//	          again under the same name; owners that no member list has; handlers that end their process
//	stores    full; errors from every call but appends and sends, with nothing, all or a part of it done;
//	          follows that end; deliveries of consumers that are dropped or come twice
//	events    sent twice, to the wrong lane, too large, not JSON; for a time; with an expiry; cancelled while they
//	          are queued, wait, are handled or have ended; released far before their turn; redriven
//	space     deletions that touch nothing else, with their markers purged; tasks and timers of spaces that are not loaded;
//	          deadlines of tasks, also of such that never end, are cancelled, or lose their deadline to an operator; applications that set timers while the owner saves; new programs, also at a step of a worker
//	clients   send, call, await, get, watch; queries at the head; trees, and waiting for them; dismissals; the list of dead letters
//	code      handlers, a computation and an effect that do not return within their limit: never, after they were given
//	          up, between the limit and that, or because they observe their context; in owners and in applications
//	runs      workflows of sequences, loops, fan-outs over functions, retries with pauses, timeouts, deadlines, compensation, sleeps,
//	          signals and children in other spaces; started twice, cancelled, also at once and again, tried again, reset; retention;
//	          schedules with every overlap rule; actions that fail, panic, hang, do not notice, and end their process between the
//	          work and the commit; versions of workflows that change, or go, while runs go on; calls that wait for room in
//	          their run and in their space; runs that are stored as snapshots
//
// Stores that go back, and stores and lanes that are replaced by empty ones, have a simulation of their own: TestRewinds.
//
// Plans without any of them, in which spaces begin to read what others derive, are those of TestCalm.
//
// The seeds from 80,000,000 to 99,999,999 have all of these faults. Those from 60,000,000 to 79,999,999 have no deadlines of
// tasks. Those from 40,000,000 to 59,999,999 have no runs either. Those
// from 10,000,000 to 29,999,999 have no code that hangs either, fewer calls that return errors, fewer steps at which a program
// is deployed, and no client that lists dead letters. The others have the earlier faults: no store errors, consumers, expiry,
// cancellation, early positions, queries, trees, dead letters or deployments at a step either. So older seeds keep their runs.
//
// # Runs of workflows
//
// The log is read as if there were no package runs (clerk). The events that a space has handled are the inputs of a run in
// memory, which package workflow makes without stopping, and beside it a twin that is stored and loaded before each step: both
// must do the same. After each transaction the documents, tasks, timers and sent events must be those of that run, and nothing
// else may be there. Results are compared with those of plain code, given the ends of the actions. At rest a run that is rebuilt
// from nothing, and one from what is stored, is where it was; each has ended, or waits for what the plan does not give.
// A run whose event an operator has cancelled is excused from that. Performers over NATS are not simulated: membus
// has no offers (docs/adr/0060).
//
// # A seed is a replay
//
// The fate of a request is not drawn from a sequence but is a
// hash of the seed, the process, the request and its count. So the order within one instant
// does not matter, and removing an item from a plan does not change
// the fates of the others, so that a failing plan can be shrunk to a few items.
// Everything takes an odd number of nanoseconds, so events hardly ever coincide. See docs/adr/0017.
//
//	go test ./test/sim                                  1,155 seeds (176 under -race), an eleventh of them with runs, and those that failed once
//	go test ./test/sim -run TestSeed -seed 4711 -v      one seed, with its minutes
//	go test ./test/sim -run TestRewinds -rewinds 5000    many returns of the store; -first-rewind N -rewinds 1 -v is one, with its minutes
//	make sim SEEDS=20000                                many
package sim
