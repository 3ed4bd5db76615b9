package history

import (
	"maps"
	"strings"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// Log checks the next commit of a partition's log.
func (c *Checker) Log(partition int, e model.LogEntry) {
	commit, err := model.DecodeCommit(e.Data)
	if err != nil {
		c.violate(Broken, "log %d, sequence %d: %v", partition, e.Seq, err)
		return
	}
	s := c.spaces[e.Space]
	if s == nil || commit.Space != e.Space || model.PartitionOf(e.Space, c.partitions) != partition {
		c.violate(Broken, "log %d, sequence %d: a commit of %s under %s", partition, e.Seq, commit.Space, e.Space)
		return
	}
	c.count(e, commit)
	c.takeover(partition, s, e, commit)
	c.fence(s, e, commit)
	changed, err := s.rep.Apply(e.Seq, commit)
	if err != nil {
		c.violate(Broken, "%v", err)
		return
	}
	for i := range commit.Txs {
		c.tx(s, e, commit, &commit.Txs[i])
	}
	for _, doc := range changed {
		if c.watched[docKey{s.name, doc}] {
			s.texts[doc] = append(s.texts[doc], version{e.Seq, Hash(s.rep.Doc(doc).Value.String())})
		}
	}
}

func (c *Checker) count(e model.LogEntry, commit *model.Commit) {
	n := &c.Counts
	n.Commits++
	if commit.Takeover {
		n.Takeovers++
	}
	if commit.Trying != nil && !commit.Trying.Back {
		n.Marked++
	}
	if n.First.IsZero() || e.Stored.Before(n.First) {
		n.First = e.Stored
	}
	if e.Stored.After(n.Last) {
		n.Last = e.Stored
	}
}

// fence checks that a commit is made by the worker that took the space over last, and that its
// transactions are numbered upwards.
func (c *Checker) fence(s *spaceHistory, e model.LogEntry, commit *model.Commit) {
	if commit.Takeover {
		s.lastN = 0
	} else if commit.Epoch != s.rep.Epoch || commit.Runtime != s.rep.Owner {
		c.violate(Fencing, "%s, sequence %d: a commit of %s, epoch %d, while %s owns the space, epoch %d",
			s.name, e.Seq, commit.Runtime, commit.Epoch, s.rep.Owner, s.rep.Epoch)
	}
	if e.Prev != s.rep.Seq {
		c.violate(Fencing, "%s, sequence %d: appended behind %d, and stands behind %d", s.name, e.Seq, e.Prev, s.rep.Seq)
	}
	if old, now := s.rep.Cursor.Floor, commit.Cursor.Floor; now < old {
		c.violate(Fencing, "%s, sequence %d: the cursor goes back from %d to %d", s.name, e.Seq, old, now)
	}
	for i := range commit.Txs {
		if n := commit.Txs[i].N; n <= s.lastN {
			c.violate(Fencing, "%s, sequence %d: transaction %d after %d", s.name, e.Seq, n, s.lastN)
		} else {
			s.lastN = n
		}
	}
}

// tx checks a transaction.
func (c *Checker) tx(s *spaceHistory, e model.LogEntry, commit *model.Commit, tx *model.Tx) {
	c.cancelled(s, e, tx)
	if tx.Later != nil {
		c.later(s, e, tx.Later)
		return
	}
	if Ends(tx) {
		c.reports(s, e, tx)
		return
	}
	stream, handling := receipts.Stream(tx.By)
	if !handling || tx.Receipt == nil {
		c.computed(s, e, tx, handling)
		return
	}
	c.countReceipt(e, tx.Receipt)
	depth, fresh := c.whence(s, e, stream, tx.Receipt)
	if fresh {
		c.effects(s, e, stream, depth, tx)
	}
	c.sends(s, e, tx, commit)
	c.letterDue(s, stream, tx)
}

// cancelled records waiting events that are cancelled: only a timer that was set again may be.
func (c *Checker) cancelled(s *spaceHistory, e model.LogEntry, tx *model.Tx) {
	for _, x := range tx.Cancels {
		if _, open := s.own[x.ID]; !open || s.timers[Alarm] != x.ID {
			c.violate(Lost, "%s, sequence %d: %s does not wait any more, and no timer has taken its place", s.name, e.Seq, x.ID)
			continue
		}
		delete(s.own, x.ID)
		delete(s.timers, Alarm)
		c.Counts.Superseded++
	}
}

// later records an event of another space that arrived before its time.
func (c *Checker) later(s *spaceHistory, e model.LogEntry, w *model.Waiting) {
	if w.Position == 0 {
		c.violate(Unsent, "%s, sequence %d: %s %s came by the lane, and waits", s.name, e.Seq, w.Stream, w.ID)
		return
	}
	if c.crossed(s, e, w.Stream, &model.Receipt{Event: w.ID, Pos: w.Position}) {
		s.waits[w.ID] = w.NotBefore
	}
}

// early checks that an event is not handled before its time.
func (c *Checker) early(s *spaceHistory, e model.LogEntry, id string, notBefore int64) {
	if notBefore == 0 {
		return
	}
	c.Counts.Waited++
	if is := e.Stored.Add(c.Skew).UnixMilli(); is < notBefore {
		c.violate(Early, "%s, sequence %d: %s was handled %d ms before its time", s.name, e.Seq, id, notBefore-is)
	}
}

// computed checks a transaction of a computation.
func (c *Checker) computed(s *spaceHistory, e model.LogEntry, tx *model.Tx, handling bool) {
	node, ok := strings.CutPrefix(tx.By, "compute ")
	if handling || !ok || len(tx.Sends) > 0 {
		c.violate(Effects, "%s, sequence %d: a transaction of %q without a receipt", s.name, e.Seq, tx.By)
		return
	}
	if !c.wanted(s.name, node) {
		c.violate(Unwatched, "%s, sequence %d: %s was computed without an observer", s.name, e.Seq, node)
	}
}

func (c *Checker) countReceipt(e model.LogEntry, rc *model.Receipt) {
	n := &c.Counts
	n.Handled++
	switch rc.Outcome {
	case model.Failed:
		n.Failed++
	case model.Refused:
		n.Refused++
	}
	if rc.Attempts > 1 {
		n.Retried++
	}
	minute := int(max(e.Stored.Sub(n.First), 0).Minutes())
	for len(n.PerMinute) <= minute {
		n.PerMinute = append(n.PerMinute, 0)
	}
	n.PerMinute[minute]++
}

// whence checks that the event of a receipt was sent, was not handled before, and comes in
// its order. It returns the depth that it carries, and false if the receipt is not to be
// looked at any further.
func (c *Checker) whence(s *spaceHistory, e model.LogEntry, stream string, rc *model.Receipt) (depth int, fresh bool) {
	client, n, ofClient := ParseEventID(rc.Event)
	switch {
	case ofClient:
		c.Counts.FromClients++
		return 0, c.fromClient(s, e, stream, client, n, rc)
	case stream == model.Undelivered:
		c.Counts.Notices++
		if !s.notices[rc.Event] {
			c.violate(Duplicates, "%s, sequence %d: notice %s is not due, or was handled before", s.name, e.Seq, rc.Event)
			return 0, false
		}
		delete(s.notices, rc.Event)
		return 0, true
	case stream == Job:
		c.Counts.Jobs++
		return 0, c.worked(s, e, rc)
	case rc.Pos > 0:
		c.Counts.Crossed++
		if at, waited := s.waits[rc.Event]; waited {
			delete(s.waits, rc.Event)
			c.early(s, e, rc.Event, at)
			return unknownDepth, true
		}
		return unknownDepth, c.crossed(s, e, stream, rc)
	}
	c.Counts.Own++
	follow, open := s.own[rc.Event]
	if !open {
		rule := Unsent
		if s.done[rc.Event] {
			rule = Duplicates
		}
		c.violate(rule, "%s, sequence %d: follow-up %s %s is not waiting", s.name, e.Seq, stream, rc.Event)
		return 0, false
	}
	delete(s.own, rc.Event)
	c.early(s, e, rc.Event, follow.notBefore)
	if s.timers[Alarm] == rc.Event {
		delete(s.timers, Alarm)
	}
	if len(s.done) > 4096 {
		clear(s.done) // the order of transactions reveals duplicates of earlier ones
	}
	s.done[rc.Event] = true
	return follow.depth, true
}

// reports records the event by which a space reports the end of a task to itself.
func (c *Checker) reports(s *spaceHistory, e model.LogEntry, tx *model.Tx) {
	if len(tx.Writes) > 0 || len(tx.Sends) != 1 || tx.Sends[0].To != s.name || tx.Sends[0].Stream != Job {
		c.violate(Effects, "%s, sequence %d: %q has %d writes and %d sends", s.name, e.Seq, tx.By, len(tx.Writes), len(tx.Sends))
		return
	}
	key, _ := tx.Sends[0].Payload.Get("key").AsString()
	s.reported[tx.Sends[0].ID] = key
}

// worked checks an event that reports the end of a task. It may arrive more than once, but only the
// first report has an effect.
func (c *Checker) worked(s *spaceHistory, e model.LogEntry, rc *model.Receipt) bool {
	key, own := s.reported[rc.Event]
	if !own {
		key = JobKey(rc.Event)
	}
	delete(s.reported, rc.Event)
	ignored := !rc.Result.Get("ignored").IsAbsent()
	switch {
	case ignored && (s.ended[key] || s.jobs[key]):
		if s.jobs[key] {
			c.violate(Effects, "%s, sequence %d: the end of task %s is ignored: %v", s.name, e.Seq, key, rc.Result)
		}
		return false
	case !s.jobs[key]:
		c.violate(Duplicates, "%s, sequence %d: %s: no such task is pending", s.name, e.Seq, rc.Event)
		return false
	}
	delete(s.jobs, key)
	s.ended[key] = true
	return true
}

// fromClient checks the order of a client's events.
func (c *Checker) fromClient(s *spaceHistory, e model.LogEntry, stream string, client int, n uint32, rc *model.Receipt) bool {
	space, _ := c.work.SpaceNumber(s.name)
	h := s.client(client)
	if client >= c.work.Clients || c.work.Stream(client, space, n) != stream || int(n) > len(h.laned) || h.laned[n-1] == 0 {
		c.violate(Unsent, "%s, sequence %d: %s %s was never in the lane", s.name, e.Seq, stream, rc.Event)
		return false
	}
	if rc.Lane != h.laned[n-1] {
		c.violate(OutOfOrder, "%s, sequence %d: %s stands in the lane at %d, its receipt says %d", s.name, e.Seq, rc.Event, h.laned[n-1], rc.Lane)
	}
	switch {
	case n > h.last:
		for k := h.last + 1; k < n; k++ {
			h.late[k] = true // lost, unless it comes yet
		}
		h.last = n
	case h.late[n]:
		delete(h.late, n)
		if h.risky[n] { // it was lost, and sent again
			break
		}
		c.violate(OutOfOrder, "%s, sequence %d: %s was handled after number %d", s.name, e.Seq, rc.Event, h.last)
	default:
		c.violate(Duplicates, "%s, sequence %d: %s was handled before", s.name, e.Seq, rc.Event)
		return false
	}
	if rc.Lane <= s.lastLane {
		c.violate(OutOfOrder, "%s, sequence %d: %s of lane sequence %d was handled after %d", s.name, e.Seq, rc.Event, rc.Lane, s.lastLane)
	}
	s.lastLane = max(s.lastLane, rc.Lane)
	if a, told := h.seen[n]; told {
		if is := (Answer{rc.Outcome, Hash(rc.Result.String())}); a != is && !h.unsure[n] {
			c.violate(Answers, "%s, sequence %d: %s: a client received %v, the log has %v", s.name, e.Seq, rc.Event, a, is)
		}
		delete(h.seen, n)
	}
	return true
}

// crossed checks the order of events from another space. Whether that space has sent them before is
// checked at the end, when all logs have been read.
func (c *Checker) crossed(s *spaceHistory, e model.LogEntry, stream string, rc *model.Receipt) (fresh bool) {
	tx, _ := model.OriginOf(rc.Event)
	took := s.in[tx.Space]
	switch next := uint64(len(took) + 1); {
	case rc.Pos < next:
		c.violate(Duplicates, "%s, sequence %d: %s, number %d from %s, was handled before", s.name, e.Seq, rc.Event, rc.Pos, tx.Space)
		return false
	case rc.Pos > next:
		c.violate(OutOfOrder, "%s, sequence %d: number %d from %s (%s) was handled after %d", s.name, e.Seq, rc.Pos, tx.Space, rc.Event, next-1)
		for uint64(len(took)+1) < rc.Pos {
			took = append(took, tookEvent{})
		}
	}
	s.in[tx.Space] = append(took, tookEvent{key: Hash(stream + " " + rc.Event), at: e.Stored.UnixNano()})
	return true
}

// unknownDepth is the depth of an event from another space, whose log may not have been read yet.
const unknownDepth = -1

// effects checks the effects of a handling.
func (c *Checker) effects(s *spaceHistory, e model.LogEntry, stream string, depth int, tx *model.Tx) {
	rc := tx.Receipt
	switch {
	case rc.Outcome == model.Failed && strings.Contains(rc.Error, lostText):
		c.Counts.GivenUp++
	case !allowed(stream, rc):
		c.violate(Effects, "%s, sequence %d: %s %s is %s: %s", s.name, e.Seq, stream, rc.Event, rc.Outcome, rc.Error)
	}
	if rc.Outcome != model.Handled {
		if len(tx.Writes) > 0 || len(tx.Sends) > 0 {
			c.violate(Effects, "%s, sequence %d: %s %s is %s, and has %d writes and %d sends", s.name, e.Seq, stream, rc.Event, rc.Outcome, len(tx.Writes), len(tx.Sends))
		}
		return
	}
	s.sum = s.sum.Plus(stream, rc.Event)
	s.seen[Source(stream, rc.Event)]++
	switch stream {
	case Mark:
		s.mark = c.work.MarkOf(s.name, rc.Event)
	case Unmark:
		s.mark = model.Value{}
	case Work:
		s.jobs[rc.Event] = true
	}
	if i, _ := c.work.SpaceNumber(s.name); c.work.IsHosted(i) {
		c.Counts.HostedEvents++
	}
	if is := SumOf(rc.Result); is != s.sum && stream != Job { // the return value of Done is no result
		c.violate(Sums, "%s, sequence %d: %s %s saw %+v, the log before it adds up to %+v", s.name, e.Seq, stream, rc.Event, is, s.sum)
		s.sum = is
	}
	if depth == unknownDepth {
		depth = 0
		if stream == Hop && len(tx.Sends) > 0 {
			depth = depthOf(&tx.Sends[0]) + 1
			origin, _ := model.OriginOf(rc.Event)
			took := s.in[origin.Space]
			took[len(took)-1].onward = uint8(depth) // checked at the end
		}
	}
	want := c.work.Sends(s.name, stream, rc.Event, depth)
	if len(want) != len(tx.Sends) {
		c.violate(Effects, "%s, sequence %d: %s %s has sent %d events, not %d", s.name, e.Seq, stream, rc.Event, len(tx.Sends), len(want))
		return
	}
	for i, w := range want {
		send := &tx.Sends[i]
		is := Sent{To: send.To, Stream: send.Stream, Depth: depthOf(send), Timer: send.Timer, After: w.After}
		if waits := send.NotBefore > 0; is != w || waits != (w.After > 0) {
			c.violate(Effects, "%s, sequence %d: %s %s has sent %+v, not %+v", s.name, e.Seq, stream, rc.Event, is, w)
		}
	}
}

func depthOf(s *model.Send) int {
	d, _ := s.Payload.Get("d").AsInt()
	return int(d)
}

// allowed reports whether an event of a stream may have an outcome.
func allowed(stream string, rc *model.Receipt) bool {
	switch stream {
	case Fail:
		return rc.Outcome == model.Failed && strings.Contains(rc.Error, FailText)
	case Nobody, Nowhere:
		return rc.Outcome == model.Refused
	case Flaky:
		return rc.Outcome == model.Handled || rc.Outcome == model.Failed && strings.Contains(rc.Error, FlakyText)
	}
	return rc.Outcome == model.Handled
}

// The errors of the handlers that fail.
const (
	FailText  = "it fails on purpose"
	FlakyText = "it may pass"
	// lostText is in the receipt of an event during whose attempts three processes have died
	// (docs/adr/0016): where processes are killed all the time, this can happen by chance.
	lostText = "never came back"
)

// sends records the events that a transaction has sent.
func (c *Checker) sends(s *spaceHistory, e model.LogEntry, tx *model.Tx, commit *model.Commit) {
	epoch := commit.Epoch
	if commit.Takeover {
		epoch = e.Seq
	}
	for k := range tx.Sends {
		send := &tx.Sends[k]
		if want := (model.TxID{Space: s.name, Epoch: epoch, N: tx.N}).Event(k); send.ID != want {
			c.violate(Effects, "%s, sequence %d: a send is called %s, not %s", s.name, e.Seq, send.ID, want)
		}
		if send.To == s.name {
			s.own[send.ID] = followUp{depthOf(send), send.NotBefore}
			if send.Timer != "" {
				s.timers[send.Timer] = send.ID
			}
			continue
		}
		out := s.out[send.To]
		if send.Position != uint64(len(out)+1) {
			c.violate(Effects, "%s, sequence %d: %s is number %d to %s, after %d", s.name, e.Seq, send.ID, send.Position, send.To, len(out))
		}
		s.out[send.To] = append(out, sentEvent{Hash(send.Stream + " " + send.ID), uint8(depthOf(send)), e.Stored.UnixNano()})
		if send.Stream == Nowhere {
			s.notices[model.NoticeID(send.ID)] = true
		}
	}
}

// letterDue records that a dead letter is due.
func (c *Checker) letterDue(s *spaceHistory, stream string, tx *model.Tx) {
	if tx.Receipt.Outcome != model.Handled {
		c.dead[deadKey{s.name, stream, tx.Receipt.Event}] = true
	}
}

// wanted reports whether a node has an observer: a watch of it, or of a node that reads it.
func (c *Checker) wanted(space, node string) bool {
	if k := (docKey{space, node}); c.watched[k] || c.asked[k] {
		return true
	}
	i, ok := c.work.SpaceNumber(space)
	if !ok || node != DocView {
		return false
	}
	for back := range c.work.reach() {
		before := c.work.Space(i + c.work.Spaces - 1 - back)
		for _, doc := range []string{DocPair, DocMarked} {
			if k := (docKey{before, doc}); (doc == DocMarked || back == 0) && (c.watched[k] || c.asked[k]) {
				return true
			}
		}
	}
	return false
}

// Expect returns the content of the documents that follows from the receipts.
func (s *spaceHistory) expect() map[string]model.Value {
	seen := model.Object()
	for k, n := range maps.All(s.seen) { // any order: keys of an object
		seen, _ = seen.Set(model.Path{k}, model.Int(n))
	}
	if s.sum.N == 0 {
		return nil
	}
	return map[string]model.Value{DocSum: s.sum.Value(), DocSeen: seen, DocMark: s.mark}
}
