package main

import "strings"

// step is one run of `go test`.
type step struct {
	pkg  string
	args []string
}

// The simulation first runs a few seeds, and more of them if no other test has noticed the mutant. CI
// runs the first 1200, which include these.
var (
	fewSeeds  = step{"./test/sim", []string{"-run=TestSeeds$", "-seeds=60"}}
	moreSeeds = step{"./test/sim", []string{"-run=TestSeeds$", "-first=61", "-seeds=540"}}
	// runSeeds are those in which runs of workflows are compared with a reading of the log (docs/adr/0060).
	runSeeds = step{"./test/sim", []string{"-run=TestSeeds$", "-first=60000000", "-seeds=120"}}
)

// usual lists the packages whose tests are run on a mutant, by its directory, the cheap ones first.
// Mutants are tried in this order.
var usual = []struct {
	dir   string
	steps []step
}{
	{"ledger", []step{{pkg: "./ledger"}, {pkg: "./space"}, {pkg: "./ordered"}, fewSeeds}},
	{"worker/roster", []step{{pkg: "./worker/roster"}, fewSeeds, {pkg: "./worker"}, {pkg: "./test"}, moreSeeds}},
	{"worker/tasks", []step{{pkg: "./worker/tasks"}, {pkg: "./worker"}, fewSeeds, {pkg: "./test"}, {pkg: "."}, moreSeeds}},
	{"worker/host", []step{{pkg: "./worker/host"}, {pkg: "./worker"}, fewSeeds, {pkg: "./test"}, {pkg: "."}, moreSeeds}},
	{"worker", []step{{pkg: "./worker"}, fewSeeds, {pkg: "./test"}, {pkg: "."}, moreSeeds}},
	{"coordinator", []step{{pkg: "./coordinator"}, {pkg: "./history"}, fewSeeds, {pkg: "./test"}, moreSeeds}},
	{"runs", []step{{pkg: "./runs"}, {pkg: "./workflow/compile"}, runSeeds}},
	{"history", []step{{pkg: "./history"}, fewSeeds, {pkg: "./worker"}, {pkg: "./live"}, {pkg: "./coordinator"}, {pkg: "./test"}, {pkg: "."}, {pkg: "./cmd/settle"}}},
	{"live", []step{{pkg: "./live"}, {pkg: "./gateway"}, {pkg: "./test"}, {pkg: "."}}},
	{"gateway", []step{{pkg: "./gateway"}, {pkg: "./test"}}},
	{"program", []step{{pkg: "./program"}, {pkg: "./program/star"}, {pkg: "./test"}, {pkg: "./cmd/settle"}}},
	{"ordered", []step{{pkg: "./ordered"}, {pkg: "./test"}}},
	{"internal/truncation", []step{{pkg: "./worker"}, {pkg: "./ordered"}, fewSeeds, {pkg: "./test"}, moreSeeds}},
	{"bus", []step{{pkg: "./bus"}, {pkg: "./test"}, {pkg: "./cmd/settle"}}},
}

// steps returns the runs for a mutant, in order.
func (m *mutant) steps() (list []step) {
	if len(m.packages) > 0 {
		for _, pkg := range m.packages {
			list = append(list, step{pkg: pkg})
		}
		return list
	}
	if n := m.order(); n < len(usual) {
		return usual[n].steps
	}
	return []step{{pkg: "./" + m.pkg()}, {pkg: "./test"}}
}

// order returns the index of the mutant's directory in usual, len(usual) if it is not there.
func (m *mutant) order() int {
	for n, u := range usual {
		if m.pkg() == u.dir || strings.HasPrefix(m.pkg(), u.dir+"/") {
			return n
		}
	}
	return len(usual)
}
