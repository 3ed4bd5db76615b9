package simkit

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Save writes a checkpoint of the space and the observations of its nodes, as a worker does
// periodically.
func (s *Space) Save() error {
	c, err := s.core.Checkpoint()
	if err != nil {
		return err
	}
	byKey := map[string]model.StateDoc{}
	for _, d := range slices.Concat(s.saved.Docs, s.saved.Pieces, s.saved.Later, c.Docs) {
		byKey[d.Doc] = d
	}
	s.saved = model.SpaceState{Mark: c.Mark}
	for _, k := range slices.Sorted(maps.Keys(byKey)) {
		list := s.saved.ListOf(k)
		*list = append(*list, byKey[k])
	}
	s.log = slices.DeleteFunc(s.log, func(e model.LogEntry) bool { return e.Seq <= c.Mark.Seq })
	observed, gone := s.core.Observations()
	for _, id := range gone {
		delete(s.observations, id)
	}
	for _, o := range observed {
		if !ofTheProgram(o.Node) { // an observer
			continue
		}
		if o.Version == "" {
			o.Version = s.build()
		}
		s.observations[o.Node] = o
	}
	return nil
}

// known returns the saved observations.
func (s *Space) known() []space.Observation {
	var out []space.Observation
	for _, id := range slices.Sorted(maps.Keys(s.observations)) {
		o := s.observations[id]
		if o.Version == s.build() {
			o.Version = ""
		}
		out = append(out, o)
	}
	return out
}

// build identifies the code of nodes without a version: all programs of a world are in one
// executable, see space.Program.Version.
func (s *Space) build() string { return "simkit/" + s.program.Version }

// Restart ends every process of the world in good order and starts it again: memory is lost, and
// each space is loaded from its checkpoint and its log. Watches are started again.
func (w *World) Restart() error {
	for _, s := range w.order {
		if err := s.Save(); err != nil {
			return err
		}
	}
	return w.Crash()
}

// Outage ends every process in good order, and starts it again some time later: what was due meanwhile is late.
func (w *World) Outage(d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("an outage of %s: time does not go back", d)
	}
	for _, s := range w.order {
		if err := s.Save(); err != nil {
			return err
		}
	}
	w.now = w.now.Add(d)
	if err := w.Crash(); err != nil {
		return err
	}
	return w.AdvanceTo(w.now)
}

// Crash is Restart without an orderly end: the spaces are loaded from the last checkpoint made by
// Save, if any, and the log after it.
func (w *World) Crash() error {
	return w.do(func() error {
		clear(w.listings)
		w.absences = 0
		for _, s := range w.order {
			s.mirrors, s.absences = map[string]*mirrored{}, nil
			if err := s.load(); err != nil {
				return err
			}
		}
		for _, s := range w.order {
			for _, x := range s.watches {
				if !x.ended {
					if err := s.core.Observe(x.doc); err != nil {
						return err
					}
				}
			}
		}
		return w.run()
	})
}
