package settle

import (
	"github.com/settlehq/settle/program/star"
	"github.com/settlehq/settle/space"
)

// Starlark compiles a program written in Starlark, see package program/star. The result runs
// wherever a program written in Go does: in Config.Programs, in a worker, in a test.
//
// A fleet compiles the programs that are deployed to it itself, see WorkerConfig.Hosted.
func Starlark(src star.Source, o star.Options) (*Program, error) {
	p, err := star.Compile(src, o)
	if err != nil {
		return nil, err
	}
	return hosted(p.Space()), nil
}

// hosted wraps a program that was compiled from another language.
func hosted(p *space.Program) *Program { return &Program{p: p} }
