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
// sometimesNewer, sometimesNewest; of 10,000 seeds from a first one on also seldomNewest).
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
//	          applications that set timers while the owner saves; new programs, also at a step of a worker
//	clients   send, call, await, get, watch; queries at the head; trees, and waiting for them; dismissals; the list of dead letters
//	code      handlers, a computation and an effect that do not return within their limit: never, after they were given
//	          up, between the limit and that, or because they observe their context; in owners and in applications
//
// Stores that go back, and stores and lanes that are replaced by empty ones, have a simulation of their own: TestRewinds.
//
// The seeds from 40,000,000 to 59,999,999 have all of these faults. Those from 10,000,000 to 29,999,999 have no code that
// hangs, fewer calls that return errors, fewer steps at which a program is deployed, and no client that lists dead letters. The
// others have the earlier faults: no store errors, consumers, expiry, cancellation, early positions, queries, trees, dead
// letters or deployments at a step either. So older seeds keep their runs.
//
// # A seed is a replay
//
// The fate of a request is not drawn from a sequence but is a
// hash of the seed, the process, the request and its count. So the order within one instant
// does not matter, and removing an item from a plan does not change
// the fates of the others, so that a failing plan can be shrunk to a few items.
// Everything takes an odd number of nanoseconds, so events hardly ever coincide. See docs/adr/0017.
//
//	go test ./test/sim                                  1,050 seeds (160 under -race), three fifths of them the oldest, a fifth the newest, and those that failed once
//	go test ./test/sim -run TestSeed -seed 4711 -v      one seed, with its minutes
//	go test ./test/sim -run TestRewinds -rewinds 5000    many returns of the store; -first-rewind N -rewinds 1 -v is one, with its minutes
//	make sim SEEDS=20000                                many
package sim
