package history

import (
	"slices"
	"time"
)

// ValueChange is a change of a document, as `settle history --json` prints it.
type ValueChange struct {
	Space    string    `json:"space"`
	Revision uint64    `json:"revision"`
	Time     time.Time `json:"time"`
	Runtime  string    `json:"runtime"`
	Place
	Kind   StepKind  `json:"kind"`
	Name   string    `json:"name"`
	Event  *EventRef `json:"event,omitzero"`
	Causes []string  `json:"causes,omitzero"`
}

// Values lists the changes of a page, newest first.
func (p *Page) Values(space string) (all []ValueChange) {
	for _, e := range p.Entries {
		for i := range e.Steps {
			s := &e.Steps[i]
			for _, at := range s.Changes {
				all = append(all, ValueChange{space, e.Revision, e.Time, e.Runtime, at, s.Kind, s.Name, s.Event, s.Causes})
			}
		}
	}
	slices.Reverse(all)
	return all
}
