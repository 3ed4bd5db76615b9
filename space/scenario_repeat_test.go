package space

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cockroachdb/datadriven"
)

// cmdRepeat uses the list of commands, so it cannot be part of the list's initializer.
func init() { commands = append(commands, command{"repeat", (*stage).cmdRepeat}) }

// cmdRepeat executes other commands repeatedly, one per line. The argument is the number of rounds. The input
// of a command follows it after a colon, with a semicolon between lines; {n} is the number of the round.
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

// do executes a command that is on one line with its input.
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

// cmdMarkers prints the markers of the diagnosis.
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
