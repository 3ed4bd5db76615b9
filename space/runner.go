package space

import (
	"errors"
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
	info.Err = s.finishRun(n, causes, &info)
	if info.Err != nil {
		s.stats.NodeErrors++
	}
	if f := s.cfg.Trace.RunEnd; f != nil {
		f(info)
	}
}

// finishRun makes the run and notes in info what came of it.
func (s *Space) finishRun(n *node, causes []string, info *RunInfo) error {
	tx := s.begin(n)
	v, err := callNode(n, tx)
	newReads := s.graph.applyReads(n, tx.reads)
	if err == nil {
		err = tx.err
	}
	switch {
	case tx.missing != nil:
		// Whatever it made of that. It is read now, so its arrival wakes the node.
		s.runAgain(n, causes)
		n.waiting = true
		info.Waits = tx.missing.key.String()
		return nil
	case err != nil:
		return err
	case n.output == nil || model.Equal(n.output.value, v):
		return nil
	}
	info.Tx, err = s.commitRun(n, v, causes, newReads)
	if errors.Is(err, errNoRoom) {
		s.runAgain(n, causes)
		info.Crowded = true
		return nil
	}
	info.Changed = err == nil
	return err
}

// runAgain takes back that n is clean: its run did not come to an end.
func (s *Space) runAgain(n *node, causes []string) {
	n.status, n.causes.list = Invalid, causes
	s.graph.enqueue(n)
}

// commitRun makes the run's output a transaction and applies it.
func (s *Space) commitRun(n *node, v model.Value, causes []string, newReads bool) (uint64, error) {
	tx := model.Tx{
		N: s.nextTx(), By: "compute " + n.id, Causes: causes,
		Writes: model.Diff(n.output.key.doc, n.output.value, v),
	}
	if err := s.fits(docValue{n.output, v}); err != nil {
		return 0, fmt.Errorf("node %s: %w", n.id, err)
	}
	if newReads {
		tx.Reads = n.readNames()
	}
	if err := s.suffix.add(&tx, s.cfg.MaxCommitBytes); err != nil {
		return 0, fmt.Errorf("node %s: %w", n.id, err)
	}
	s.write(docValue{n.output, v}, n)
	return tx.N, nil
}

func callNode(n *node, tx *Tx) (v model.Value, err error) {
	defer func() {
		if p := recover(); p != nil {
			v, err = model.Value{}, fmt.Errorf("node %s panicked: %v", n.id, p)
		}
	}()
	return n.run(tx)
}

// pull brings the output of a dormant node up to date because a run is about to read
// it, which will make it live. The pass could not put it into order before, as nobody
// knew that it was needed; running it now spares the reader a run on an old value,
// and a chain that is discovered link by link a pass for every few links.
//
// A node that is live has its place in the pass, and is left to it.
func (s *Space) pull(n *node) {
	if n.live || n.pulled {
		return
	}
	s.pulling++
	n.pulled = true
	for i := 0; i < len(n.deps); i++ {
		if w := n.deps[i].doc.writer; w != nil {
			s.pull(w)
		}
	}
	if s.wants(n) && !s.suffix.crowded {
		s.runNode(n)
	}
	n.pulled = false
	s.pulling--
}
