//go:build !invariants

package space

import (
	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
)

// invariants is empty without the build tag of that name, which adds checks of I1 to I9 after every step.
type invariants struct{}

const checking = false

func (*invariants) step(*graph, *ledger.Ledger, bool)       {}
func (*invariants) runs(*graph, *budgets, *node, int, bool) {}
func (*invariants) ran(*node)                               {}
func (*invariants) undone(*node)                            {}
func (*invariants) attempt()                                {}
func (*invariants) wrote(*node, Status)                     {}
func (*invariants) handles(*model.Event)                    {}
func (*invariants) passed(int, PassInfo)                    {}
func (*invariants) records(*model.Commit)                   {}
func (*invariants) reads(*model.Event, *doc, model.Path, bool) {
}
