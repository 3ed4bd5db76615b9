package simkit

import (
	"fmt"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
	"github.com/settlehq/settle/space"
)

// Space is one space of a world, with its log and its lane.
type Space struct {
	w       *World
	name    string
	program *space.Program
	core    *space.Space
	due     bool
	// wake and dueAt are when the core wants to be called again, 0 for never.
	wake  time.Duration
	dueAt int64

	log []model.LogEntry
	// saved is the last checkpoint, with the observations.
	saved        model.SpaceState
	observations map[string]space.Observation
	lane         []model.Event
	sent         map[key]model.Value // payloads of the events from outside
	unawaited    map[key]bool        // those of sent whose ends the test does not see
	receipts     map[key]model.Receipt
	failures     map[key]error  // of handlers, until their receipts are there
	panics       map[key][]byte // of handlers: their stacks
	watches      []*Watch
	sentDirectly string // the last event that a transaction without an event has sent
	mirrors      map[string]*mirrored
	absences     []absence       // of documents here
	docs         map[string]bool // the documents ever written

	runs map[string]*count
	// ran lists the nodes that have run since the last mark, in order.
	ran []string
	// outside is Stats.OutsideWrites after the last run.
	outside uint64
	handled int
	// gated are the nodes that the last pass has held back, waves the number of such passes in a row.
	gated []string
	waves int
}

// key identifies an event within its space.
type key struct{ stream, id string }

// count counts the runs of a node or handler.
type count struct {
	function string // its kind, its name and its space
	since    int    // the last mark
}

func newSpace(w *World, name string, p *space.Program) *Space {
	return &Space{
		w: w, name: name, program: p, observations: map[string]space.Observation{},
		sent: map[key]model.Value{}, unawaited: map[key]bool{}, receipts: map[key]model.Receipt{}, failures: map[key]error{}, panics: map[key][]byte{},
		mirrors: map[string]*mirrored{}, docs: map[string]bool{}, runs: map[string]*count{},
	}
}

// Name returns the name of the space.
func (s *Space) Name() string { return s.name }

// Program returns the program of the space.
func (s *Space) Program() *space.Program { return s.program }

// World returns the world of the space.
func (s *Space) World() *World { return s.w }

// rehearsals is how often the first runs of a function are repeated: a random choice between two
// alternatives escapes the checks of the first three runs with a probability of 2^-12.
const rehearsals = 4

// load creates the core from the saved state and the log, and takes over the space.
func (s *Space) load() error {
	r, err := replica.Load(s.name, s.saved)
	if err != nil {
		return err
	}
	for i := range s.log {
		if s.log[i].Seq <= r.Seq {
			continue
		}
		c, err := model.DecodeCommit(s.log[i].Data)
		if err != nil {
			return err
		}
		if _, err := r.Apply(s.log[i].Seq, c); err != nil {
			return err
		}
	}
	cfg := s.w.opts.Space
	cfg.Space, cfg.Runtime, cfg.CheckIdempotency = s.name, "kit", !s.w.opts.Lenient
	if cfg.Rehearsals == 0 {
		cfg.Rehearsals = rehearsals
	}
	cfg.Trace = s.hooks()
	if p, perr := s.w.programs(s.name); perr != nil {
		return perr
	} else if p != nil {
		s.program = p // possibly another version
	}
	if s.core, err = space.New(cfg, s.program, r); err != nil {
		return err
	}
	s.core.Rehydrate(s.known())
	s.core.Recorder().RecordRuns(true)
	s.core.Recorder().RecordTriggers(true)
	s.core.OnError(s.noteError)
	if s.w.opts.Log != nil {
		s.core.OnConsole(s.w.opts.Log)
	}
	s.outside, s.wake, s.dueAt = 0, 0, 0
	s.core.TakeOver()
	s.offerAfter(s.core.ReadLaneAfter())
	s.w.touch(s)
	return nil
}

// step settles the space once and does what the core asks for.
func (s *Space) step() error {
	s.core.Clock(s.w.now)
	r := s.core.Settle(s.w.elapsed())
	s.wake, s.dueAt = r.Wake, r.Due
	s.noteGated()
	if r.Append != nil {
		if err := s.append(r.Append); err != nil {
			return err
		}
		s.w.touch(s)
	}
	for _, ref := range r.Follow {
		if err := s.w.follow(s, ref); err != nil {
			return err
		}
	}
	for _, ref := range r.Unfollow {
		s.w.unfollow(s, ref)
	}
	if r.Refill != nil {
		s.offerAfter(r.Refill.After)
		s.w.touch(s)
	}
	if r.More {
		s.w.touch(s)
	}
	s.settleAbsences()
	s.updateWatches()
	return nil
}

// append puts a commit into the log, which has no other writer and so never refuses it.
func (s *Space) append(a *space.Append) error {
	w := s.w
	w.seq++
	s.log = append(s.log, model.LogEntry{Space: s.name, Seq: w.seq, Prev: a.Expect, ID: a.Commit.ID(), Data: a.Data})
	var sends []model.Send
	var notices []model.Event
	var written []string
	via := map[string]*model.Trail{} // by document
	for i := range a.Commit.Txs {
		tx := &a.Commit.Txs[i]
		sends = append(sends, tx.Sends...)
		if n := len(tx.Sends); tx.By == byTest && n > 0 {
			s.sentDirectly = tx.Sends[n-1].ID
			w.byTest[s.sentDirectly] = true
		}
		for j := range tx.Writes {
			written = append(written, tx.Writes[j].Doc)
			via[tx.Writes[j].Doc] = tx.Via
		}
		if s.makes(tx) {
			w.exist(s)
		}
		if tx.Receipt != nil {
			notices = append(notices, s.end(tx)...)
		}
	}
	if err := s.core.Confirm(w.seq); err != nil {
		return fmt.Errorf("space %s: %w", s.name, err)
	}
	for i := range sends {
		if sends[i].To != s.name {
			w.deliver(sends[i].Event())
		}
	}
	for _, n := range notices {
		w.deliver(n)
	}
	for _, doc := range written {
		s.docs[doc] = true
		s.deliverDocument(doc, via[doc])
	}
	return nil
}

// offerAfter offers lane events after a place to the core until there is no room.
func (s *Space) offerAfter(after uint64) {
	for i := range s.lane {
		if s.lane[i].Lane > after && !s.core.Offer(s.lane[i]) {
			return
		}
	}
}

// wakes returns when the space must be settled again; false if only an input requires it.
func (s *Space) wakes() (time.Time, bool) {
	var at time.Time
	if s.wake > 0 {
		at = s.w.start.Add(s.wake)
	}
	if s.dueAt > 0 {
		if due := time.UnixMilli(s.dueAt).In(s.w.start.Location()); at.IsZero() || due.Before(at) {
			at = due
		}
	}
	return at, !at.IsZero()
}
