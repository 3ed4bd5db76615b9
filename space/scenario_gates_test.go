package space

import "github.com/cockroachdb/datadriven"

// wake is a command for scenarios about time.
func init() { commands = append(commands, command{"wake", (*stage).cmdWake}) }

// cmdWake prints the latest times at which runtimes must be called.
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
