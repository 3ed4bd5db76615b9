package space

import (
	"fmt"
	"time"

	"github.com/settlehq/settle/lanes"
	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// Space is one space as one runtime hosts it. It is not safe for concurrent use:
// it has one owner, who calls its inputs and Settle one at a time.
type Space struct {
	cfg     Config
	program *Program
	// next is the program that is to take over, nil if there is none; told is the version
	// that the log has of this runtime.
	next *Program
	told string

	replica  *replica.Replica
	graph    *graph
	lane     *lanes.Lane
	registry *lineage.Registry
	suffix   suffix

	// epoch is the log sequence of this runtime's takeover or join, 0 while it may
	// not make transactions; takeover is the commit under way that will change that.
	epoch    uint64
	takeover *model.Commit
	// joins says that the runtime came in, or is to come in, by Attach.
	joins bool
	// frozen stops everything between a refusal and Resume.
	frozen  bool
	deposed bool
	holding bool

	head    head
	scratch []*Tx       // see begin
	handed  model.Event // what the handler sees
	// measuring is the buffer of fits.
	measuring []byte
	nested    int             // runs within runs
	seek      int32           // see freshen
	vain      map[*node]int32 // see soughtInVain
	txs       int32           // transactions begun
	now       time.Duration
	touched   []*node // ran in this pass
	spent     []*node // wanted to run again when their budget was used up
	suspects  []*node // clean by chance, in a circle that is held back
	unrest    bool    // see noteUnrest
	passes    uint64
	sweeps    uint64
	conflicts conflicts
	// rejected are the handlings that a refusal has undone, until Resume; upset says that
	// the one at the head of the lane is to be tried again.
	rejected   []rejected
	care       care
	upset      bool
	background int
	closed     bool
	wasDurable bool
	undone     []uint64
	// unsaved are the nodes whose observation is to be saved, resumable the saved ones
	// of nodes that have not been registered yet, forgotten the ids of nodes that have
	// one and have gone.
	unsaved   []*node
	forgotten []string
	// firing are the causes of the runs under way, innermost last; see takeCauses.
	firing    []*dep
	resumable map[string]*Observation
	// overran are nodes that did not return, and have not been registered yet.
	overran map[string]Overrun
	resting []*node // those that are held back for it

	inv       invariants
	hooks     hooks
	rehearsed map[string]int // see repetitions
	echo      *echoBreaker
	diagnosis *diagnosis
	recorder  recorder
	slow      autoDebounceSettings

	agenda agenda
	missed Missed
	// wall is the wall time in milliseconds since 1970, 0 if it is not known; wallBack says
	// that it has gone back.
	wall     int64
	wallBack bool
	// cronCheck says that the timers of the program's jobs are to be looked at.
	cronCheck bool

	observers map[string]*observer
	structure *structure
	stats     Stats

	out Ready
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
		cfg: cfg, program: program, replica: r,
		echo:      newEchoBreaker(echoSettings{}),
		diagnosis: newDiagnosis(diagnosisSettings{}),
		slow:      autoDebounceSettings{}.filled(),
		registry:  lineage.New(cfg.Space, r.Outbound),
		lane:      lanes.New(laneState(r), cfg.LaneLimit),
		observers: map[string]*observer{},
	}
	s.graph = newGraph(&s.cfg.Trace, &s.stats)
	s.graph.removing = s.retire
	var err error
	if s.structure, err = newStructure(); err != nil {
		return nil, err
	}
	return s, s.populate()
}

// laneState is what the log says of the lane.
func laneState(r *replica.Replica) lanes.State {
	return lanes.State{Cursor: r.Cursor, Inbound: r.Inbound, Own: r.Own}
}

// populate fills the graph with the documents and the program's nodes. Nodes start
// as never run: what is not observed stays so.
func (s *Space) populate() error {
	docs := s.replica.DocIDs()
	s.graph.expect(len(s.program.nodes), len(docs))
	for _, id := range docs {
		d, err := s.graph.ensureDoc(docKey{doc: id})
		if err != nil {
			return err
		}
		d.value = s.replica.Doc(id).Value
	}
	for i := range s.program.nodes {
		if _, err := s.graph.register(s.program.nodes[i], nil); err != nil {
			return fmt.Errorf("space %s: program %s: %w", s.cfg.Space, s.program.Name, err)
		}
	}
	s.structure.setHandlers(s.program)
	return nil
}

// TakeOver asks to become the owner: the next Ready carries a takeover commit, or, if one
// is under way, the first after that was refused. An owner has nothing to ask for, nor has
// a runtime that is attached.
func (s *Space) TakeOver() { s.enter(false) }

// Attach asks to take part beside the owner, likewise (DESIGN 8.4). A runtime that is
// attached deposes nobody and is deposed by nobody. It makes transactions like an owner;
// what keeps them apart is the compare-and-set on the head alone: whoever comes second is
// refused, integrates, and does again what is still to do.
func (s *Space) Attach() { s.enter(true) }

func (s *Space) enter(join bool) {
	if s.epoch == 0 {
		s.deposed, s.joins = false, join
		s.out.takeOver = true
	}
}

// Owned reports whether this runtime owns the space, as far as it knows.
func (s *Space) Owned() bool { return s.epoch != 0 && !s.deposed && !s.joins }

// Attached reports whether this runtime takes part beside the owner.
func (s *Space) Attached() bool { return s.epoch != 0 && s.joins }

// Deposed reports whether another runtime has taken the space over.
func (s *Space) Deposed() bool { return s.deposed }

// Seq is the log sequence up to which the confirmed state reaches.
func (s *Space) Seq() uint64 { return s.replica.Seq }

// Offer hands the space an event from its lane. It reports false if the event was
// left in the stream for want of room; Ready.Refill asks for it again.
func (s *Space) Offer(ev model.Event) bool { return s.lane.Offer(ev) }

// LeftInStream notes that the event at a lane sequence was not offered, for want
// of room on the way; Ready.Refill will ask for it.
func (s *Space) LeftInStream(lane uint64) { s.lane.LeftInStream(lane) }

// ReadLaneAfter is the lane sequence after which the space's events must be read
// and offered, so that it misses none.
func (s *Space) ReadLaneAfter() uint64 { return s.lane.ReadAfter() }

// LaneRoom is how many events can be offered now without being left in the stream.
func (s *Space) LaneRoom() int { return s.lane.Room() }

// LaneDone is the lane sequence up to which nothing is left to do, as far as it
// is confirmed (see replica.LaneDone).
func (s *Space) LaneDone() uint64 { return s.replica.LaneDone() }

// Hold makes the space finish: it starts no more transactions, but still seals
// and confirms those that are made. There is no way back.
func (s *Space) Hold() {
	s.holding = true
	s.comeBack()
}

// Settled reports whether every transaction is in the log.
func (s *Space) Settled() bool {
	return s.takeover == nil && !s.out.takeOver && s.care.mark == nil && !s.suffix.undecided()
}

// Confirm says that the append under way is in the log at seq.
func (s *Space) Confirm(seq uint64) error {
	defer s.inv.step(s)
	if s.takeover != nil {
		return s.confirmTakeover(seq)
	}
	x := s.suffix.sealed
	for i := range x.commit.Txs {
		if rc := x.commit.Txs[i].Receipt; rc != nil {
			s.stats.count(rc.Outcome)
		}
	}
	s.replica.Adopt(seq, x.commit, x.after)
	if x.commit.Program != "" {
		s.told = x.commit.Program
	}
	s.lane.Confirm(x.taken, x.commit.Cursor)
	if n := len(x.commit.Txs); n > 0 {
		s.registry.Confirm(x.commit.Txs[n-1].N)
	}
	s.suffix.confirm()
	s.confirmAgenda()
	if s.holding {
		s.comeBack()
	}
	return nil
}

func (s *Space) confirmTakeover(seq uint64) error {
	_, err := s.replica.Apply(seq, s.takeover)
	s.joins, s.told = s.takeover.Join, s.takeover.Program
	s.epoch, s.takeover, s.out.takeOver = seq, nil, false
	s.suffix.lastTx, s.suffix.attempt = 0, 0
	s.cronCheck = true
	s.takeCare()
	return err
}

// Refuse says that the append under way was refused: somebody else's commit is at
// the head. The whole suffix is undone; the space stands still until the caller
// has passed every commit after Seq to Integrate and calls Resume.
func (s *Space) Refuse() {
	defer s.inv.step(s)
	s.frozen = true
	s.undone = append(s.undone, s.suffix.undoneDirect()...)
	s.rejected = s.suffix.handlings()
	s.care.mark = nil
	s.takeover = nil
	s.endWait()
	leaning := s.suffix.takeLeaning()
	changed, runs := s.suffix.drop()
	followUps := s.registry.Cancel()
	for i := range s.rejected {
		if followUps[s.rejected[i].key.ID] {
			s.rejected[i].class = ByOrigin
		}
	}
	s.lane.Rewind(func(ev *model.Event) bool { return followUps[ev.ID] })
	s.dropAgenda()
	s.cronCheck = true
	s.stats.Refused++
	s.revert(changed, runs)
	for _, l := range leaning {
		if n := l.node; n.status == Clean && !n.removed {
			s.inv.undone(n)
			s.graph.invalidate(n, l.doc.key.String())
		}
	}
}

// revert gives documents their confirmed values back, and has the runs that are undone
// made again for the causes that they had: what made them necessary still holds, although
// nothing that they read may change any more (D07, docs/adr/0006). A node that reads what
// it alone has written gets no further cause from that (docs/adr/0008): it sees again what
// its run saw.
func (s *Space) revert(changed map[string]*node, runs []ranNode) {
	for _, id := range sortedKeys(changed) {
		s.graph.undoing = changed[id]
		s.graph.change(s.graph.known(id), s.replica.Doc(id).Value, origin{})
		s.graph.undoing = nil
	}
	for _, r := range runs {
		if !r.node.removed {
			s.inv.undone(r.node)
			r.node.ext().gate.owed = true
			s.runAgain(r.node, causes{other: r.causes})
			s.graph.regate(r.node)
		}
	}
	for _, id := range sortedKeys(changed) {
		// An output that changed and whose node is clean: it was written by another of
		// this name, which is gone, or before there was any, and the node has come to the
		// same.
		if d := s.graph.local(id); d.writer != nil && d.writer.node.status == Clean {
			s.graph.invalidate(d.writer.node, d.key.String())
		}
	}
}

// Integrate takes in commits that other runtimes have made, in log order; those that are
// known already are passed over. If an append is under way it has failed, and Refuse comes
// first. The error is model.ErrPurged if commits are missing between what is known and
// these: the space must be loaded anew.
func (s *Space) Integrate(entries ...model.LogEntry) error {
	defer s.inv.step(s)
	before := s.replica.Seq
	for i := range entries {
		if err := s.integrate(&entries[i]); err != nil {
			return err
		}
	}
	if s.replica.Seq > before {
		st := laneState(s.replica)
		st.Waits = s.stillWaits
		s.lane.Integrate(st) // once for all: it costs what the lane holds
		s.recheckHead()
	}
	return nil
}

func (s *Space) integrate(e *model.LogEntry) error {
	if e.Seq <= s.replica.Seq {
		return nil
	}
	if s.suffix.undecided() {
		return fmt.Errorf("space %s, log sequence %d: own transactions are undecided, which must be refused before a foreign commit is integrated", s.cfg.Space, e.Seq)
	}
	if err := e.Follows(s.replica.Seq); err != nil {
		return err
	}
	c, err := model.DecodeCommit(e.Data)
	if err != nil {
		return fmt.Errorf("space %s, log sequence %d: %w", s.cfg.Space, e.Seq, err)
	}
	changed, err := s.replica.Apply(e.Seq, c)
	if err != nil {
		return err
	}
	s.noteReceipts(c)
	s.integrateAgenda(c)
	s.registry.Integrate(c)
	places := writtenIn(c)
	for _, id := range changed {
		if err := s.show(id, places[id]); err != nil {
			return err
		}
	}
	if c.Takeover && !s.joins {
		s.depose()
	}
	return nil
}

// depose ends the ownership: another runtime has taken the space over.
func (s *Space) depose() {
	s.epoch, s.deposed = 0, true
	s.endWait()
	s.conflicts, s.upset, s.care = conflicts{}, false, care{}
}

// show makes the confirmed value of a document the current one. If it is the output
// of a computation that says otherwise here, that must run again.
func (s *Space) show(id string, by *written) error {
	d, err := s.graph.ensureDoc(docKey{doc: id})
	if err != nil {
		return err
	}
	from := origin{remote: true, at: s.replica.Seq}
	if by != nil {
		from.group, from.paths = by.group, by.paths
	}
	if d.isVolatile() {
		from.paths = nil // the log does not have what was here, so more differs than was written
	}
	before := d.value
	s.graph.change(d, s.replica.Doc(id).Value, from)
	if d.writer != nil && !model.Equal(before, d.value) {
		s.graph.invalidate(d.writer.node, d.key.String())
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
	s.frozen = false
	s.endRejections()
}

// Mirror delivers the confirmed value of a foreign document that Ready.Follow
// asked for: once when it is first known (absent included), then with each
// change.
func (s *Space) Mirror(space, id string, v model.Value) {
	defer s.inv.step(s)
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

// write applies a transaction's write to the current documents and notes it for
// the commit.
func (s *Space) write(w docValue, from origin) {
	s.suffix.note(w.doc.key.doc, w.value)
	s.graph.change(w.doc, w.value, from)
}

func (s *Space) nextTx() uint64 {
	s.suffix.lastTx++
	return s.suffix.lastTx
}

func (s *Space) txID(n uint64) model.TxID {
	return model.TxID{Space: s.cfg.Space, Epoch: s.epoch, N: n}
}

// Checkpoint returns what must be saved to bring the saved state up to Seq.
func (s *Space) Checkpoint() (replica.Checkpoint, error) { return s.replica.Checkpoint() }

// MarkStands says that the mark of a checkpoint was saved, and where it stands.
func (s *Space) MarkStands(m model.Standing) { s.replica.MarkStands(m) }

// MarkersGo names marks behind which markers of deleted documents are purged from now on.
func (s *Space) MarkersGo(behind []model.Standing) { s.replica.MarkersGo(behind) }

// SpoilCheckpoint gives a checkpoint back that could not be saved.
func (s *Space) SpoilCheckpoint(c replica.Checkpoint) { s.replica.Spoil(c) }
