package program

import "github.com/settlehq/settle/program/star"

// Source is the text of a program.
type Source = star.Source
