package settletest

import (
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/internal/simkit"
	"github.com/settlehq/settle/space"
)

// Option configures a world.
type Option func(*options)

type options struct {
	world  simkit.Options
	log    bool
	allows []allowance
}

// allowance is a set of expected problems.
type allowance struct {
	option string
	kinds  []simkit.Kind
	names  []string // nodes or streams; all if empty
}

func (a *allowance) covers(p simkit.Problem) bool {
	if !slices.Contains(a.kinds, p.Kind) {
		return false
	}
	return len(a.names) == 0 || slices.ContainsFunc(a.names, func(name string) bool {
		return p.Source() == name || p.Node != "" && strings.HasPrefix(p.Node, name+".")
	})
}

func (o *options) expected(p simkit.Problem) bool {
	return slices.ContainsFunc(o.allows, func(a allowance) bool { return a.covers(p) })
}

func allow(option string, names []string, kinds ...simkit.Kind) Option {
	return func(o *options) { o.allows = append(o.allows, allowance{option, kinds, names}) }
}

// checkNames makes the test fail at its end if an option allows problems of a name that the program does not
// have. It covers only worlds with one program: where there are several, some may not have been loaded.
func (w *World) checkNames() {
	t, ok := w.t.(interface{ Cleanup(f func()) })
	if !ok {
		return
	}
	t.Cleanup(func() {
		for _, a := range w.o.allows {
			w.checkNamesOf(a)
		}
	})
}

func (w *World) checkNamesOf(a allowance) {
	spaces := w.w.Spaces()
	for _, name := range a.names {
		if len(spaces) > 0 && !w.w.Knows(name) {
			s := &Space{w: w, s: spaces[0]}
			w.t.Errorf("settletest: %s(%q) allows nothing: the program has no node of that name (it has %s), and no handler (it has %s)",
				a.option, name, s.nodeNames(), list(s.s.Inspect().State().Handlers))
		}
	}
}

// Problem is an unexpected event in a world: an error of a computation, a dead letter, a function
// that is not idempotent, an undeclared write.
type Problem = simkit.Problem

// StartAt sets the time at which the world starts.
func StartAt(t time.Time) Option { return func(o *options) { o.world.Start = t } }

// AllowErrors allows errors of computations and effects, and failures of events sent by the
// program: those of the named nodes and streams, or all if none is named. Problems and DeadLetters
// still return them. In a world with one program, an unknown name fails the test.
func AllowErrors(nodesAndStreams ...string) Option {
	return allow("AllowErrors", nodesAndStreams, simkit.NodeError, simkit.DeadLetter)
}

// AllowOutsideWrites allows nodes to write outside their declared locations.
func AllowOutsideWrites(nodes ...string) Option {
	return allow("AllowOutsideWrites", nodes, simkit.OutsideWrite)
}

// AllowCircles allows nodes to invalidate each other in a circle until they are held back.
func AllowCircles(nodes ...string) Option { return allow("AllowCircles", nodes, simkit.Unsettled) }

// AllowUndelivered allows the program to send events of these streams, or of all if none is named, to spaces
// that have no program. World.Undelivered returns them.
func AllowUndelivered(streams ...string) Option {
	return allow("AllowUndelivered", streams, simkit.Undelivered)
}

// AllowBlocking allows functions to block: the world does not detect it.
func AllowBlocking() Option { return func(o *options) { o.world.Blocking = true } }

// WithoutValidator omits the second run of each function, which checks that it is idempotent. Use
// it for benchmarks.
func WithoutValidator() Option { return func(o *options) { o.world.Lenient = true } }

// WithLog writes the output of the program (Log of a transaction or view) to the test's log.
func WithLog() Option { return func(o *options) { o.log = true } }

// WithConfig changes the configuration of the spaces: budgets, backoff, limits.
func WithConfig(change func(*space.Config)) Option {
	return func(o *options) { change(&o.world.Space) }
}

// Problems returns all problems so far, oldest first, allowed ones included.
func (w *World) Problems() []Problem { return slices.Clone(w.problems) }
