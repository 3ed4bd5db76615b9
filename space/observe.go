package space

import (
	"fmt"

	"github.com/settlehq/settle/model"
)

// observer is the effect behind the observations of one document. However many
// watch a document, it is one effect.
type observer struct {
	node  *node
	count int
}

// Observe creates demand for a document of this space, until Unobserve: the
// computations that it needs become live. A live query of a client is one of
// these, and so is a computation of another space that reads the document.
func (s *Space) Observe(id string) error {
	defer s.runner.inv.step(s)
	if o := s.observers[id]; o != nil {
		o.count++
		return nil
	}
	if err := model.CheckName("document", id); err != nil {
		return err
	}
	n, err := s.graph.register(&NodeSpec{
		ID: "observe:" + id, Kind: Effect,
		Run: func(tx *Tx) (model.Value, error) { return tx.Get(id), nil },
	}, nil)
	if err != nil {
		return fmt.Errorf("observe document %s: %w", id, err)
	}
	s.observers[id] = &observer{node: n, count: 1}
	return nil
}

// Unobserve takes one Observe back.
func (s *Space) Unobserve(id string) {
	defer s.runner.inv.step(s)
	o := s.observers[id]
	if o == nil {
		return
	}
	if o.count--; o.count == 0 {
		s.graph.remove(o.node)
		delete(s.observers, id)
	}
}
