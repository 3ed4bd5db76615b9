// Package sim runs whole deployments in virtual time, from one number: clients, workers,
// coordinators, logs, lanes and saved state, on a network and on machines where
// everything goes wrong that can. What runs is the real shell and the real core; only the
// server and the wires are simulated (bus/membus).
//
//	seed -> plan -> chaos -> heal -> rest -> checks
//
// A plan is an explicit list of what clients do and of what is done to whom. While it
// lasts, requests and answers are lost, late, repeated, overtaken; processes are killed
// between any two steps of theirs, paused, cut off; stores are full, replicas are behind.
// Then everything is healed, and the deployment must come to rest within a bound of
// virtual time. What it has done must then add up: see the checks, each a file.
//
// # A seed is a replay
//
// What happens to a request is not drawn from a sequence but follows from what it is: a
// hash of the seed and of who asks what for which time. So it does not matter who is
// first within one instant, and an item that is taken out of a plan changes nothing about
// the fates of the others, which is what lets a failing plan be shrunk to a few items.
// Everything takes an odd number of nanoseconds, so hardly anything ever happens at the
// same instant as anything else. See docs/adr/0017.
//
//	go test ./test/sim                                  1,200 seeds (200 under -race), and those that failed once
//	go test ./test/sim -run TestSeed -seed 4711 -v      one seed, with its minutes
//	make sim SEEDS=20000                                many
package sim
