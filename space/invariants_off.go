//go:build !invariants

package space

import "github.com/settlehq/settle/model"

// invariants is what the build tag of that name adds: checks of I1 to I9 after every
// step, which panic. Without it there is nothing.
type invariants struct{}

func (*invariants) step(*Space)              {}
func (*invariants) runs(*runner, *node, int) {}
func (*invariants) ran(*runner, *node)       {}
func (*invariants) undone(*node)             {}
func (*invariants) attempt()                 {}
func (*invariants) wrote(*node, Status)      {}
func (*invariants) handles(*runner, *Tx)     {}
func (*invariants) passed(*Space, PassInfo)  {}
func (*invariants) records(*model.Commit)    {}
func (*invariants) reads(*Tx, *doc, model.Path, bool) {
}
