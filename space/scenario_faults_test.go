package space

import (
	"fmt"
	"slices"

	"github.com/cockroachdb/datadriven"

	"github.com/settlehq/settle/model"
)

// Commands for what an operator sees and does: notices, and saved states that cannot be read.

// cmdOperator prints what an operator is notified of.
func (s *stage) cmdOperator(d *datadriven.TestData) error {
	who, err := s.namedActors(d)
	for _, a := range who {
		for _, line := range a.operator {
			a.tell(a, 1, "%s", line)
		}
		a.operator = nil
	}
	return err
}

// note keeps a line for the operator.
func (a *actor) note(format string, args ...any) {
	a.operator = append(a.operator, fmt.Sprintf(format, args...))
}

// cmdDamage makes the saved state of a document unreadable.
func (s *stage) cmdDamage(d *datadriven.TestData) error {
	space, doc := arg(d, 0), arg(d, 1)
	docs := s.saved[space].Docs
	i := slices.IndexFunc(docs, func(of model.StateDoc) bool { return of.Doc == doc })
	if i < 0 {
		return fmt.Errorf("no checkpoint of %s has document %q", space, doc)
	}
	if s.whole == nil {
		s.whole = map[string]model.SpaceState{}
	}
	if _, is := s.whole[space]; !is {
		s.whole[space] = s.saved[space]
	}
	st := s.saved[space]
	st.Docs = slices.Clone(docs)
	st.Docs[i].Data = st.Docs[i].Data[:len(st.Docs[i].Data)/2]
	s.saved[space] = st
	return nil
}

// cmdRepair undoes what was damaged.
func (s *stage) cmdRepair(d *datadriven.TestData) error {
	st, is := s.whole[arg(d, 0)]
	if !is {
		return fmt.Errorf("nothing of %s is damaged", arg(d, 0))
	}
	s.saved[arg(d, 0)] = st
	delete(s.whole, arg(d, 0))
	return nil
}
