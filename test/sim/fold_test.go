package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/space"
)

// fold is the state of one space according to its log, updated with every commit, and checked against the rules
// of a space: handlers run again in log order, on documents with the writes of the log alone.
type fold struct {
	w     *world
	space string
	seq   uint64
	born  time.Duration // when it had its first commit
	epoch uint64
	owner string
	// joined are the attached runtimes, by epoch.
	joined map[uint64]string

	docs     map[string]model.Value
	history  map[string][]revision
	handled  map[eventKey]*handling
	cursor   model.Cursor
	lane     []*model.Message  // what the lane has of this space
	lastLane uint64            // the last event from outside that was handled
	inbound  map[string]uint64 // position per origin
	outbound map[string]uint64
	own      []model.Send // follow-ups that wait
	sends    map[string]*sending
	txs      map[uint64]uint64 // the last transaction per epoch
	runs     map[string]int
	apps     map[string]uint64            // transactions of applications
	tried    map[eventKey]map[uint64]bool // the lives that have marked an attempt at an event
	commits  int
	refusals int // of appends
	agenda   agenda
	editions editions
	edition  int // of the commit that is being taken in
	clerk    *clerk
	limited  limited
	ownSeq   uint64 // the last commit of the owner
}

// revision is a value that a document had from a log sequence on.
type revision struct {
	seq      uint64
	value    model.Value
	attached string // the runtime that has written it, if it is an attached one
}

type handling struct {
	seq  uint64
	at   time.Duration
	rc   *model.Receipt
	lane uint64 // its place in the lane, also if it has waited since
	// sends is what its handling has sent.
	sends []model.Send
}

type sending struct {
	seq  uint64
	at   time.Duration
	send model.Send
}

func newFold(w *world, space string) *fold {
	f := &fold{
		w: w, space: space, joined: map[uint64]string{},
		docs: map[string]model.Value{}, history: map[string][]revision{}, handled: map[eventKey]*handling{},
		inbound: map[string]uint64{}, outbound: map[string]uint64{}, sends: map[string]*sending{},
		txs: map[uint64]uint64{}, runs: map[string]int{}, apps: map[string]uint64{}, tried: map[eventKey]map[uint64]bool{},
		agenda: newAgenda(), editions: editions{}, limited: newLimited(),
	}
	f.clerk = newClerk(f)
	return f
}

func (f *fold) wrong(check, format string, args ...any) {
	f.w.violate(check, "space %s at %d: %s", f.space, f.seq, fmt.Sprintf(format, args...))
}

// take applies the commit that has just been appended.
func (f *fold) take(a *model.Append, c *model.Commit, seq uint64) {
	if a.Expect != f.seq {
		f.wrong("chain", "%s was appended behind %d", a.ID, a.Expect)
	}
	if f.seq == 0 {
		f.born = f.w.story.now()
	}
	f.seq = seq
	f.commits++
	f.checkEpoch(c)
	f.edition = f.editions.take(f, c)
	f.agenda.nth = 0
	for i := range c.Txs {
		f.transaction(c, &c.Txs[i])
	}
	f.advance(c)
}

// checkEpoch: the author of a commit is the runtime that took the space over last, or one that has joined.
func (f *fold) checkEpoch(c *model.Commit) {
	switch {
	case c.Takeover:
		f.epoch, f.owner = f.seq, c.Runtime
		f.awakes(c)
		f.wokenForTask()
		f.noteTakeover(c)
	case c.Join:
		f.joined[f.seq] = c.Runtime
	case c.Epoch == f.epoch && c.Runtime == f.owner:
		f.ownSeq = f.seq
	case f.joined[c.Epoch] == c.Runtime && c.Runtime != "":
		f.w.count("commits of an attached runtime")
	default:
		f.wrong("epoch", "commit of %s under %d, but %s owns it since %d", c.Runtime, c.Epoch, f.owner, f.epoch)
	}
}

// attachedOf returns the runtime of a commit if it is an attached one.
func (f *fold) attachedOf(c *model.Commit) string {
	if c.Epoch == f.epoch && c.Runtime == f.owner {
		return ""
	}
	return c.Runtime
}

func (f *fold) transaction(c *model.Commit, tx *model.Tx) {
	if last := f.txs[c.Epoch]; tx.N <= last {
		f.wrong("ids", "transaction %d of epoch %d comes after %d", tx.N, c.Epoch, last)
	}
	f.txs[c.Epoch] = tx.N
	o := &oracle{f: f, docs: f.docs, edition: f.edition}
	stream, isHandling := receipts.Stream(tx.By)
	var ev *model.Event
	if isHandling {
		ev = f.event(c, stream, tx.Receipt)
		f.handled[eventKey{f.space, stream, tx.Receipt.Event}].sends = tx.Sends
	}
	after := f.applied(tx)
	told, ofRuns := ev != nil && f.w.plan.isTold(stream), ev != nil && f.w.plan.ofRuns(stream)
	if ofRuns || told {
		f.early(ev, tx.Receipt)
	}
	var was space.Task
	if told {
		key, _ := ev.Payload.Get("key").AsString()
		was = f.task(stream, key)
	}
	if ev != nil && !told && !ofRuns {
		seen, ok := after["seen"]
		if !ok {
			seen = f.docs["seen"]
		}
		o.hint = seen.Get("v")
		f.early(ev, tx.Receipt)
		if stream == "glimpse" {
			o.slowRests = f.glimpsedAtRest(after)
		}
		o.handle(stream, ev, tx.Receipt)
		f.noteHung(ev, tx.Receipt)
	}
	app, isApp := strings.CutPrefix(tx.By, "app ")
	action, isEnd := model.EndOf(tx.By)
	switch {
	case told:
		f.told(tx, ev, after)
	case ofRuns:
		f.clerk.take(c, tx, stream, ev, after)
	case ev != nil && stream == model.Undelivered && f.w.plan.has("workflows"):
		own, rest := f.withoutRuns(tx, after)
		f.compare(c, own, o, rest)
		f.clerk.take(c, tx, stream, ev, after)
	case ev != nil:
		f.compare(c, tx, o, after)
	case isHandling:
	case isApp:
		f.application(c, tx, app, after)
	case isEnd && slices.Contains(deeds, action):
		f.clerk.reportedDeed(c, tx, action)
	case isEnd:
		f.reported(c, tx, action)
	case tx.By == "cron":
	case len(tx.Sends) > 0:
		f.wrong("oracle", "%s sends", tx.By)
	}
	for doc, v := range after { // any order: each document once
		f.docs[doc] = v
		f.history[doc] = append(f.history[doc], revision{f.seq, v, f.attachedOf(c)})
	}
	if node, ok := nodeOf(tx.By); ok {
		f.computed(node)
	}
	f.cancelled(tx)
	if tx.Later != nil {
		f.setAside(c, tx)
	}
	for i := range tx.Sends {
		if tx.Sends[i].Timer == cronTimer {
			f.tick(c, tx, ev, &tx.Sends[i])
		}
		f.sent(c, tx, &tx.Sends[i], i)
	}
	f.limitsAgree(tx, after)
	if told {
		f.passed(tx, ev, &was)
	}
	f.clerk.verify()
}

func nodeOf(by string) (string, bool) {
	const prefix = "compute "
	if len(by) > len(prefix) && by[:len(prefix)] == prefix {
		return by[len(prefix):], true
	}
	return "", false
}

// applied returns the documents that a transaction writes, as they are after it.
func (f *fold) applied(tx *model.Tx) map[string]model.Value {
	after := map[string]model.Value{}
	for i := range tx.Writes {
		wr := &tx.Writes[i]
		before, ok := after[wr.Doc]
		if !ok {
			before = f.docs[wr.Doc]
		}
		v, err := wr.Apply(before)
		if err != nil {
			f.wrong("fold", "transaction %d: %v", tx.N, err)
		}
		after[wr.Doc] = v
	}
	return after
}

// event returns the event of a receipt, and checks that it was next.
func (f *fold) event(c *model.Commit, stream string, rc *model.Receipt) *model.Event {
	key := eventKey{f.space, stream, rc.Event}
	if h := f.handled[key]; h != nil {
		f.wrong("once", "%s/%s is handled again; first at %d", stream, rc.Event, h.seq)
		return nil
	}
	f.handled[key] = &handling{seq: f.seq, at: f.w.story.now(), rc: rc, lane: rc.Lane}
	if rc.Slot > 0 {
		return f.waited(c, stream, rc)
	}
	if rc.Lane == 0 {
		return f.followUp(stream, rc)
	}
	m := f.takeTurn(stream, rc.Event, rc.Lane, rc.Pos)
	if m == nil {
		return nil
	}
	if stream == model.Undelivered {
		f.w.count("notices of refused events")
	}
	ev := model.Event{Space: f.space, Stream: stream, ID: rc.Event, Lane: rc.Lane, Position: rc.Pos, Depth: m.Depth, NotBefore: m.NotBefore, Expires: m.Expires}
	if len(m.Payload) > 0 {
		var err error
		if ev.Payload, err = model.ParseValue(m.Payload); err != nil {
			ev.Invalid = err.Error()
		}
	}
	return &ev
}

// takeTurn returns the event of the lane that is handled, or begins to wait for its time, and checks
// that it was next.
func (f *fold) takeTurn(stream, id string, lane, pos uint64) *model.Message {
	i, ok := slices.BinarySearchFunc(f.lane, lane, func(m *model.Message, seq uint64) int { return cmp.Compare(m.Seq, seq) })
	if !ok || f.lane[i].ID != id || f.lane[i].Stream != stream {
		f.wrong("never sent", "%s/%s is handled as lane event %d, which it is not", stream, id, lane)
		return nil
	}
	m := f.lane[i]
	if m.Position != pos {
		f.wrong("order", "%s has position %d in its lane and %d in its receipt", id, m.Position, pos)
	}
	if pos > 0 {
		origin, _ := model.OriginOf(id)
		if f.inbound[origin.Space]++; f.inbound[origin.Space] != pos {
			f.wrong("order", "%s is handled as number %d of space %s, but is number %d", id, f.inbound[origin.Space], origin.Space, pos)
		}
	} else {
		if lane <= f.lastLane {
			f.wrong("order", "%s at lane sequence %d is handled after %d", id, lane, f.lastLane)
		}
		f.lastLane = max(f.lastLane, lane)
	}
	return m
}

// followUp: follow-ups are handled in the order in which they were sent, each after the events that were
// in the lane at that time.
func (f *fold) followUp(stream string, rc *model.Receipt) *model.Event {
	i := slices.IndexFunc(f.own, func(s model.Send) bool { return s.ID == rc.Event && s.Stream == stream })
	if i < 0 {
		f.wrong("lineage", "follow-up %s/%s is handled, and no transaction in the log has sent it", stream, rc.Event)
		return nil
	}
	s := f.own[i]
	if i > 0 {
		f.wrong("order", "follow-up %s overtakes %s", s.ID, f.own[0].ID)
	}
	if f.lastLane > s.Behind {
		f.wrong("order", "follow-up %s was queued behind %d, but %d was handled before it", s.ID, s.Behind, f.lastLane)
	}
	f.own = slices.Delete(f.own, i, i+1)
	ev := s.Event()
	return &ev
}

// sent records a send of a transaction.
func (f *fold) sent(c *model.Commit, tx *model.Tx, s *model.Send, k int) {
	epoch := c.Epoch
	if want := (model.TxID{Space: f.space, Epoch: epoch, N: tx.N}).Event(k); s.ID != want {
		f.wrong("ids", "a send has the id %s, want %s", s.ID, want)
	}
	if f.sends[s.ID] != nil {
		f.wrong("ids", "send %s was there at %d", s.ID, f.sends[s.ID].seq)
	}
	f.sends[s.ID] = &sending{f.seq, f.w.story.now(), *s}
	switch {
	case s.To == f.space && s.Slot > 0:
		f.add(c, s.Waits())
		return
	case s.To == f.space:
		f.own = append(f.own, *s)
		return
	}
	if f.outbound[s.To]++; f.outbound[s.To] != s.Position {
		f.wrong("order", "send %s to %s has position %d, want %d", s.ID, s.To, s.Position, f.outbound[s.To])
	}
}

// advance: the cursor passes handled events only.
func (f *fold) advance(c *model.Commit) {
	if c.Cursor.Floor < f.cursor.Floor {
		f.wrong("cursor", "goes back from %d to %d", f.cursor.Floor, c.Cursor.Floor)
	}
	if len(c.Cursor.Held) > 0 {
		f.w.count("events held for their predecessor")
	}
	for _, m := range f.lane {
		key := eventKey{f.space, m.Stream, m.ID}
		done := f.handled[key] != nil || f.agenda.lanes[key]
		open := m.Seq > c.Cursor.Floor || slices.Contains(c.Cursor.Held, m.Seq)
		if open == done {
			f.wrong("cursor", "event %s at lane sequence %d is handled: %v, but the cursor says %d, held %v", m.ID, m.Seq, done, c.Cursor.Floor, c.Cursor.Held)
			break
		}
	}
	f.cursor = c.Cursor
	if t := c.Trying; t != nil {
		stream, _ := receipts.Stream(t.By)
		key := eventKey{f.space, stream, t.Event}
		if f.tried[key] == nil {
			f.tried[key] = map[uint64]bool{}
		}
		if f.tried[key][c.Epoch] = true; t.Back {
			delete(f.tried[key], c.Epoch)
		}
	}
}

// valueAt returns the value that a document had at a log sequence.
func (f *fold) valueAt(doc string, seq uint64) model.Value {
	var v model.Value
	for _, r := range f.history[doc] {
		if r.seq > seq {
			break
		}
		v = r.value
	}
	return v
}

// changedAt returns the sequence of the last commit up to seq that wrote a document.
func (f *fold) changedAt(doc string, seq uint64) uint64 {
	at := uint64(0)
	for _, r := range f.history[doc] {
		if r.seq <= seq {
			at = r.seq
		}
	}
	return at
}

// ever reports whether a document has ever had a value, as far as the log says.
func (f *fold) ever(doc string, v model.Value) bool {
	return v.IsAbsent() || slices.ContainsFunc(f.history[doc], func(r revision) bool { return model.Equal(r.value, v) })
}
