package flights

import (
	_ "embed"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/program/star"
)

//go:embed flights.star
var starText string

// Starlark returns the same programs as Programs, written in Starlark: flights.star, one program for
// airports and nation alike.
func Starlark() (settle.Programs, error) {
	p, err := settle.Starlark(star.Source{
		Name: "flights", Entry: "flights.star", Files: map[string]string{"flights.star": starText},
	}, star.Options{})
	return settle.Always(p), err
}
