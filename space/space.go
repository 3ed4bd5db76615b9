package space

import (
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
	"github.com/settlehq/settle/space/inspect"
)

// Space is one space as one runtime hosts it. It is not safe for concurrent use: its owner makes all calls,
// one at a time.
type Space struct {
	cfg Config
	// next is the program that a pending Change requested, nil if there is none.
	next *Program

	ledger.Hosted

	ledger *ledger.Ledger
	graph  *graph
	work
	hooks hooks

	background int
	wasDurable bool
	undone     []uint64 // see Ready.Undone

	observers map[string]*observer
	recorder  *inspect.Recorder
	slow      autoDebounceSettings
	publisher publisher
	stats     Stats
}

// work has the components of a pass.
type work struct {
	txs        transactions
	sizes      sizes
	rehearsals rehearsals
	runner     runner
	handling   handling
	sweeper    sweeper
	jobs       jobTimers
	overruns   overruns
	rounds     rounds
}

// New returns a space with a confirmed state. It makes no transactions until Confirm has answered TakeOver or
// Attach.
func New(cfg Config, program *Program, r *replica.Replica) (*Space, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	if err := program.check(); err != nil {
		return nil, err
	}
	s := &Space{
		cfg: cfg, hooks: hooks{space: cfg.Space, program: program.Name},
		slow: autoDebounceSettings{}.filled(), observers: map[string]*observer{},
	}
	s.connect(program, r)
	return s, s.populate()
}

// connect creates the components of the space and passes to each those that it uses.
func (s *Space) connect(program *Program, confirmed *replica.Replica) {
	g, txs := newGraph(&s.cfg.Trace, &s.stats), &s.txs
	s.graph = g
	*txs = transactions{cfg: &s.cfg, graph: g, hooks: &s.hooks, jobs: &s.jobs, tasks: program.tasks, refresh: s.runner.freshen}
	s.sizes = sizes{graph: g, most: s.cfg.MaxCommitBytes - ledger.FrameBytes}
	s.rehearsals = rehearsals{transactions: txs, sample: uint64(s.cfg.CheckRuns)}
	s.handling = handling{transactions: txs, program: program, sizes: &s.sizes, budgets: &s.runner.budgets, rehearsals: &s.rehearsals}
	l := ledger.New(s.cfg.ledger(), s.handling.ledgerHost(s.runner.integrated), confirmed)
	l.Runs(program.Version)
	s.ledger, txs.ledger = l, l
	s.Hosted = l.Hosted()
	s.runner = newRunner(txs, &s.sizes, &s.rehearsals)
	g.removing = s.runner.retire
	g.gates.wall, g.gates.changed = l.Wall, s.runner.observations.note
	s.sweeper = sweeper{runner: &s.runner}
	s.jobs = jobTimers{space: s.cfg.Space, specs: program.crons, ledger: l, hooks: &s.hooks}
	s.overruns = overruns{graph: g, hooks: &s.hooks}
	s.rounds = rounds{space: s.cfg.Space, graph: g}
	s.recorder = inspect.NewRecorder(&s.runner.budgets.passes, &s.graph.now)
	s.publisher = publisher{handling: &s.handling, recorder: s.recorder, rounds: &s.rounds}
	s.graph.recorder, s.runner.budgets.recorder = s.recorder, s.recorder
}

func (s *Space) stepped() {
	if checking {
		s.runner.inv.step(s.graph, s.ledger, s.Idle())
	}
}

// populate fills the graph with the documents and the program's nodes. Nodes start as never run, and stay so
// until something observes them.
func (s *Space) populate() error {
	docs := s.replica().DocIDs()
	s.graph.expect(len(s.handling.program.nodes), len(docs))
	for _, id := range docs {
		d, err := s.graph.ensureDoc(docKey{doc: id})
		if err != nil {
			return err
		}
		d.value = s.replica().Doc(id).Value
		s.graph.noteTask(d)
	}
	for i := range s.handling.program.nodes {
		if _, err := s.graph.register(s.handling.program.nodes[i], nil); err != nil {
			return fmt.Errorf("space %s: program %s: %w", s.cfg.Space, s.handling.program.Name, err)
		}
	}
	return nil
}

// replica returns the confirmed state.
func (s *Space) replica() *replica.Replica { return s.ledger.Replica() }

// Confirm reports that the append under way is in the log at seq.
func (s *Space) Confirm(seq uint64) error {
	defer s.stepped()
	entered, err := s.ledger.Confirm(seq)
	if entered {
		s.jobs.check = true
	} else {
		s.runner.undo.confirm()
	}
	return err
}

// Refuse reports that the append under way was refused: another runtime's commit is at the head. The whole
// suffix is undone; the space pauses until the caller has passed every commit after Seq to Integrate and called
// Resume.
func (s *Space) Refuse() {
	defer s.stepped()
	gone := s.ledger.Refuse()
	s.undone = append(s.undone, gone.Direct...)
	s.jobs.check = true
	s.runner.revert(s.runner.undo.drop(gone))
}

// Integrate applies commits of other runtimes, in log order; known ones are skipped. If an append was under
// way, it must have failed and Refuse must have been called. The error is model.ErrPurged if commits are
// missing between the known ones and these: the space must then be loaded anew.
func (s *Space) Integrate(entries ...model.LogEntry) error {
	defer s.stepped()
	return s.ledger.Integrate(entries...)
}

// Resume ends the pause after Refuse.
func (s *Space) Resume() {
	for _, u := range s.ledger.Resume() {
		if f := s.cfg.Trace.Rejected; f != nil {
			f(RejectInfo{Stream: u.Event.Stream, Event: u.Event.ID, Class: rejectionBy(u.Cause)})
		}
	}
}

// Mirror delivers the confirmed value of a foreign document that Ready.Follow requested: first its present
// value, even if absent, then each change.
func (s *Space) Mirror(space, id string, v model.Value) { s.MirrorVia(space, id, v, nil) }

// MirrorVia is Mirror with the trail that the change has in the log of the other space (model.Commit.TrailOf), nil if it has none or is not
// known.
func (s *Space) MirrorVia(space, id string, v model.Value, via *model.Trail) {
	defer s.stepped()
	d := s.graph.lookup(docKey{space: space, doc: id})
	if d == nil || !d.followed {
		return // after Unfollow; by now it may be out of date
	}
	s.rounds.deliver(d, v, via)
}

// Register adds a node to this space, beside those of its program: something that the application observes,
// or derives for itself. It lasts until Remove, at most as long as the space is hosted here. Nothing runs
// before the next Settle.
func (s *Space) Register(spec NodeSpec) error {
	defer s.stepped()
	if err := spec.check(); err != nil {
		return fmt.Errorf("node %q: %w", spec.ID, err)
	}
	_, err := s.graph.register(spec.declare(), nil)
	return err
}

// Remove removes a node that Register has added, with all of its children. Its demand ends; its writes stay,
// except for a volatile output. It reports whether there was such a node. Removing other nodes makes no
// sense: a node of the program would be missing for good, and a child returns with its parent's next run.
func (s *Space) Remove(id string) bool {
	defer s.stepped()
	n := s.graph.byID[id]
	if n == nil {
		return false
	}
	s.graph.remove(n)
	return true
}

// Overran reports code that did not return to the space, before it takes over. If that was a handler, its
// event has one more lost attempt (Config.LostAttempts). If it was a node, the node is held back and no event
// waits for it until it may run again: its last output stays.
func (s *Space) Overran(o Overrun) {
	if o.Node == "" {
		s.handling.limit = o.Limit
		s.ledger.Overran(o.Stream, o.Event, o.Recorded)
		return
	}
	s.graph.arrival = s.arrived
	s.overruns.note(o)
}

// arrived applies what is known about a node before it was registered.
func (s *Space) arrived(n *node) {
	s.runner.observations.resumeChild(n)
	s.overruns.hold(n)
}

// LastMissed returns the times that a job skipped most recently since the space was loaded, zero if none
// were.
func (s *Space) LastMissed() Missed { return s.jobs.missed }

// CheckSample repeats one in n runs of each computation from now on, and reports the violations as CheckIdempotency
// does; with 0, as many as Config.CheckRuns says, as from the start. Handlers are not repeated. Nothing else depends on it.
func (s *Space) CheckSample(n int) {
	if n <= 0 {
		n = s.cfg.CheckRuns
	}
	s.rehearsals.sample = uint64(n)
}

// Observations returns the observations that have changed since the last call: those of nodes that have run
// and have nothing left to do. gone are the ids of removed nodes. It returns none while any transaction is
// undecided, since the reads of a node might be undone; the next call returns them.
//
// The host saves them with a checkpoint, keyed by the node's id. Saved ones that are older than the
// checkpoint do no harm: documents that changed since their basis are compared.
func (s *Space) Observations() (out []Observation, gone []string) {
	if !s.Settled() {
		return nil, nil
	}
	return s.runner.observations.take()
}

// Unsaved reports whether Observations may return anything.
func (s *Space) Unsaved() bool {
	return len(s.runner.observations.unsaved)+len(s.runner.observations.forgotten) > 0
}

// Rehydrate resumes nodes of an earlier incarnation of this space: a node whose observation holds is clean
// and does not run, and its reads are compared only if their documents have changed since. Call it once,
// before the first Settle.
//
//	no observation, or of another version     never ran
//	or shape
//	failed, or an address differs             invalid: it runs when something needs it
//	else                                      clean
//
// A node that has made nodes runs again to make them; its children are resumed when it registers them.
// Documents of other spaces are compared when they arrive.
func (s *Space) Rehydrate(saved []Observation) {
	defer s.stepped()
	s.graph.arrival = s.arrived
	s.runner.observations.rehydrate(saved)
}

// Measured reports the duration of a node's run, which only the host knows: the core has no clock. It feeds
// the statistics, and the automatic debounce of slow effects.
func (s *Space) Measured(node string, took time.Duration) {
	n := s.graph.byID[node]
	if n == nil {
		return
	}
	gt := &n.ext().gate
	gt.auto.policy = &s.slow // autoDebounce decides which nodes it applies to
	gt.auto.ran(took)
	s.graph.regate(n)
}

// OnError registers a function that is called with each error of user code, during Settle. It must not call the
// space.
func (s *Space) OnError(f func(ErrorInfo)) { s.hooks.onError = append(s.hooks.onError, f) }

// OnConsole registers a function that is called with each line that user code logs, like OnError. A repeated
// attempt or run logs its lines again.
func (s *Space) OnConsole(f func(ConsoleInfo)) { s.hooks.onConsole = append(s.hooks.onConsole, f) }

// observer is the effect behind all observations of one document.
type observer struct {
	node  *node
	count int
}

// Observe creates demand for a document of this space, until Unobserve: the computations that it depends on
// become live. Each live query of a client is an observation, and so is each computation of another space
// that reads the document.
func (s *Space) Observe(id string) error {
	defer s.stepped()
	if o := s.observers[id]; o != nil {
		o.count++
		return nil
	}
	if err := model.CheckName("document", id); err != nil {
		return err
	}
	n, err := s.graph.register((&NodeSpec{
		ID: inspect.ObserverOf(id), Kind: Effect,
		Run: func(tx *Tx) (model.Value, error) { return tx.Get(id), nil },
	}).declare(), nil)
	if err != nil {
		return fmt.Errorf("observe document %s: %w", id, err)
	}
	s.observers[id] = &observer{node: n, count: 1}
	return nil
}

// Unobserve undoes one Observe.
func (s *Space) Unobserve(id string) {
	defer s.stepped()
	o := s.observers[id]
	if o == nil {
		return
	}
	if o.count--; o.count == 0 {
		s.graph.remove(o.node)
		delete(s.observers, id)
	}
}

// Idle reports whether the space has nothing left to do: it runs nothing, no event waits, and no node may
// run. A held node counts if its result is awaited: an effect, a materializer, the first run of a needed
// node, or, for three passes, a node that does not converge. The re-run of a computation that is only
// debounced or throttled does not: that is a bound on freshness.
//
// Commits may still be under way; Durable waits for them. A space that is closed or was taken over by another
// runtime is idle as soon as it is not in the middle of a pass.
func (s *Space) Idle() bool {
	switch {
	case s.ledger.Closed() || s.Deposed():
		return !s.graph.ticked
	case !s.ledger.Running() || s.background > 0 || !s.cfg.WithoutEvents && !s.ledger.Lane().Quiet():
		return false
	case s.graph.queue.waits() || s.graph.pending > 0:
		return false
	}
	return !slices.ContainsFunc(s.graph.gated, s.awaited)
}

// awaited reports whether n, which is held, keeps the space from being idle.
func (s *Space) awaited(n *node) bool {
	gt := &n.more.gate
	if gt.backoffUntil > s.graph.now && n.status != NeverRan {
		return gt.holds < maxHolds
	}
	return n.status == NeverRan || n.kind == Effect || n.materializer()
}

// maxHolds is the number of exhausted passes for which a node that does not converge keeps the space from
// being idle: long enough for a wave that needs more than one pass to converge, short enough that a circle
// that never converges blocks nothing (I6).
const maxHolds = 3
