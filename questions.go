package settle

import (
	"context"

	"github.com/settlehq/settle/questions"
)

// asking returns the client that asks workers about the space.
func (s Space) asking() *questions.Client {
	return &questions.Client{Bus: s.client.bus, Principal: s.client.by}
}

// Why asks the worker that serves the space why a node, a document or an event is as it is: why a node ran last and does not run now, what has
// changed a document, what an event waits for or how it has ended. name is the id of one of them; q.Space and q.Of are filled in. A space that
// is not in memory is not loaded unless q.Load is set; the answer then has what the log knows.
func (s Space) Why(ctx context.Context, name string, q questions.Query) (*questions.Why, error) {
	if err := s.client.deployed(ctx); err != nil {
		return nil, err
	}
	q.Space, q.Of = s.name, name
	return s.asking().Why(ctx, q)
}

// Lane asks the worker that serves the space what waits in it, and why.
func (s Space) Lane(ctx context.Context, q questions.Query) (*questions.Lane, error) {
	if err := s.client.deployed(ctx); err != nil {
		return nil, err
	}
	q.Space = s.name
	return s.asking().Lane(ctx, q)
}

// Graph asks the worker that serves the space for its nodes and their edges or, with q.Of, for the neighbourhood of a node.
func (s Space) Graph(ctx context.Context, q questions.Query) (*questions.Graph, error) {
	if err := s.client.deployed(ctx); err != nil {
		return nil, err
	}
	q.Space = s.name
	return s.asking().Graph(ctx, q)
}

// Top asks one worker which of its spaces and nodes take most time, at most limit of each. A worker begins to measure with the first question,
// and ends a minute after the last one; two answers have the costs of the time between them.
func (c *Client) Top(ctx context.Context, worker string, limit int) (*questions.Top, error) {
	if err := c.deployed(ctx); err != nil {
		return nil, err
	}
	return (&questions.Client{Bus: c.bus}).Top(ctx, worker, limit)
}
