package space

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
)

// ErrNotRunning is returned by what needs a space that this runtime owns and runs.
var ErrNotRunning = errors.New("the space is not running here")

// Transact makes a transaction that answers no event: a write by the application that
// hosts the space. It applies at once and is committed with the next group. It returns
// the transaction's number; should another runtime's commit win, it is undone, and the
// number is in Ready.Undone.
//
// Derived documents are read as they stand, without waiting for what is not up to date.
// by says in the log who it was.
func (s *Space) Transact(by string, f func(tx *Tx) error) (uint64, error) {
	defer s.inv.step(s)
	if s.graph.ticked {
		return 0, fmt.Errorf("transaction of %s: not from within a handler, a run or a hook; they have a transaction, or are to call later", by)
	}
	if !s.running() || s.holding {
		return 0, fmt.Errorf("transaction of %s: %w", by, ErrNotRunning)
	}
	tx := s.begin(nil)
	tx.lax = true
	err := callDirect(f, tx)
	if err == nil {
		err = tx.err
	}
	if err == nil && tx.missing != nil {
		err = fmt.Errorf("document %s of another space is not here; only events wait for it", tx.missing.key)
	}
	if err == nil {
		err = s.documentsFit(tx)
	}
	if err != nil {
		return 0, fmt.Errorf("transaction of %s: %w", by, err)
	}
	n, err := s.addDirect(tx, by)
	if err != nil {
		return 0, fmt.Errorf("transaction of %s: %w", by, err)
	}
	return n, nil
}

// AfterConflict says how long to wait before a transaction of Transact is made again that
// has been undone for the n-th time: not at all after the first, then as long as an event
// would. lasting is the time since the first; when it has reached Config.ConflictWindow,
// the answer is a ConvergenceError, and the transaction is to be given up.
func (s *Space) AfterConflict(by string, n int, lasting time.Duration) (time.Duration, error) {
	if lasting >= s.cfg.ConflictWindow {
		err := &ConvergenceError{By: by, Conflicts: n}
		s.stats.Unconverged++
		s.report(ErrorInfo{Err: err, Attempt: n})
		return 0, err
	}
	if n < 2 {
		return 0, nil
	}
	return s.conflictPause(by, n), nil
}

func callDirect(f func(tx *Tx) error, tx *Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panicked: %v", p)
		}
	}()
	return f(tx)
}

func (s *Space) addDirect(tx *Tx, by string) (uint64, error) {
	rec := model.Tx{N: s.nextTx(), By: by, Writes: tx.writes, Group: tx.group}
	s.inv.records(&rec)
	s.launch(&rec, tx)
	if err := s.suffix.add(&rec, s.cfg.MaxCommitBytes); err != nil {
		s.registry.Revoke(rec.N)
		return 0, err
	}
	s.suffix.open.direct = append(s.suffix.open.direct, rec.N)
	if w := s.graph.watch; w != nil {
		w.wrote(s, by, rec.N, tx.writes)
	}
	for _, w := range tx.after {
		s.write(w, origin{group: tx.group, at: rec.N, paths: tx.pathsIn(w.doc)})
	}
	s.changeAgenda(&rec)
	s.follow(tx.sends)
	return rec.N, nil
}

// undoneDirect are the transactions of Transact that a refusal has undone.
func (x *suffix) undoneDirect() []uint64 {
	if x.sealed == nil {
		return slices.Clone(x.open.direct)
	}
	return slices.Concat(x.sealed.direct, x.open.direct)
}
