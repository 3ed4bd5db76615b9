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
	kinds []kit.Kind
	who   []string // of whom; none for everybody
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

func allow(who []string, kinds ...kit.Kind) Option {
	return func(o *options) { o.allows = append(o.allows, allowance{kinds, who}) }
}

// Problem is something that went wrong in a world: an error of a computation, a dead letter,
// a function that is not idempotent, a write that was not declared.
type Problem = kit.Problem

// StartAt has the world begin at another time.
func StartAt(t time.Time) Option { return func(o *options) { o.kit.Start = t } }

// AllowErrors lets computations and effects fail, and events that the program itself has sent:
// those of these nodes and streams, or all if none is named. What went wrong is in Problems
// and DeadLetters.
func AllowErrors(nodesAndStreams ...string) Option {
	return allow(nodesAndStreams, kit.NodeError, kit.DeadLetter)
}

// AllowOutsideWrites lets nodes write where they have not declared that they do.
func AllowOutsideWrites(nodes ...string) Option { return allow(nodes, kit.OutsideWrite) }

// AllowCircles lets nodes go round in circles until they are held back.
func AllowCircles(nodes ...string) Option { return allow(nodes, kit.Unsettled) }

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
