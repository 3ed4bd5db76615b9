package settle

import (
	"github.com/settlehq/settle/program/star"
	"github.com/settlehq/settle/space"
)

// Starlark compiles a program that is written in Starlark, see package program/star. It is run
// as one that is written in Go: by Config.Programs, by a worker, in a test.
//
// A fleet that has programs deployed to it compiles them itself, see WorkerConfig.
func Starlark(src star.Source, o star.Options) (*Program, error) {
	p, err := star.Compile(src, o)
	if err != nil {
		return nil, err
	}
	return hosted(p.Space()), nil
}

// hosted is a program that a host of another language has made.
func hosted(p *space.Program) *Program { return &Program{p: p} }
