package main

import (
	"testing"

	"github.com/alecthomas/kong"

	"github.com/settlehq/settle/internal/clidoc"
	"github.com/settlehq/settle/internal/flags"
	"github.com/settlehq/settle/internal/optionflags"
)

// The section of docs/cli.md about settle is what its model renders.
func TestCLIPage_IsThatOfTheCommand(t *testing.T) {
	t.Parallel()
	grammar := &cli{}
	parser, err := kong.New(grammar, kong.Name("settle"), kong.Description(description), kong.Vars{"version": "dev"}, optionflags.OfBus(), flags.Names(&grammar.Dev.Worker))
	if err != nil {
		t.Fatal(err)
	}
	clidoc.Check(t, parser.Model)
}
