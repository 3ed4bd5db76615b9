package space

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/datadriven"
)

// saveObservations merges changed observations into the saved ones.
func (a *actor) saveObservations() {
	all := a.observed[a.cfg.Space]
	observed, gone := a.core.Observations()
	all = slices.DeleteFunc(all, func(old Observation) bool { return slices.Contains(gone, old.Node) })
	for _, o := range observed {
		all = slices.DeleteFunc(all, func(old Observation) bool { return old.Node == o.Node })
		all = append(all, o)
	}
	if a.observed == nil {
		a.stage.observed = map[string][]Observation{}
	}
	a.stage.observed[a.cfg.Space] = all
}

// cmdObservations prints the saved observations; with forget it discards one or all of them.
func (s *stage) cmdObservations(d *datadriven.TestData) error {
	space := arg(d, 0)
	if d.HasArg("forget") && s.observed != nil {
		s.observed[space] = slices.DeleteFunc(s.observed[space], func(o Observation) bool {
			return arg(d, 2) == "" || o.Node == arg(d, 2)
		})
		return nil
	}
	for _, o := range s.observed[space] {
		var reads []string
		for _, r := range o.Reads {
			name := docKey{r.Space, r.Doc}.String() + r.Path.String()
			if r.Shallow {
				name += "#"
			}
			reads = append(reads, name)
		}
		line := fmt.Sprintf("%s up to %d reads %s", o.Node, o.Basis, names(reads))
		for word, is := range map[string]bool{"failed": o.Failed, "makes nodes": o.Makes} {
			if is {
				line += ", " + word
			}
		}
		if o.Version != "" {
			line += ", version " + o.Version
		}
		s.tellBus("%s", strings.TrimSpace(line))
	}
	return nil
}

// cmdResumed prints the cost of resuming from observations.
func (s *stage) cmdResumed(d *datadriven.TestData) error {
	who, err := s.namedActors(d)
	for _, a := range who {
		a.tell(a, 1, "resumed %d nodes, compared %d values", a.core.Stats().Resumed, a.core.Stats().Compared)
	}
	return err
}
