package main

import (
	"testing"

	"github.com/alecthomas/kong"

	"github.com/settlehq/settle/internal/clidoc"
)

// The section of docs/cli.md about settle is what its model renders.
func TestCLIPage_IsThatOfTheCommand(t *testing.T) {
	parser, err := kong.New(&cli{}, kong.Name("settle"), kong.Description(description), kong.Vars{"version": "dev"})
	if err != nil {
		t.Fatal(err)
	}
	clidoc.Check(t, parser.Model)
}
