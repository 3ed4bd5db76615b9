package space

import (
	"fmt"
	"time"
)

// Transact makes a transaction without an event: a write by the application that hosts the space. It applies
// at once and is committed with the next group. It returns the transaction's number; if another runtime's
// commit wins, the transaction is undone and its number is in Ready.Undone.
//
// Derived documents are read in their present state, even if they are not up to date. by names the writer in
// the log.
func (s *Space) Transact(by string, f func(tx *Tx) error) (uint64, error) {
	defer s.stepped()
	if s.graph.ticked {
		return 0, fmt.Errorf("transaction of %s: not from within a handler, a run or a hook; use its transaction, or call later", by)
	}
	if !s.ledger.Begins() {
		return 0, fmt.Errorf("transaction of %s: %w", by, ErrNotRunning)
	}
	tx := s.handling.begin(nil)
	tx.lax = true
	err := callDirect(f, tx)
	if err == nil {
		err = tx.err
	}
	if err == nil && tx.missing != nil {
		err = fmt.Errorf("document %s of another space has not arrived; only events wait for it", tx.missing.key)
	}
	if err == nil {
		err = s.handling.sizes.save(tx)
	}
	if err != nil {
		return 0, fmt.Errorf("transaction of %s: %w", by, err)
	}
	n, err := s.handling.addDirect(tx, by)
	if err != nil {
		return 0, fmt.Errorf("transaction of %s: %w", by, err)
	}
	return n, nil
}

// leastConflicts is the minimum number of conflicts before a transaction is given up: with slow code, just
// two of them may span ConflictWindow.
const leastConflicts = 8

// AfterConflict returns the delay before a transaction of Transact is repeated after it was undone for the
// n-th time: none after the first, then as for an event. lasting is the time since the first conflict. When
// that has reached Config.ConflictWindow, after at least leastConflicts, AfterConflict returns a
// ConvergenceError, and the transaction must be given up.
func (s *Space) AfterConflict(by string, n int, lasting time.Duration) (time.Duration, error) {
	if lasting >= s.cfg.ConflictWindow && n >= leastConflicts {
		err := &ConvergenceError{By: by, Conflicts: n}
		s.stats.Unconverged++
		s.hooks.report(ErrorInfo{Err: err, Attempt: n})
		return 0, err
	}
	if n < 2 {
		return 0, nil
	}
	return s.cfg.ledger().ConflictPause(by, n), nil
}
