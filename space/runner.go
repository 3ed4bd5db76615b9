package space

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space/inspect"
)

// runner runs nodes, each in a transaction, and applies their writes to the ledger and the graph.
type runner struct {
	*transactions
	sizes      *sizes
	rehearsals *rehearsals

	undo         undoLog
	observations observations
	budgets      budgets
	echoes       echoGuard

	seek   int32           // see freshen
	failed map[*node]int32 // see failedFreshen
	// firing are the causes of the runs on the stack, innermost last; see takeCauses.
	firing []*dep
}

func newRunner(txs *transactions, s *sizes, re *rehearsals) runner {
	return runner{
		transactions: txs, sizes: s, rehearsals: re,
		observations: observations{graph: txs.graph, ledger: txs.ledger},
		budgets:      budgets{cfg: txs.cfg, graph: txs.graph, patience: patience{graph: txs.graph}},
		echoes:       echoGuard{breaker: newEchoBreaker(echoSettings{}), graph: txs.graph, hooks: txs.hooks},
	}
}

// runNode runs a node once, in a transaction of its own.
//
// The status becomes clean before the run: changes by the run itself do not invalidate the node (P5), any
// other change during the run does. A run that fails keeps its reads, so it is repeated when one of them
// changes.
func (r *runner) runNode(n *node) {
	why := r.takeCauses(n)
	r.graph.setStatus(n, Clean)
	r.budgets.charge(n)
	n.runs++
	r.inv.runs(r.graph, &r.budgets, n, r.nested, len(r.firing) > why || n.more != nil && len(n.more.firing) > 0)
	if n.more != nil {
		n.more.cleanAs = ""
		gt := &n.more.gate
		gt.armed, gt.ungated, gt.ran, gt.ranAt = false, false, true, r.graph.now
		gt.news = false
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
	if info.Waits == "" && !info.NoRoom && !info.TooDeep {
		r.inv.ran(n)
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

// finishRun calls the function of a node and records the outcome in info.
func (r *runner) finishRun(n *node, why int, info *RunInfo) error {
	tx := r.begin(n)
	n.running = true
	v, err := callNode(n, tx)
	_ = r.cfg.Guard.returned(false) // a node's result counts, however late
	n.running = false
	if n.removedMeanwhile {
		r.endRemoved(n, tx)
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
	r.adopt(n, tx, err == nil && tx.missing == nil && !tx.tooDeep)
	info.Stack = tx.stack
	switch {
	case tx.tooDeep:
		// Whatever the function returned: it may have seen a value of before.
		if n.more != nil {
			n.more.gate.ungated = true
		}
		r.runAgain(n, r.whyRuns(n, why))
		info.TooDeep, info.Stack = true, nil
		return nil
	case tx.missing != nil:
		// Whatever the function returned. The document is among its reads now, so its arrival invalidates the
		// node.
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

// retry repeats the run of a node that failed with a transient error while its budget lasts; a success renews
// the budget. Any other failure waits for a change.
func (r *runner) retry(n *node, why int, err error) error {
	if rejectionOf(err).consequences().computation == thenAgainWithinBudget && n.ext().retries < r.cfg.RunRetries {
		n.more.retries++
		r.runAgain(n, r.whyRuns(n, why))
	}
	return err
}

// runAgain invalidates a node whose run did not complete.
func (r *runner) runAgain(n *node, why causes) {
	r.graph.giveBack(n, why)
	r.graph.setStatus(n, Invalid)
	r.graph.enqueue(n)
}

// concludeRun applies the changes of a successful run.
func (r *runner) concludeRun(n *node, tx *transaction, v model.Value, why int, newReads bool, info *RunInfo) error {
	if r.graph.recorder.Compares() {
		if o, ok := r.outcomeOf(n, tx, v); ok {
			defer r.compare(o) // when the run is applied
		}
	}
	after := tx.after
	if d := n.own.doc; d != nil && n.spec.Output != "" && !model.Equal(d.value, v) {
		if n.spec.Volatile {
			info.Changed = true
		} else {
			tx.attempt.Writes = append(r.sizes.output(d.key.doc, d.value, v), tx.attempt.Writes...)
			after = slices.Insert(after, 0, docValue{doc: d, value: v})
		}
	}
	r.echoes.note(n, after)
	if tx.speculative != nil {
		r.undo.relies(n, tx.speculative)
	}
	was := n.status
	if info.Changed { // but volatile
		r.graph.changeByRun(n.own.doc, v, n, tx.attempt.Group, &model.Tx{Writes: tx.attempt.Writes, Via: r.trailOf(n, why)})
	}
	if len(after) == 0 && len(tx.attempt.Sends) == 0 {
		r.inv.wrote(n, was)
		r.rehearsals.validate(n, after, v)
		return nil
	}
	err := r.commitRun(n, tx, after, why, newReads, info)
	if errors.Is(err, ErrNoRoom) {
		r.runAgain(n, r.whyRuns(n, why))
		info.NoRoom = true
		return nil
	}
	info.Changed = err == nil
	if err == nil {
		r.inv.wrote(n, was)
		r.rehearsals.validate(n, after, v)
	}
	return err
}

// commitRun makes the changes of a run a transaction and applies it.
func (r *runner) commitRun(n *node, tx *transaction, after []docValue, why int, newReads bool, info *RunInfo) error {
	if info.Causes == nil {
		info.Causes = r.causesOf(n, why)
	}
	rec := model.Tx{N: r.ledger.NextTx(), By: n.by(), Causes: info.Causes, Writes: tx.attempt.Writes, Via: r.trailOf(n, why)}
	for _, w := range after {
		if err := r.sizes.fits(w); err != nil {
			return fmt.Errorf("node %s: %w", n.id(), err)
		}
	}
	if newReads {
		rec.Reads = n.readNames()
	}
	err := r.addRun(&rec, tx)
	if errors.Is(err, ledger.ErrTooLarge) {
		// Reads and causes are recorded only if there is room.
		rec.Reads, rec.Causes = nil, anyCause(info.Causes)
		err = r.addRun(&rec, tx)
	}
	if err != nil {
		return fmt.Errorf("node %s: %w", n.id(), err)
	}
	r.undo.ran(n, rec.N, info.Causes)
	info.Tx, info.Writes = rec.N, tx.attempt.Writes
	for _, w := range after {
		r.ledger.Note(w.doc.key.doc, w.value)
		r.graph.changeByRun(w.doc, w.value, n, tx.attempt.Group, &rec)
	}
	return nil
}

// addRun adds the transaction of a run to the open group, with the events that it raises.
func (r *runner) addRun(rec *model.Tx, tx *transaction) error {
	if len(tx.attempt.Sends) == 0 {
		return r.ledger.Add(rec)
	}
	return r.ledger.AddSending(rec, tx.attempt.Sends)
}

// anyCause replaces causes that need too much room.
func anyCause(causes []string) []string {
	if len(causes) == 0 {
		return nil
	}
	return []string{"*"}
}

// maxNested bounds the nesting of runs. A run that would have to nest deeper is abandoned with those around it, and
// the sweep ends: the next one has the edges that they have found, and begins at their far end.
const maxNested = 1000

// tooDeep is the panic that ends a run which is abandoned because runs are nested too deeply.
type tooDeep struct{}

// freshen brings a node up to date out of turn, because a run is about to read its output for the first time:
// the node is dormant, or the edge is new. Running it now spares the reader a run on an old value, and spares
// further passes when a chain is discovered link by link. Upstream nodes run first.
func (r *runner) freshen(n *node) {
	if r.nested == 0 {
		r.seek++
		clear(r.failed)
	}
	if n.running || n.seeking || n.status == Clean && n.sought == r.seek || r.graph.upToDate(n) || r.failedFreshen(n) {
		return
	}
	if r.nested >= maxNested {
		r.abandoning = true
	}
	if r.abandoning {
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
	if n.status != Clean && !r.abandoning && !n.waiting && !n.held && !n.removed && r.budgets.mayRun(n) && !r.ledger.Overflowed() && !r.ledger.Closed() {
		r.dequeue(n)
		r.runNode(n)
	}
	r.nested--
	if n.status != Clean && r.nested > 0 {
		r.noteFailed(n)
	}
}

// failedFreshen reports whether freshen has failed for n and nothing has run since. Without it, each of many
// paths to a node that is held back would be followed.
func (r *runner) failedFreshen(n *node) bool { return len(r.failed) > 0 && r.failed[n] == r.begun }

func (r *runner) noteFailed(n *node) {
	if r.failed == nil {
		r.failed = map[*node]int32{}
	}
	r.failed[n] = r.begun
}

// freshenMakers brings the makers of n up to date first, because they may be about to remove it. Dormant
// makers stay as they are.
func (r *runner) freshenMakers(n *node) {
	if p := n.parent(); p != nil {
		r.freshenMakers(p)
		if p.live {
			r.freshen(p)
		}
	}
}

// endRemoved ends the run of a node that was removed during it, by a node that the run had pulled. Nothing of
// the run is kept.
func (r *runner) endRemoved(n *node, tx *transaction) {
	r.giveBack(n, tx)
	for _, c := range tx.made {
		r.graph.remove(c)
	}
	r.graph.remove(n)
}

// dequeue removes a node that runs out of turn from the idle materializers. It may stay in the queue proper,
// where it will be clean at its turn.
func (r *runner) dequeue(n *node) {
	if i := slices.Index(r.graph.queue.idle, n); i >= 0 {
		r.graph.queue.idle = slices.Delete(r.graph.queue.idle, i, i+1)
		n.queued = false
	}
}

// retire discards the space's state about a node that is being removed, together with a volatile output,
// which no run would compute again after a restart.
func (r *runner) retire(n *node) {
	r.echoes.retire(n)
	if n.saved {
		r.observations.forgotten = append(r.observations.forgotten, n.id())
	}
	if d := n.own.doc; d != nil && n.spec.Volatile {
		r.graph.change(d, r.ledger.Value(d.key.doc), origin{node: n})
	}
}

// nodeFailed counts and reports a run that returned an error.
func (r *runner) nodeFailed(n *node, info *RunInfo) {
	r.graph.stats.NodeErrors++
	r.graph.setErr(n, info.Err)
	n.more.errors++
	r.hooks.report(ErrorInfo{
		Node: n.id(), Causes: info.Causes, Err: info.Err, Stack: info.Stack, Rejection: rejectionOf(info.Err),
		Transient: n.status != Clean, Attempt: int(n.runs),
	})
}

// takeCauses removes the causes of a node that is about to run. Those that are reads are then in r.firing
// from the returned index on, until the caller truncates it after the run: runs may be nested. The others are
// in n.more.firing.
func (r *runner) takeCauses(n *node) (from int) {
	from = len(r.firing)
	for _, d := range n.deps {
		if d.fired != 0 {
			r.firing = append(r.firing, d)
		}
	}
	fired := r.firing[from:]
	byArrival(fired)
	for _, d := range fired {
		d.fired = 0
	}
	if n.more != nil {
		n.more.firing, n.more.causes = n.more.causes, nil
	}
	return from
}

// whyRuns returns the causes of the current run of n.
func (r *runner) whyRuns(n *node, from int) causes {
	c := causes{reads: r.firing[from:]}
	if n.more != nil {
		c.other = n.more.firing
	}
	return c
}

// causesOf returns the names of the causes of the current run of n.
func (r *runner) causesOf(n *node, from int) []string {
	c := r.whyRuns(n, from)
	return c.names()
}

// trailOf returns the trail of what a run of n makes of its causes, nil if none of them follows from another space.
func (r *runner) trailOf(n *node, why int) (t *model.Trail) {
	if len(r.graph.trails) == 0 {
		return nil
	}
	c := r.whyRuns(n, why)
	reads := c.reads
	if len(c.other) > 0 {
		reads = n.deps // which of them it was is not known
	}
	for _, d := range reads {
		t = t.Further(r.graph.trails[d.doc])
	}
	return t
}

// revert restores the confirmed values of documents, and makes nodes whose runs are undone run again for the
// same causes: the reasons still hold, although none of their reads may change again (docs/adr/0006). For a
// node that reads only its own writes this is no further cause (docs/adr/0008): it sees what its run saw.
func (r *runner) revert(u undone) {
	ids := slices.Sorted(maps.Keys(u.changed))
	for _, id := range ids {
		r.graph.undoing = u.changed[id]
		r.graph.change(r.graph.known(id), r.ledger.Replica().Doc(id).Value, origin{})
		r.graph.undoing = nil
	}
	for _, ran := range u.runs {
		if n := ran.node; !n.removed {
			r.inv.undone(n)
			n.ext().gate.ungated = true
			r.runAgain(n, causes{other: ran.causes})
			r.graph.regate(n)
		}
	}
	for _, id := range ids {
		// The output changed although its node is clean: it was written by another node of this name that was
		// removed, or before there was any, and this node's run left it equal.
		if d := r.graph.local(id); d.writer != nil && d.writer.node.status == Clean {
			r.graph.invalidate(d.writer.node, d.key.String())
		}
	}
	for _, l := range u.speculative {
		if n := l.node; n.status == Clean && !n.removed {
			r.inv.undone(n)
			r.graph.invalidate(n, l.doc.key.String())
		}
	}
}

// integrated applies a commit of another runtime.
func (r *runner) integrated(c *model.Commit, changed []string) error {
	places := writtenIn(c)
	for _, id := range changed {
		if err := r.show(id, places[id]); err != nil {
			return err
		}
	}
	return nil
}

// show makes the confirmed value of a document current. If that contradicts the output of a computation, the
// computation must run again.
func (r *runner) show(id string, by *writtenPlaces) error {
	d, err := r.graph.ensureDoc(docKey{doc: id})
	if err != nil {
		return err
	}
	from := origin{remote: true, at: r.ledger.Replica().Seq}
	if by != nil {
		from.group, from.paths, from.via = by.group, by.paths, by.via
	}
	if d.isVolatile() {
		from.paths = nil // the log lacks the previous value, so more may differ than was written
	}
	before := d.value
	r.graph.change(d, r.ledger.Replica().Doc(id).Value, from)
	if d.writer != nil && !model.Equal(before, d.value) {
		r.graph.invalidate(d.writer.node, d.key.String())
	}
	return nil
}

// writtenPlaces has the places of a commit's writes in a document, and its change group, if there is one.
type writtenPlaces struct {
	group string
	paths []model.Path
	via   *model.Trail // of the last write
}

// writtenIn collects the writes of a commit once for all documents, because there may be thousands.
func writtenIn(c *model.Commit) map[string]*writtenPlaces {
	in := map[string]*writtenPlaces{}
	for i := range c.Txs {
		tx := &c.Txs[i]
		for j := range tx.Writes {
			w := in[tx.Writes[j].Doc]
			if w == nil {
				w = &writtenPlaces{group: tx.Group}
				in[tx.Writes[j].Doc] = w
			} else if w.group != tx.Group {
				w.group = ""
			}
			w.paths, w.via = append(w.paths, tx.Writes[j].Path), tx.Via
		}
	}
	return in
}

// giveBack undoes the registration of existing children by a run. A child that belonged to another node
// returns to it, unless that node has run since without registering the child.
func (r *runner) giveBack(n *node, tx *transaction) {
	g := r.graph
	for _, f := range tx.kept {
		c := f.child
		if c.removed || c.more.parent != n {
			continue // another node has adopted it since
		}
		if f.spec.Gate != c.spec.Gate {
			g.changeGate(c, func(gt *gate) { gt.apply(f.spec.Gate) })
		}
		c.spec, c.removedMeanwhile, c.more.outdated = f.spec, f.removedMeanwhile, f.outdated
		g.setKind(c, f.kind)
		if f.parent == n {
			continue
		}
		g.leaveParent(c)
		switch p := f.parent; {
		case p == nil: // it was being removed
		case p.removed || p.runs != f.parentRuns:
			g.remove(c)
		default:
			c.more.parent = p
			p.ext().children = append(p.more.children, c)
		}
	}
}

// adopt makes the children that a run registered those of its node. A run that did not complete changes
// nothing: its new children are removed.
func (r *runner) adopt(n *node, tx *transaction, ok bool) {
	if n.more == nil {
		return
	}
	blueprint := n.more.blueprint
	n.more.blueprint = nil
	n.more.renewing = n.more.renewing && !ok
	if !ok {
		r.giveBack(n, tx)
		for _, c := range tx.made {
			r.graph.remove(c)
		}
		return
	}
	kept, gone := n.more.children[:0], []*node(nil)
	for _, c := range n.more.children {
		if blueprint[c.id()] {
			kept = append(kept, c)
		} else {
			gone = append(gone, c)
		}
	}
	clear(n.more.children[len(kept):])
	n.more.children = kept
	r.graph.removeAll(gone)
	for _, c := range kept {
		r.graph.descend(c) // its reads may have raised n
	}
}

// renewMarks resets the search numbers if one has become large.
func (r *runner) renewMarks() {
	g := r.graph
	if max(g.stamp, r.seek, r.begun, int32(g.shots>>1)) < lastMark {
		return
	}
	g.stamp, r.seek, r.begun, g.shots = 0, 0, 0, 0
	for _, n := range g.nodes {
		if n != nil {
			g.renewNode(n)
		}
	}
}

// lastMark is the number from which they are reset: between two passes, when no search or run is under way.
const lastMark = 1 << 30
