package space

import (
	"fmt"

	"github.com/settlehq/settle/model"
)

// runNode runs a node once, in a transaction of its own (seed 001 section 7.3).
//
// The status becomes clean before the run: changes that the run itself commits
// are not for it (P5), any other that arrives meanwhile counts. A run that fails
// keeps its read set, so it is tried again when something it read changes.
func (s *Space) runNode(n *node) {
	causes := n.causes.take()
	n.status = Clean
	if n.passRuns++; n.passRuns == 1 {
		s.touched = append(s.touched, n)
	}
	n.runs++
	info := RunInfo{Node: n.id, Kind: n.kind, Causes: causes}
	if f := s.cfg.Trace.RunStart; f != nil {
		f(info)
	}
	info.Changed, info.Err = s.finishRun(n, causes)
	if info.Err != nil {
		s.stats.NodeErrors++
	}
	if f := s.cfg.Trace.RunEnd; f != nil {
		f(info)
	}
}

func (s *Space) finishRun(n *node, causes []string) (changed bool, err error) {
	tx := Tx{graph: s.graph, node: n, space: s.cfg.Space}
	v, err := callNode(n, &tx)
	newReads := s.graph.applyReads(n, tx.reads)
	if err == nil {
		err = tx.err
	}
	if err != nil || tx.missing != nil {
		// What is missing will arrive as a change of what n now reads.
		return false, err
	}
	if n.output == nil || model.Equal(n.output.value, v) {
		return false, nil
	}
	return true, s.commitRun(n, v, causes, newReads)
}

// commitRun makes the run's output a transaction and applies it.
func (s *Space) commitRun(n *node, v model.Value, causes []string, newReads bool) error {
	tx := model.Tx{
		N: s.nextTx(), By: "compute " + n.id, Causes: causes,
		Writes: model.Diff(n.output.key.doc, n.output.value, v),
	}
	if newReads {
		tx.Reads = n.readNames()
	}
	if err := s.suffix.add(&tx, s.cfg.MaxCommitBytes); err != nil {
		return fmt.Errorf("node %s: %w", n.id, err)
	}
	s.write(docValue{n.output, v}, n)
	return nil
}

func callNode(n *node, tx *Tx) (v model.Value, err error) {
	defer func() {
		if p := recover(); p != nil {
			v, err = model.Value{}, fmt.Errorf("node %s panicked: %v", n.id, p)
		}
	}()
	return n.run(tx)
}
