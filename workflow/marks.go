package workflow

import (
	"errors"
	"fmt"
	"strings"
)

// marks has a character for each node of the graph, function after function: passed or failedAt if the run has been
// there, and none at any other node.
type marks []byte

const (
	unseen   = '.'
	passed   = 'd'
	failedAt = 'f'
)

// mark records that the run has been at a node.
func (r *Run) mark(f *frame, node int, as byte) {
	at := r.program.first[f.fn] + node
	for len(r.marks) <= at {
		r.marks = append(r.marks, unseen)
	}
	r.marks[at] = as
}

// Marks returns the nodes that the run has passed, and those where a call has failed: a text with a character for each
// node, for MarkIn.
func (r *Run) Marks() string { return string(r.marks) }

// MarkIn returns the state of a node in a text of Run.Marks. It is that of the last time that the run was there.
func (g *Graph) MarkIn(marks string, fn, node int) Mark {
	for i := range fn {
		node += len(g.Funcs[i].Nodes)
	}
	if node >= len(marks) {
		return ""
	}
	switch marks[node] {
	case passed:
		return MarkDone
	case failedAt:
		return MarkFailed
	}
	return ""
}

// loadMarks loads a text of Marks. Runs that were stored without one have marks from there on.
func (r *Run) loadMarks(text string) error {
	if len(text) > r.program.first[len(r.program.first)-1] {
		return fmt.Errorf("there are marks of %d nodes, and the graph has fewer", len(text))
	}
	if strings.Trim(text, string([]byte{unseen, passed, failedAt})) != "" {
		return errors.New("its marks are none")
	}
	r.marks = marks(text)
	return nil
}
