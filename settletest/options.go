package settletest

import (
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/internal/kit"
	"github.com/settlehq/settle/space"
)

// Option says how a world differs from what it is by default.
type Option func(*options)

type options struct {
	kit    kit.Options
	log    bool
	allows []allowance
}

// allowance is what of the problems is expected.
type allowance struct {
	option string
	kinds  []kit.Kind
	who    []string // of whom; none for everybody
}

func (a *allowance) covers(p kit.Problem) bool {
	if !slices.Contains(a.kinds, p.Kind) {
		return false
	}
	return len(a.who) == 0 || slices.ContainsFunc(a.who, func(who string) bool {
		return p.Who() == who || p.Node != "" && strings.HasPrefix(p.Node, who+".")
	})
}

func (o *options) expected(p kit.Problem) bool {
	return slices.ContainsFunc(o.allows, func(a allowance) bool { return a.covers(p) })
}

func allow(option string, who []string, kinds ...kit.Kind) Option {
	return func(o *options) { o.allows = append(o.allows, allowance{option, kinds, who}) }
}

// checkNames has the test fail at its end if it allows something of what no program of it has. Of
// several programs some may not have come to life in this test, so it is for worlds of one.
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
	for _, who := range a.who {
		if len(spaces) > 0 && !w.w.Knows(who) {
			s := &Space{w: w, s: spaces[0]}
			w.t.Errorf("settletest: %s(%q) allows nothing: the program has no node of that name (it has %s), and no handler (it has %s)",
				a.option, who, s.nodeNames(), list(s.s.Structure().Handlers()))
		}
	}
}

// Problem is something that went wrong in a world: an error of a computation, a dead letter,
// a function that is not idempotent, a write that was not declared.
type Problem = kit.Problem

// StartAt has the world begin at another time.
func StartAt(t time.Time) Option { return func(o *options) { o.kit.Start = t } }

// AllowErrors lets computations and effects fail, and events that the program itself has sent:
// those of these nodes and streams, or all if none is named. What went wrong is in Problems
// and DeadLetters. In a world of one program, a name that it does not have fails the test.
func AllowErrors(nodesAndStreams ...string) Option {
	return allow("AllowErrors", nodesAndStreams, kit.NodeError, kit.DeadLetter)
}

// AllowOutsideWrites lets nodes write where they have not declared that they do.
func AllowOutsideWrites(nodes ...string) Option {
	return allow("AllowOutsideWrites", nodes, kit.OutsideWrite)
}

// AllowCircles lets nodes go round in circles until they are held back.
func AllowCircles(nodes ...string) Option { return allow("AllowCircles", nodes, kit.Unsettled) }

// AllowBlocking lets functions block: they are not looked at while they run.
func AllowBlocking() Option { return func(o *options) { o.kit.Blocking = true } }

// WithoutValidator leaves out the second run of each function that shows whether it is
// idempotent. Use it for benchmarks.
func WithoutValidator() Option { return func(o *options) { o.kit.Lenient = true } }

// WithLog has the test log what the program logs (Log of a transaction or view).
func WithLog() Option { return func(o *options) { o.log = true } }

// WithConfig changes how the spaces are configured: budgets, backoff, limits.
func WithConfig(change func(*space.Config)) Option {
	return func(o *options) { change(&o.kit.Space) }
}

// Problems are all that went wrong so far, oldest first, what was allowed included.
func (w *World) Problems() []Problem { return slices.Clone(w.problems) }
