package space

import (
	"fmt"
	"time"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
	"github.com/settlehq/settle/space/inspect"
)

// Space is one space as one runtime hosts it. It is not safe for concurrent use:
// it has one owner, who calls its inputs and Settle one at a time.
type Space struct {
	cfg Config
	// next is the program that is to take over, nil if there is none.
	next *Program

	ledger *ledger.Ledger
	graph  *graph
	runner *runner
	hooks  hooks

	background int
	wasDurable bool
	undone     []uint64 // see Ready.Undone

	observers map[string]*observer
	recorder  *inspect.Recorder
	slow      autoDebounceSettings
	structure *structure
	stats     Stats
}

// New makes a space out of its confirmed state. It makes no transactions until
// TakeOver or Attach has been answered by Confirm.
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
	s.graph = newGraph(&s.cfg.Trace, &s.stats)
	s.runner = newRunner(&s.cfg, program, s.graph, &s.hooks, r)
	s.ledger = s.runner.ledger
	s.recorder = inspect.NewRecorder(&s.runner.budgets.passes, &s.graph.now)
	s.graph.recorder, s.runner.budgets.recorder = s.recorder, s.recorder
	var err error
	if s.structure, err = newStructure(); err != nil {
		return nil, err
	}
	return s, s.populate()
}

// populate fills the graph with the documents and the program's nodes. Nodes start
// as never run: what is not observed stays so.
func (s *Space) populate() error {
	docs := s.replica().DocIDs()
	s.graph.expect(len(s.runner.program.nodes), len(docs))
	for _, id := range docs {
		d, err := s.graph.ensureDoc(docKey{doc: id})
		if err != nil {
			return err
		}
		d.value = s.replica().Doc(id).Value
	}
	for i := range s.runner.program.nodes {
		if _, err := s.graph.register(s.runner.program.nodes[i], nil); err != nil {
			return fmt.Errorf("space %s: program %s: %w", s.cfg.Space, s.runner.program.Name, err)
		}
	}
	s.structure.setHandlers(s.runner.program)
	return nil
}

// replica is the confirmed state.
func (s *Space) replica() *replica.Replica { return s.ledger.Replica() }

// TakeOver asks to become the owner: the next Ready carries a takeover commit, or, if one
// is under way, the first after that was refused. An owner has nothing to ask for, nor has
// a runtime that is attached.
func (s *Space) TakeOver() { s.ledger.TakeOver() }

// Attach asks to take part beside the owner, likewise (DESIGN 8.4). A runtime that is
// attached deposes nobody and is deposed by nobody. It makes transactions like an owner;
// what keeps them apart is the compare-and-set on the head alone: whoever comes second is
// refused, integrates, and does again what is still to do.
func (s *Space) Attach() { s.ledger.Attach() }

// Owned reports whether this runtime owns the space, as far as it knows.
func (s *Space) Owned() bool { return s.ledger.Entered() && s.ledger.Role() == ledger.Owner }

// Attached reports whether this runtime takes part beside the owner.
func (s *Space) Attached() bool { return s.ledger.Entered() && s.ledger.Role() == ledger.Attached }

// Transacts reports whether Transact may be called now. After a refusal it may not, until what stands in the log is integrated.
func (s *Space) Transacts() bool { return s.ledger.Begins() }

// Deposed reports whether another runtime has taken the space over.
func (s *Space) Deposed() bool { return s.ledger.Phase() == ledger.Deposed }

// Seq is the log sequence up to which the confirmed state reaches.
func (s *Space) Seq() uint64 { return s.replica().Seq }

// Offer hands the space an event from its lane. It reports false if the event was
// left in the stream for want of room; Ready.Refill asks for it again.
func (s *Space) Offer(ev model.Event) bool { return s.ledger.Lane().Offer(ev) }

// TermAt sets the time by the server's clock, in milliseconds since 1970: the next takeover or join
// begins a term of that time (docs/adr/0035). Without it the entry begins none, and positions that are
// given out again after the log has lost its end cannot be told apart from those of before.
func (s *Space) TermAt(at uint64) { s.ledger.TermAt(at) }

// Reissued returns positions that the space needs to know more of before it goes on with events of their
// origin, see Recall; false if there are none, or not yet.
func (s *Space) Reissued() (model.Reissued, bool) { return s.ledger.Lane().Reissued() }

// Recall passes to the space the events that it has handled under positions which their origin has given
// out again: the receipts are in its log. One that comes again under another id ends as it did before,
// without being handled.
func (s *Space) Recall(of model.Reissued, handled []model.Receipt) {
	s.ledger.Lane().Recall(of, handled)
}

// LeftInStream notes that the event at a lane sequence was not offered, for want
// of room on the way; Ready.Refill will ask for it.
func (s *Space) LeftInStream(lane uint64) { s.ledger.Lane().LeftInStream(lane) }

// ReadLaneAfter is the lane sequence after which the space's events must be read
// and offered, so that it misses none.
func (s *Space) ReadLaneAfter() uint64 { return s.ledger.Lane().ReadAfter() }

// LaneRoom is how many events can be offered now without being left in the stream.
func (s *Space) LaneRoom() int { return s.ledger.Lane().Room() }

// LaneDone is the lane sequence up to which nothing is left to do, as far as it
// is confirmed (see replica.LaneDone).
func (s *Space) LaneDone() uint64 { return s.replica().LaneDone() }

// Hold makes the space finish: it starts no more transactions, but still seals
// and confirms those that are made. There is no way back.
func (s *Space) Hold() { s.ledger.Hold() }

// Settled reports whether every transaction is in the log.
func (s *Space) Settled() bool { return s.ledger.Settled() }

// Clock tells the wall time. It is called before Settle, and whenever a transaction is to
// be made at a time. Time may go back: an event that is in the log as handled stays so, any
// other waits until its time comes again.
func (s *Space) Clock(wall time.Time) { s.ledger.Clock(wall) }

// NextDue is when the first of the events that wait wants to be handled, as far as that is
// in the log, in milliseconds since 1970; 0 if none waits.
func (s *Space) NextDue() int64 { return s.replica().Later.Next() }

// WaitForTime is how many events wait for a time, as far as that is in the log.
func (s *Space) WaitForTime() int { return s.replica().Later.Len() }

// FollowsUp reports whether an event is in the log that the space has sent to itself and not
// handled yet.
func (s *Space) FollowsUp() bool { return len(s.replica().Own) > 0 }

// Confirm says that the append under way is in the log at seq.
func (s *Space) Confirm(seq uint64) error {
	defer s.runner.inv.step(s)
	entered, err := s.ledger.Confirm(seq)
	if entered {
		s.runner.jobs.check = true
	} else {
		s.runner.undo.confirm()
	}
	return err
}

// Refuse says that the append under way was refused: somebody else's commit is at
// the head. The whole suffix is undone; the space stands still until the caller
// has passed every commit after Seq to Integrate and calls Resume.
func (s *Space) Refuse() {
	defer s.runner.inv.step(s)
	gone := s.ledger.Refuse()
	s.undone = append(s.undone, gone.Direct...)
	s.runner.jobs.check = true
	s.runner.revert(s.runner.undo.drop(gone))
}

// revert gives documents their confirmed values back, and has the runs that are undone
// made again for the causes that they had: what made them necessary still holds, although
// nothing that they read may change any more (D07, docs/adr/0006). A node that reads what
// it alone has written gets no further cause from that (docs/adr/0008): it sees again what
// its run saw.
func (r *runner) revert(u undone) {
	ids := sortedKeys(u.changed)
	for _, id := range ids {
		r.graph.undoing = u.changed[id]
		r.graph.change(r.graph.known(id), r.ledger.Replica().Doc(id).Value, origin{})
		r.graph.undoing = nil
	}
	for _, ran := range u.runs {
		if n := ran.node; !n.removed {
			r.inv.undone(n)
			n.ext().gate.owed = true
			r.runAgain(n, causes{other: ran.causes})
			r.graph.regate(n)
		}
	}
	for _, id := range ids {
		// An output that changed and whose node is clean: it was written by another of
		// this name, which is gone, or before there was any, and the node has come to the
		// same.
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

// Integrate takes in commits that other runtimes have made, in log order; those that are
// known already are passed over. If an append is under way it has failed, and Refuse comes
// first. The error is model.ErrPurged if commits are missing between what is known and
// these: the space must be loaded anew.
func (s *Space) Integrate(entries ...model.LogEntry) error {
	defer s.runner.inv.step(s)
	return s.ledger.Integrate(entries...)
}

// integrated shows the documents that a commit of another runtime has changed.
func (r *runner) integrated(c *model.Commit, changed []string) error {
	places := writtenIn(c)
	for _, id := range changed {
		if err := r.show(id, places[id]); err != nil {
			return err
		}
	}
	return nil
}

// show makes the confirmed value of a document the current one. If it is the output
// of a computation that says otherwise here, that must run again.
func (r *runner) show(id string, by *written) error {
	d, err := r.graph.ensureDoc(docKey{doc: id})
	if err != nil {
		return err
	}
	from := origin{remote: true, at: r.ledger.Replica().Seq}
	if by != nil {
		from.group, from.paths = by.group, by.paths
	}
	if d.isVolatile() {
		from.paths = nil // the log does not have what was here, so more differs than was written
	}
	before := d.value
	r.graph.change(d, r.ledger.Replica().Doc(id).Value, from)
	if d.writer != nil && !model.Equal(before, d.value) {
		r.graph.invalidate(d.writer.node, d.key.String())
	}
	return nil
}

// written says where a commit writes in a document, and in which change group, if it is
// one.
type written struct {
	group string
	paths []model.Path
}

// writtenIn goes through a commit once for all documents: it may write thousands.
func writtenIn(c *model.Commit) map[string]*written {
	in := map[string]*written{}
	for i := range c.Txs {
		tx := &c.Txs[i]
		for j := range tx.Writes {
			w := in[tx.Writes[j].Doc]
			if w == nil {
				w = &written{group: tx.Group}
				in[tx.Writes[j].Doc] = w
			} else if w.group != tx.Group {
				w.group = ""
			}
			w.paths = append(w.paths, tx.Writes[j].Path)
		}
	}
	return in
}

// Resume ends the standstill after Refuse.
func (s *Space) Resume() {
	for _, u := range s.ledger.Resume() {
		if f := s.cfg.Trace.Rejected; f != nil {
			f(RejectInfo{Stream: u.Event.Stream, Event: u.Event.ID, Class: rejectionBy(u.Why)})
		}
	}
}

// Mirror delivers the confirmed value of a foreign document that Ready.Follow
// asked for: once when it is first known (absent included), then with each
// change.
func (s *Space) Mirror(space, id string, v model.Value) {
	defer s.runner.inv.step(s)
	d := s.graph.lookup(docKey{space: space, doc: id})
	if d == nil || !d.followed {
		return // delivered after Unfollow: it may be out of date by now
	}
	if !d.loaded {
		s.graph.arrive(d, v)
		return
	}
	s.graph.change(d, v, origin{})
}

// Checkpoint returns what must be saved to bring the saved state up to Seq.
func (s *Space) Checkpoint() (replica.Checkpoint, error) { return s.replica().Checkpoint() }

// MarkStands says that the mark of a checkpoint was saved, and where it stands.
func (s *Space) MarkStands(m model.Standing) { s.replica().MarkStands(m) }

// MarkersGo names marks behind which markers of deleted documents are purged from now on.
func (s *Space) MarkersGo(behind []model.Standing) { s.replica().MarkersGo(behind) }

// SpoilCheckpoint gives a checkpoint back that could not be saved.
func (s *Space) SpoilCheckpoint(c replica.Checkpoint) { s.replica().Spoil(c) }
