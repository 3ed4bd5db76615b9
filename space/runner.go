package space

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
)

// runNode runs a node once, in a transaction of its own (seed 001 section 7.3).
//
// The status becomes clean before the run: changes that the run itself commits
// are not for it (P5), any other that arrives meanwhile counts. A run that fails
// keeps what it read, so it is tried again when something of that changes.
func (s *Space) runNode(n *node) {
	why := s.takeCauses(n)
	s.graph.setStatus(n, Clean)
	s.budgets.charge(n)
	n.runs++
	s.inv.runs(s, n, why)
	if n.more != nil {
		n.more.cleanAs = ""
		gt := &n.more.gate
		gt.armed, gt.owed, gt.ran, gt.ranAt = false, false, true, s.graph.now
	}
	s.observations.note(n)
	s.stats.Runs++
	info := RunInfo{Node: n.id(), Kind: n.kind}
	if f := s.cfg.Trace.RunBegan; f != nil {
		f(n.id(), n.kind)
	}
	if f := s.cfg.Trace.RunStart; f != nil || s.graph.watch != nil {
		info.Causes = s.causesOf(n, why)
		if f != nil {
			f(info)
		}
	}
	info.Err = s.finishRun(n, why, &info)
	s.firing = s.firing[:why]
	if info.Waits == "" && !info.Crowded {
		s.inv.ran(s, n)
	}
	if info.Err != nil {
		s.nodeFailed(n, &info)
	}
	if w := s.graph.watch; w != nil {
		w.ran(s, n, &info)
	}
	if f := s.cfg.Trace.RunEnd; f != nil {
		f(info)
	}
}

// finishRun makes the run and notes in info what came of it.
func (s *Space) finishRun(n *node, why int, info *RunInfo) error {
	tx := s.begin(n)
	n.running = true
	v, err := callNode(n, tx)
	_ = s.cfg.Guard.returned(false) // what a node has come to counts, however late
	n.running = false
	if n.doomed {
		s.endDoomed(n, tx)
		return nil
	}
	newReads := s.graph.applyReads(&tx.log)
	s.graph.catchUp(&tx.log)
	if newReads {
		s.graph.acquit(n)
	}
	if err == nil {
		err = tx.err
	}
	s.adopt(n, tx, err == nil && tx.missing == nil)
	info.Stack = tx.stack
	switch {
	case tx.missing != nil:
		// Whatever it made of that. It is read now, so its arrival wakes the node.
		n.waiting = true
		s.runAgain(n, s.whyRuns(n, why))
		info.Waits = tx.missing.key.String()
		return nil
	case err != nil:
		return s.retry(n, why, err)
	}
	s.graph.setErr(n, nil)
	if n.more != nil {
		n.more.retries = 0
	}
	return s.concludeRun(n, tx, v, why, newReads, info)
}

// retry has a node run again that failed for a reason that may pass, as often as the
// budget allows; a success renews it. Any other failure waits for a change.
func (s *Space) retry(n *node, why int, err error) error {
	if rejectionOf(err).Consequences().Computation == AgainWithinBudget && n.ext().retries < s.cfg.RunRetries {
		n.more.retries++
		s.runAgain(n, s.whyRuns(n, why))
	}
	return err
}

// runAgain takes back that n is clean: its run did not come to an end.
func (s *Space) runAgain(n *node, why causes) {
	s.graph.giveBack(n, why)
	s.graph.setStatus(n, Invalid)
	s.graph.enqueue(n)
}

// concludeRun applies what a run that succeeded has changed.
func (s *Space) concludeRun(n *node, tx *Tx, v model.Value, why int, newReads bool, info *RunInfo) error {
	after := tx.after
	if d := n.own.doc; d != nil && !model.Equal(d.value, v) {
		if n.spec.Volatile {
			info.Changed = true
		} else {
			tx.attempt.Writes = append(model.Diff(d.key.doc, d.value, v), tx.attempt.Writes...)
			after = slices.Insert(after, 0, docValue{doc: d, value: v})
		}
	}
	s.echoes.note(n, after)
	if tx.leans != nil {
		s.undo.relies(n, tx.leans)
	}
	was := n.status
	if info.Changed { // and volatile
		s.graph.changeByRun(n.own.doc, v, n, tx, 0)
	}
	if len(after) == 0 {
		s.inv.wrote(n, was)
		s.validate(n, after, v)
		return nil
	}
	err := s.commitRun(n, tx, after, why, newReads, info)
	if errors.Is(err, ErrNoRoom) {
		s.runAgain(n, s.whyRuns(n, why))
		info.Crowded = true
		return nil
	}
	info.Changed = err == nil
	if err == nil {
		s.inv.wrote(n, was)
		s.validate(n, after, v)
	}
	return err
}

// commitRun makes what a run has changed a transaction and applies it.
func (s *Space) commitRun(n *node, tx *Tx, after []docValue, why int, newReads bool, info *RunInfo) error {
	if info.Causes == nil {
		info.Causes = s.causesOf(n, why)
	}
	rec := model.Tx{N: s.ledger.NextTx(), By: n.by(), Causes: info.Causes, Writes: tx.attempt.Writes}
	for _, w := range after {
		if err := s.sizes.fits(w); err != nil {
			return fmt.Errorf("node %s: %w", n.id(), err)
		}
	}
	if newReads {
		rec.Reads = n.readNames()
	}
	err := s.ledger.Add(&rec)
	if errors.Is(err, ledger.ErrTooLarge) {
		// What a run has read and why it ran are told as far as there is room for that.
		rec.Reads, rec.Causes = nil, anyCause(info.Causes)
		err = s.ledger.Add(&rec)
	}
	if err != nil {
		return fmt.Errorf("node %s: %w", n.id(), err)
	}
	s.undo.ran(n, rec.N, info.Causes)
	info.Tx, info.Writes = rec.N, tx.attempt.Writes
	for _, w := range after {
		s.ledger.Note(w.doc.key.doc, w.value)
		s.graph.changeByRun(w.doc, w.value, n, tx, rec.N)
	}
	return nil
}

// anyCause stands for causes that take too much room.
func anyCause(causes []string) []string {
	if len(causes) == 0 {
		return nil
	}
	return []string{"*"}
}

// by names the node in the log.
func (n *node) by() string {
	if n.kind == Effect {
		return "effect " + n.id()
	}
	return "compute " + n.id()
}

func callNode(n *node, tx *Tx) (v model.Value, err error) {
	defer func() {
		if p := recover(); p != nil {
			tx.stack = debug.Stack()
			v, err = model.Value{}, fmt.Errorf("node %s panicked: %v", n.id(), p)
		}
	}()
	return n.spec.Run(tx)
}

// maxNested bounds the runs that stand inside each other. Beyond it a reader gets the
// old value, and runs again.
const maxNested = 1000

// freshen brings a node up to date out of turn, because a run is about to read what it
// writes and nobody knew before: it is dormant, or the edge is new. Running it now
// spares the reader a run on an old value, and a chain that is discovered link by link
// a pass for every few links. What is upstream comes first.
func (s *Space) freshen(n *node) {
	if s.nested == 0 {
		s.seek++
		clear(s.vain)
	}
	if n.running || n.seeking || s.nested >= maxNested || n.status == Clean && n.sought == s.seek || s.graph.upToDate(n) || s.soughtInVain(n) {
		return
	}
	s.nested++
	n.seeking, n.sought = true, s.seek
	for i := 0; i < len(n.deps); i++ {
		if n.deps[i].indexed {
			n.deps[i].eachWriter(true, func(w *surface) { s.freshen(w.node) })
		}
	}
	n.seeking = false
	if n.status != Clean {
		s.freshenMakers(n)
	}
	if n.status != Clean && !n.waiting && !n.held && !n.removed && s.budgets.mayRun(n) && !s.ledger.Crowded() && !s.closed() {
		s.dequeue(n)
		s.runNode(n)
	}
	s.nested--
	if n.status != Clean && s.nested > 0 {
		s.noteVain(n)
	}
}

// soughtInVain reports whether n could not be brought up to date a moment ago, and nothing
// has run since. Where many ways lead up to what is held back, each would be gone.
func (s *Space) soughtInVain(n *node) bool { return len(s.vain) > 0 && s.vain[n] == s.txs }

func (s *Space) noteVain(n *node) {
	if s.vain == nil {
		s.vain = map[*node]int32{}
	}
	s.vain[n] = s.txs
}

// freshenMakers brings those up to date first that have made n: they may be about to
// remove it. A dormant one stays as it is.
func (s *Space) freshenMakers(n *node) {
	if p := n.parent(); p != nil {
		s.freshenMakers(p)
		if p.live {
			s.freshen(p)
		}
	}
}

// endDoomed ends the run of a node that was removed in the middle of it, by one that it
// had pulled. Nothing of it is kept.
func (s *Space) endDoomed(n *node, tx *Tx) {
	s.giveBack(n, tx)
	for _, c := range tx.made {
		s.graph.remove(c)
	}
	s.graph.remove(n)
}

// dequeue takes a node that runs out of turn out of the idle materializers. In the
// queue proper it may stay: it will be clean when its turn comes.
func (s *Space) dequeue(n *node) {
	if i := slices.Index(s.graph.queue.idle, n); i >= 0 {
		s.graph.queue.idle = slices.Delete(s.graph.queue.idle, i, i+1)
		n.queued = false
	}
}
