package main

import (
	"testing"

	"github.com/alecthomas/kong"

	"github.com/settlehq/settle/internal/clidoc"
	"github.com/settlehq/settle/internal/optionflags"
)

// The section of docs/cli.md about coordinator is what its model renders.
func TestCLIPage_IsThatOfTheCommand(t *testing.T) {
	parser, err := kong.New(&flags{}, kong.Name("coordinator"), kong.Description(description), kong.Vars{"version": "dev"}, optionflags.OfBus())
	if err != nil {
		t.Fatal(err)
	}
	clidoc.Check(t, parser.Model)
}
