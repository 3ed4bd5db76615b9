package space

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
	"github.com/settlehq/settle/space/inspect"
)

// runner runs what a pass comes to, nodes and handlers, each in a transaction, and makes what they have written
// part of the ledger and of the graph.
type runner struct {
	cfg     *Config
	program *Program
	ledger  *ledger.Ledger
	graph   *graph
	hooks   *hooks

	undo         undoLog
	needs        needs
	sizes        sizes
	jobs         jobTimers
	observations observations
	budgets      budgets
	echoes       echoGuard
	overruns     overruns
	inv          invariants

	scratch []*Tx           // see begin
	handed  model.Event     // what the handler sees
	txs     int32           // transactions begun
	nested  int             // runs within runs
	seek    int32           // see freshen
	failed  map[*node]int32 // see failedFreshen
	sweeps  uint64
	// firing are the causes of the runs under way, innermost last; see takeCauses.
	firing []*dep
	// firstEvent says that no event was handled since nodes ran last.
	firstEvent bool
	rehearsed  map[string]int // see repetitions
}

func newRunner(cfg *Config, program *Program, g *graph, h *hooks, confirmed *replica.Replica) *runner {
	r := &runner{cfg: cfg, program: program, graph: g, hooks: h}
	r.sizes = sizes{graph: g, most: cfg.MaxCommitBytes - ledger.FrameBytes}
	r.ledger = ledger.New(cfg.ledger(), r.ledgerHost(), confirmed)
	r.ledger.Runs(program.Version)
	r.jobs = jobTimers{space: cfg.Space, specs: program.crons, ledger: r.ledger, hooks: h}
	r.observations = observations{graph: g, ledger: r.ledger}
	r.budgets = budgets{cfg: cfg, graph: g}
	r.echoes = echoGuard{breaker: newEchoBreaker(echoSettings{}), graph: g, hooks: h}
	r.overruns = overruns{graph: g, hooks: h}
	g.removing = r.retire
	return r
}

// runNode runs a node once, in a transaction of its own (seed 001 section 7.3).
//
// The status becomes clean before the run: changes that the run itself commits
// are not for it (P5), any other that arrives meanwhile counts. A run that fails
// keeps what it read, so it is tried again when something of that changes.
func (r *runner) runNode(n *node) {
	why := r.takeCauses(n)
	r.graph.setStatus(n, Clean)
	r.budgets.charge(n)
	n.runs++
	r.inv.runs(r, n, why)
	if n.more != nil {
		n.more.cleanAs = ""
		gt := &n.more.gate
		gt.armed, gt.owed, gt.ran, gt.ranAt = false, false, true, r.graph.now
	}
	r.observations.note(n)
	r.graph.stats.Runs++
	info := RunInfo{Node: n.id(), Kind: n.kind}
	if f := r.cfg.Trace.RunBegan; f != nil {
		f(n.id(), n.kind)
	}
	if f := r.cfg.Trace.RunStart; f != nil || r.graph.recorder.On() {
		info.Causes = r.causesOf(n, why)
		if f != nil {
			f(info)
		}
	}
	info.Err = r.finishRun(n, why, &info)
	r.firing = r.firing[:why]
	if info.Waits == "" && !info.Crowded {
		r.inv.ran(r, n)
	}
	if info.Err != nil {
		r.nodeFailed(n, &info)
	}
	if w := r.graph.recorder; w.On() {
		w.Ran(runEntry(n, &info), info.Writes)
	}
	if f := r.cfg.Trace.RunEnd; f != nil {
		f(info)
	}
}

// runEntry is a run that has ended, for the recorder.
func runEntry(n *node, info *RunInfo) inspect.RunEntry {
	e := inspect.RunEntry{
		Node: n.id(), Kind: n.kind.String(), By: n.kind.String() + " " + n.id(), Causes: slices.Clone(info.Causes),
		Tx: info.Tx, Waits: info.Waits, Err: info.Err,
	}
	if p := n.parent(); p != nil {
		e.Parent = p.id()
	}
	n.eachSurface(true, func(s *surface) { e.Declared = append(e.Declared, s.doc.key.String()+s.path.String()) })
	return e
}

// finishRun makes the run and notes in info what came of it.
func (r *runner) finishRun(n *node, why int, info *RunInfo) error {
	tx := r.begin(n)
	n.running = true
	v, err := callNode(n, tx)
	_ = r.cfg.Guard.returned(false) // what a node has come to counts, however late
	n.running = false
	if n.doomed {
		r.endDoomed(n, tx)
		return nil
	}
	newReads := r.graph.applyReads(&tx.log)
	r.graph.catchUp(&tx.log)
	if newReads {
		r.graph.clearSuspicion(n)
	}
	if err == nil {
		err = tx.err
	}
	r.adopt(n, tx, err == nil && tx.missing == nil)
	info.Stack = tx.stack
	switch {
	case tx.missing != nil:
		// Whatever it made of that. It is read now, so its arrival wakes the node.
		n.waiting = true
		r.runAgain(n, r.whyRuns(n, why))
		info.Waits = tx.missing.key.String()
		return nil
	case err != nil:
		return r.retry(n, why, err)
	}
	r.graph.setErr(n, nil)
	if n.more != nil {
		n.more.retries = 0
	}
	return r.concludeRun(n, tx, v, why, newReads, info)
}

// retry has a node run again that failed for a reason that may pass, as often as the
// budget allows; a success renews it. Any other failure waits for a change.
func (r *runner) retry(n *node, why int, err error) error {
	if rejectionOf(err).Consequences().Computation == AgainWithinBudget && n.ext().retries < r.cfg.RunRetries {
		n.more.retries++
		r.runAgain(n, r.whyRuns(n, why))
	}
	return err
}

// runAgain takes back that n is clean: its run did not come to an end.
func (r *runner) runAgain(n *node, why causes) {
	r.graph.giveBack(n, why)
	r.graph.setStatus(n, Invalid)
	r.graph.enqueue(n)
}

// concludeRun applies what a run that succeeded has changed.
func (r *runner) concludeRun(n *node, tx *Tx, v model.Value, why int, newReads bool, info *RunInfo) error {
	after := tx.after
	if d := n.own.doc; d != nil && !model.Equal(d.value, v) {
		if n.spec.Volatile {
			info.Changed = true
		} else {
			tx.attempt.Writes = append(model.Diff(d.key.doc, d.value, v), tx.attempt.Writes...)
			after = slices.Insert(after, 0, docValue{doc: d, value: v})
		}
	}
	r.echoes.note(n, after)
	if tx.leans != nil {
		r.undo.relies(n, tx.leans)
	}
	was := n.status
	if info.Changed { // and volatile
		r.graph.changeByRun(n.own.doc, v, n, tx, 0)
	}
	if len(after) == 0 {
		r.inv.wrote(n, was)
		r.validate(n, after, v)
		return nil
	}
	err := r.commitRun(n, tx, after, why, newReads, info)
	if errors.Is(err, ErrNoRoom) {
		r.runAgain(n, r.whyRuns(n, why))
		info.Crowded = true
		return nil
	}
	info.Changed = err == nil
	if err == nil {
		r.inv.wrote(n, was)
		r.validate(n, after, v)
	}
	return err
}

// commitRun makes what a run has changed a transaction and applies it.
func (r *runner) commitRun(n *node, tx *Tx, after []docValue, why int, newReads bool, info *RunInfo) error {
	if info.Causes == nil {
		info.Causes = r.causesOf(n, why)
	}
	rec := model.Tx{N: r.ledger.NextTx(), By: n.by(), Causes: info.Causes, Writes: tx.attempt.Writes}
	for _, w := range after {
		if err := r.sizes.fits(w); err != nil {
			return fmt.Errorf("node %s: %w", n.id(), err)
		}
	}
	if newReads {
		rec.Reads = n.readNames()
	}
	err := r.ledger.Add(&rec)
	if errors.Is(err, ledger.ErrTooLarge) {
		// What a run has read and why it ran are told as far as there is room for that.
		rec.Reads, rec.Causes = nil, anyCause(info.Causes)
		err = r.ledger.Add(&rec)
	}
	if err != nil {
		return fmt.Errorf("node %s: %w", n.id(), err)
	}
	r.undo.ran(n, rec.N, info.Causes)
	info.Tx, info.Writes = rec.N, tx.attempt.Writes
	for _, w := range after {
		r.ledger.Note(w.doc.key.doc, w.value)
		r.graph.changeByRun(w.doc, w.value, n, tx, rec.N)
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
func (r *runner) freshen(n *node) {
	if r.nested == 0 {
		r.seek++
		clear(r.failed)
	}
	if n.running || n.seeking || r.nested >= maxNested || n.status == Clean && n.sought == r.seek || r.graph.upToDate(n) || r.failedFreshen(n) {
		return
	}
	r.nested++
	n.seeking, n.sought = true, r.seek
	for i := 0; i < len(n.deps); i++ {
		if n.deps[i].indexed {
			n.deps[i].eachWriter(true, func(w *surface) { r.freshen(w.node) })
		}
	}
	n.seeking = false
	if n.status != Clean {
		r.freshenMakers(n)
	}
	if n.status != Clean && !n.waiting && !n.held && !n.removed && r.budgets.mayRun(n) && !r.ledger.Crowded() && !r.ledger.Closed() {
		r.dequeue(n)
		r.runNode(n)
	}
	r.nested--
	if n.status != Clean && r.nested > 0 {
		r.noteFailed(n)
	}
}

// failedFreshen reports whether n could not be brought up to date a moment ago, and nothing
// has run since. Where many ways lead up to what is held back, each would be gone.
func (r *runner) failedFreshen(n *node) bool { return len(r.failed) > 0 && r.failed[n] == r.txs }

func (r *runner) noteFailed(n *node) {
	if r.failed == nil {
		r.failed = map[*node]int32{}
	}
	r.failed[n] = r.txs
}

// freshenMakers brings those up to date first that have made n: they may be about to
// remove it. A dormant one stays as it is.
func (r *runner) freshenMakers(n *node) {
	if p := n.parent(); p != nil {
		r.freshenMakers(p)
		if p.live {
			r.freshen(p)
		}
	}
}

// endDoomed ends the run of a node that was removed in the middle of it, by one that it
// had pulled. Nothing of it is kept.
func (r *runner) endDoomed(n *node, tx *Tx) {
	r.giveBack(n, tx)
	for _, c := range tx.made {
		r.graph.remove(c)
	}
	r.graph.remove(n)
}

// dequeue takes a node that runs out of turn out of the idle materializers. In the
// queue proper it may stay: it will be clean when its turn comes.
func (r *runner) dequeue(n *node) {
	if i := slices.Index(r.graph.queue.idle, n); i >= 0 {
		r.graph.queue.idle = slices.Delete(r.graph.queue.idle, i, i+1)
		n.queued = false
	}
}
