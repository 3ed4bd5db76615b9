package tidy

import (
	"go/build/constraint"
	"slices"
	"strings"
)

// core are the packages that must always give the same outputs for the same inputs: the simulator,
// replay after a crash and two runtimes on one space depend on that. Packages below them belong to the
// core, except harnesses (space/spacetest).
var core = []string{"model", "lanes", "lineage", "receipts", "replica", "ledger", "space", "workflow", "schedule"}

func inCore(f *file) bool {
	return !f.isTest() && !f.isTagged() && !isHarness(f.dir()) && slices.ContainsFunc(core, func(dir string) bool { return within(f.dir(), dir) })
}

// isTagged reports whether only a build tag includes a file. Its declarations would conflict with those
// of the default file; such files are checks, and not part of a release.
func (f *file) isTagged() bool {
	for _, group := range f.syntax.Comments {
		for _, c := range group.List {
			if x, err := constraint.Parse(c.Text); err == nil && c.Pos() < f.syntax.Package {
				return !x.Eval(func(string) bool { return false })
			}
		}
	}
	return false
}

// isHarness reports whether a package exists for tests, like spacetest; not for the directory test/.
func isHarness(dir string) bool {
	base := dir[strings.LastIndexByte(dir, '/')+1:]
	return base != dir && strings.HasSuffix(base, "test")
}

// within reports whether p is root or below it.
func within(p, root string) bool { return p == root || strings.HasPrefix(p, root+"/") }

func anyWithin(p string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return within(p, root) })
}

// importRule is one rule about permitted imports. .golangci.yml has the same rules for editors; `go
// test` enforces this table.
type importRule struct {
	// in are the directories to which the rule applies, with all below; "." is only the root package.
	in []string
	// except are directories and file prefixes below in to which it does not apply.
	except []string
	// tests is set if the rule also applies to test files and harnesses.
	tests bool
	// never are refused import paths, with all below.
	never []string
	// only, if set, are the permitted packages of this module (relative to it), and others those of
	// other modules.
	only, others []string
	instead      string
}

var importRules = []importRule{
	// The core computes. It does no I/O, does not wait, and uses no randomness.
	{in: core, never: []string{"net", "os", "syscall"}, instead: "the core does no I/O: return what is to be done and let worker/ or bus/ do it"},
	{in: core, never: []string{"context"}, instead: "nothing in the core blocks, so there is nothing to cancel; contexts end in worker/"},
	{in: core, except: []string{"model/pool"}, never: []string{"sync"}, instead: "a space has one owner, the loop in worker/, which serialises the calls"},
	{in: core, never: []string{"math/rand", "crypto/rand"}, instead: "take randomness as an input; ids follow from the transaction (model.TxID)"},
	{in: core, never: []string{"log"}, instead: "report through the Trace hooks; worker/ logs"},

	// Dependencies point down (ARCHITECTURE.md).
	{in: []string{"model"}, only: []string{"model"}, others: []string{"github.com/go-json-experiment/json"}, instead: "model is the bottom: every other package imports it; take what you need as an argument"},
	{in: []string{"port"}, only: []string{"model"}, instead: "port declares what is needed of the outside world, over the types of model; it does nothing"},
	{in: []string{"lanes", "lineage", "receipts", "replica"}, only: []string{"model"}, instead: "lanes, lineage, receipts and replica stand side by side on model; what combines them belongs in ledger/"},
	{in: []string{"ledger"}, only: []string{"model", "lanes", "lineage", "receipts", "replica"}, instead: "ledger is the protocol of one space, and knows no graph: it uses model, lanes, lineage, receipts and replica; a host supplies the rest as ledger.Host"},
	{in: []string{"workflow"}, only: []string{"workflow", "internal/layered"}, others: []string{"go.starlark.net", "github.com/go-json-experiment/json"}, instead: "workflow knows graphs and runs; what stores and performs them is built on it"},
	{in: []string{"schedule"}, only: []string{"schedule", "cron", "model"}, others: []string{"github.com/go-json-experiment/json"}, instead: "schedule computes when runs start; runs stores schedules, and starts and cancels the runs"},
	{in: []string{"runs"}, only: []string{"runs", "workflow", "schedule", "space", "model"}, others: []string{"go.starlark.net", "github.com/go-json-experiment/json"}, instead: "runs makes steps of workflows in transactions of a space; what compiles them, or reads them from outside, is above"},
	{in: []string{"space"}, only: []string{"space", "model", "lanes", "lineage", "receipts", "replica", "ledger"}, others: []string{"github.com/hashicorp/go-memdb"}, instead: "space may use model, lanes, lineage, receipts, replica, ledger and go-memdb; anything else is an input or an output of the core"},
	{in: []string{"worker/host"}, only: []string{"model", "port", "status", "ledger", "replica", "lineage", "receipts", "history", "internal", "space/budget", "worker/roster", "access"}, others: []string{"golang.org/x/sync", "golang.org/x/time", "go.opentelemetry.io/otel/metric"}, instead: "worker/host serves spaces with or without a graph: what knows the graph belongs in worker"},
	{in: []string{"worker/roster"}, only: []string{"model"}, instead: "worker/roster judges by what it is told, on model alone; package worker carries its words"},
	{in: []string{"worker/roster"}, never: []string{"context", "net", "os", "log", "math/rand", "crypto/rand"}, instead: "worker/roster does no I/O: hand it what was heard, and the time"},
	{in: []string{"worker/tasks"}, only: []string{"model", "space", "status", "internal/pause", "internal/telemetry"}, instead: "worker/tasks does work for a space: what it needs of the host of that, it takes as tasks.Host"},
	{in: []string{"status"}, only: []string{"model", "port"}, instead: "status declares what processes report; what decides it belongs to the process, and what judges it to internal/fleet"},
	{in: []string{"history"}, never: above("worker", "ordered", "live", "coordinator", "gateway", "bus", "program", "workflow", "", "cmd", "examples", "test"), instead: "history reads what the log and the lanes have, without a worker: it takes a port.Client"},
	{in: []string{"query"}, only: []string{"query", "model", "history", "internal/display"}, others: []string{"github.com/ncruces/go-sqlite3"}, instead: "query reads what history has read; commands print the answer"},
	{in: []string{"worker"}, never: above("coordinator"), instead: "the coordinator stands on worker; neither waits for the other"},
	{in: []string{"worker", "coordinator"}, never: above("bus", "program", "workflow", "", "cmd", "examples", "test"), instead: "declare the interface in port/ and let the package above satisfy it"},
	{in: []string{"access"}, never: above("space", "history", "live", "worker", "ordered", "bus", "coordinator", "gateway", "program", "workflow", "", "cmd", "examples", "test"), instead: "access knows names and records: it takes a bus as port.Records"},
	{in: []string{"live", "gateway"}, never: above("space", "worker", "ordered", "bus", "coordinator", "program", "workflow", "", "cmd", "examples", "test"), instead: "live and gateway stand on history and port; the root package joins them with a worker and a bus"},
	{in: []string{"console"}, never: above("worker", "coordinator", "ordered", "cmd", "examples", "test"), instead: "the console reads what the deployment stores, and asks its processes: it runs without either in its own"},
	{in: []string{"ordered"}, never: above("space", "bus", "program", "workflow", "", "cmd", "examples", "test"), instead: "ordered is handlers without the graph: it stands on packages ledger and worker/host, and reaches the world through package port"},
	{in: []string{"bus"}, never: above("program", "workflow", "", "cmd", "examples", "test"), instead: "bus knows streams and bytes, not programs; the root package joins them"},
	{in: []string{"program"}, never: above("bus", "", "cmd", "examples", "test"), instead: "programs see the core and the worker; the root package joins them with a bus"},
	{in: []string{"program/star"}, only: []string{"program/star", "space", "model", "internal/shape", "receipts", "cron", "runs", "schedule", "upgrade", "workflow"}, others: []string{"go.starlark.net"}, instead: "program/star is the language: it makes a space.Program of a text, and the packages above keep, deploy and run it"},
	{in: []string{"program/star/internal/meter"}, only: []string{"program/star/internal/meter"}, others: []string{"go.starlark.net"}, instead: "meter counts; it knows neither documents nor builtins"},
	{in: []string{"program/star/internal/value"}, only: []string{"program/star/internal/value", "program/star/internal/meter", "space", "model", "internal/shape", "upgrade"}, others: []string{"go.starlark.net"}, instead: "value is what a program sees of documents; operations on it are in interp"},
	{in: []string{"."}, never: above("cmd", "examples", "test"), instead: "the root package is what commands, examples and tests import"},

	// Only bus speaks NATS.
	{
		in: []string{""}, except: []string{"bench", "bus", "test", "examples", "cmd/settle/verify"},
		never:   []string{"github.com/nats-io", "github.com/synadia-io"},
		instead: "only bus/ speaks NATS: add what is missing there, behind an interface of the caller",
	},
	{
		in: []string{""}, except: []string{"bus"}, tests: true,
		never:   []string{"github.com/nats-io/nats-server"},
		instead: "start a server through bus/, which knows how Settle configures it",
	},
}

// above turns directories into import paths; "" is the root package.
func above(dirs ...string) []string {
	paths := make([]string, len(dirs))
	for i, dir := range dirs {
		paths[i] = strings.TrimSuffix(module+"/"+dir, "/")
	}
	return paths
}

func (r importRule) appliesTo(f *file) bool {
	if !r.tests && (f.isTest() || isHarness(f.dir())) {
		return false
	}
	for _, e := range r.except {
		if within(f.dir(), e) || strings.HasPrefix(f.path, e) && strings.Contains(e, "/") {
			return false
		}
	}
	return slices.ContainsFunc(r.in, func(dir string) bool {
		return dir == "" || dir == f.dir() || dir != "." && within(f.dir(), dir)
	})
}

func (r importRule) refuses(imp string) bool {
	for _, n := range r.never {
		if n == module { // the root package, not what lies below it
			if imp == module {
				return true
			}
		} else if within(imp, n) {
			return true
		}
	}
	if r.only == nil {
		return false
	}
	if within(imp, module) {
		return !anyWithin(strings.TrimPrefix(imp, module+"/"), r.only)
	}
	host, _, _ := strings.Cut(imp, "/")
	return strings.Contains(host, ".") && !anyWithin(imp, r.others)
}

func checkImports(f *file) []finding {
	var found []finding
	for _, r := range importRules {
		if !r.appliesTo(f) {
			continue
		}
		for _, spec := range f.syntax.Imports {
			if imp := importPath(spec); r.refuses(imp) {
				found = append(found, f.found(spec, "import of %s: %s", imp, r.instead))
			}
		}
	}
	return found
}
