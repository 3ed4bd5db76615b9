package space

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cockroachdb/datadriven"
)

// It looks other commands up in the list, so it cannot stand there when that is made.
func init() { commands = append(commands, command{"repeat", (*stage).cmdRepeat}) }

// cmdRepeat carries out other commands again and again, one a line, as many times as its
// argument says. What a command takes as its input stands behind a colon there, a
// semicolon for each further line; {n} is the number of the round.
func (s *stage) cmdRepeat(d *datadriven.TestData) error {
	rounds, err := strconv.Atoi(arg(d, 0))
	if err != nil {
		return err
	}
	for n := range rounds {
		for line := range strings.Lines(d.Input) {
			if err := s.do(strings.ReplaceAll(line, "{n}", strconv.Itoa(n+1))); err != nil {
				return fmt.Errorf("round %d, %s: %w", n+1, strings.TrimSpace(line), err)
			}
		}
	}
	return nil
}

// do carries out a command that stands on one line with its input.
func (s *stage) do(line string) error {
	line, input, _ := strings.Cut(strings.TrimSpace(line), " : ")
	d := datadriven.TestData{Input: strings.ReplaceAll(input, "; ", "\n")}
	var err error
	if d.Cmd, d.CmdArgs, err = datadriven.ParseLine(line); err != nil {
		return err
	}
	for _, c := range commands {
		if c.name == d.Cmd {
			if err := s.check(&d); err != nil {
				return err
			}
			return c.do(s, &d)
		}
	}
	return fmt.Errorf("there is no command %q", d.Cmd)
}

// cmdMarkers prints what the diagnosis has noted of passes that came to no end.
func (s *stage) cmdMarkers(d *datadriven.TestData) error {
	who, err := s.namedActors(d)
	for _, a := range who {
		for _, m := range a.core.Recorder().Markers() {
			a.tell(a, 1, "%d deferred: %s", m.Deferred, strings.Join(m.Nodes, ", "))
		}
		a.tell(a, 1, "settling %v", !a.core.Inspect().History().NonSettling)
	}
	return err
}
