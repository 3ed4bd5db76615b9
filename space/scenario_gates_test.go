package space

import "github.com/cockroachdb/datadriven"

// It is the command of the scenarios about time, which are about nothing else.
func init() { commands = append(commands, command{"wake", (*stage).cmdWake}) }

// cmdWake prints when runtimes want to be called at the latest.
func (s *stage) cmdWake(d *datadriven.TestData) error {
	who, err := s.namedActors(d)
	for _, a := range who {
		if a.wake == 0 {
			a.tell(a, 1, "no wake")
		} else {
			a.tell(a, 1, "the wake is at %s", a.wake)
		}
	}
	return err
}
