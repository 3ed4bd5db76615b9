package fridge

import (
	"embed"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/program/star"
)

//go:embed *.star
var starFiles embed.FS

// Source returns the same program in Starlark, with its tests: fridge.star and
// fridge_test.star.
func Source() star.Source {
	src := star.Source{Name: "fridge", Entry: "fridge.star", Files: map[string]string{}}
	for _, name := range []string{"fridge.star", "fridge_test.star"} {
		text, err := starFiles.ReadFile(name)
		if err != nil {
			panic(err) // it is embedded
		}
		src.Files[name] = string(text)
	}
	return src
}

// Starlark is that program.
func Starlark() (*settle.Program, error) { return settle.Starlark(Source(), star.Options{}) }
