package model

import "fmt"

// The bounds of what decoders accept. A stored message may come from any program with the right to publish,
// so a number in it must not decide how much memory or time its readers use. The bounds are far beyond what
// Settle writes.
const (
	// MaxNumber bounds sequences, revisions, positions, terms and counts of transactions: it is exact in the
	// numbers of every JSON reader, and additions to it do not overflow.
	MaxNumber = 1 << 53
	// MaxSlot bounds the slots of waiting events (Waiting.Slot), and with them the number of these events.
	MaxSlot = 1 << 32
	// MaxHeld bounds the events that a cursor has set aside.
	MaxHeld = 1 << 20
	// MaxMillis is the last millisecond of the year 9999, beyond which no time can be written.
	MaxMillis = 253_402_300_799_999
	// maxCount bounds counts of attempts, and of events in one commit.
	maxCount = 1 << 31
	// maxParent, maxState and maxBaggage bound a trace, which is sent in headers.
	maxParent, maxState, maxBaggage = 512, 8 << 10, 8 << 10
	// maxShort bounds, in bytes, texts that names are made of, maxLong texts for people.
	maxShort, maxLong = 1 << 10, 64 << 10
	// maxWatcher bounds, in bytes, the names of observers, of which a worker has many.
	maxWatcher = 256
)

// BoundError reports a field of a stored message with a value that no version of Settle writes.
type BoundError struct {
	Field string // its JSON name
	Value string
	Limit string
}

func (e *BoundError) Error() string {
	return fmt.Sprintf("field %q is %s: %s", e.Field, e.Value, e.Limit)
}

// bounds checks the fields of one message. The first violation counts.
type bounds struct{ err error }

func (b *bounds) fail(field string, value any, limit string, args ...any) {
	if b.err == nil {
		b.err = &BoundError{Field: field, Value: clipped(value), Limit: fmt.Sprintf(limit, args...)}
	}
}

// clipped formats a value for an error, cut to one line.
func clipped(value any) string {
	const most = 80
	text := fmt.Sprint(value)
	if s, is := value.(string); is {
		text = fmt.Sprintf("%.*q", most, s)
	}
	return text
}

func (b *bounds) number(field string, n uint64) { b.upTo(field, n, MaxNumber) }

func (b *bounds) upTo(field string, n, most uint64) {
	if n > most {
		b.fail(field, n, "%d is the largest", most)
	}
}

func (b *bounds) count(field string, n int) {
	if n < 0 || n > maxCount {
		b.fail(field, n, "0 to %d are allowed", int64(maxCount))
	}
}

func (b *bounds) millis(field string, ms int64) {
	if ms < 0 || ms > MaxMillis {
		b.fail(field, ms, "it must be a time in milliseconds since 1970, up to the year 9999")
	}
}

func (b *bounds) name(field, name string) {
	if !isName(name) {
		b.fail(field, name, "it must be a name: 1 to %d letters, digits, '-' or '_'", MaxNameLen)
	}
}

func (b *bounds) trace(t *Trace) {
	b.line("tp", t.Parent, maxParent)
	b.line("ts", t.State, maxState)
	b.line("bg", t.Baggage, maxBaggage)
}

// line checks the length of a text.
func (b *bounds) line(field, text string, most int) {
	if len(text) > most {
		b.fail(field, len(text), "%d bytes are allowed", most)
	}
}

// in adds the place that was checked to an error.
func (b *bounds) in(what string, i int) {
	if b.err != nil {
		b.err = fmt.Errorf("%s %d: %w", what, i, b.err)
	}
}

func (b *bounds) cursor(c *Cursor) {
	b.number("f", c.Floor)
	last := uint64(0)
	for _, seq := range c.Held {
		if seq <= last || seq > c.Floor {
			b.fail("h", seq, "the events that are set aside must be in order, from 1 on, and not behind %d", c.Floor)
			return
		}
		last = seq
	}
}

func (b *bounds) trying(t *Trying) {
	if t != nil {
		b.count("n", t.Tries)
		b.line("by", t.By, maxShort)
		b.line("ev", t.Event, maxShort)
	}
}

// check returns an error unless the commit is within bounds, and internally consistent.
func (c *Commit) check() error {
	var b bounds
	b.name("sp", c.Space)
	b.line("rt", c.Runtime, maxShort)
	b.line("pg", c.Program, maxShort)
	b.number("ep", c.Epoch)
	if begins := c.Takeover || c.Join; begins && c.Epoch != 0 || c.Takeover && c.Join {
		b.fail("ep", c.Epoch, "a takeover or a join begins an epoch, and is in none")
	}
	b.number("at", c.Attempt)
	b.number("trm", c.Term)
	b.trying(c.Trying)
	b.cursor(&c.Cursor)
	for i := range c.Txs {
		if b.err != nil {
			break
		}
		c.Txs[i].check(&b, c)
		b.in("transaction", i)
	}
	return b.err
}

func (tx *Tx) check(b *bounds, c *Commit) {
	b.number("n", tx.N)
	b.line("by", tx.By, maxShort)
	b.line("grp", tx.Group, maxShort)
	tx.Via.check(b)
	b.trace(&tx.Trace)
	for i := range tx.Writes {
		b.name("w", tx.Writes[i].Doc)
	}
	if rc := tx.Receipt; rc != nil {
		rc.check(b)
	}
	if tx.Later != nil {
		tx.Later.check(b)
	}
	for i := range tx.Cancels {
		b.upTo("sl", tx.Cancels[i].Slot, MaxSlot)
	}
	if len(tx.Sends) == 0 || b.err != nil {
		return
	}
	for i := range tx.Sends {
		s := &tx.Sends[i]
		s.check(b)
		if by, minted := OriginOf(s.ID); minted && by.Space != c.Space {
			b.fail("id", s.ID, "a transaction of space %s cannot send an event of another space", c.Space)
		}
		b.in("event", i)
		if b.err != nil {
			return
		}
	}
}

func (rc *Receipt) check(b *bounds) {
	b.number("ln", rc.Lane)
	b.number("pos", rc.Pos)
	b.number("trm", rc.Term)
	b.number("dp", rc.Depth)
	b.upTo("sl", rc.Slot, MaxSlot)
	b.count("n", rc.Attempts)
	b.line("ev", rc.Event, maxShort)
	b.line("o", string(rc.Outcome), maxShort)
	b.line("err", rc.Error, maxLong)
	b.line("cd", rc.Code, maxShort)
}

func (s *Send) check(b *bounds) {
	b.line("id", s.ID, maxShort)
	b.line("to", s.To, maxShort)
	b.line("st", s.Stream, maxShort)
	b.line("tm", s.Timer, maxShort)
	b.number("pos", s.Position)
	b.number("ptm", s.PrevTerm)
	b.number("bh", s.Behind)
	b.number("dp", s.Depth)
	b.upTo("sl", s.Slot, MaxSlot)
	b.millis("nb", s.NotBefore)
	b.millis("ex", s.Expires)
	b.trace(&s.Trace)
}

func (w *Waiting) check(b *bounds) {
	b.line("id", w.ID, maxShort)
	b.line("st", w.Stream, maxShort)
	b.line("tm", w.Timer, maxShort)
	b.upTo("sl", w.Slot, MaxSlot)
	b.number("ln", w.Lane)
	b.number("pos", w.Position)
	b.number("trm", w.Term)
	b.number("dp", w.Depth)
	b.number("sq", w.Seq)
	b.count("i", w.Nth)
	b.millis("nb", w.NotBefore)
	b.millis("ex", w.Expires)
	b.trace(&w.Trace)
}

func (m *Mark) check() error {
	var b bounds
	b.number("ep", m.Epoch)
	b.number("trm", m.Term)
	b.cursor(&m.Cursor)
	b.count("bar", m.WithoutReceipt)
	b.trying(m.Trying)
	b.number("tryep", m.Tried)
	b.number("fst", m.First)
	b.markPosition("bef", m.Before)
	for _, s := range m.Purged {
		b.markPosition("pur", s)
	}
	b.number("flr", m.Floor)
	m.Positions.check(&b)
	for i := range m.Own {
		if b.err != nil {
			break
		}
		m.Own[i].check(&b)
		b.in("event", i)
	}
	return b.err
}

func (b *bounds) markPosition(field string, s MarkPosition) {
	b.number(field, s.Rev)
	b.number(field, s.Seq)
}

func (p *Positions) check(b *bounds) {
	for _, of := range []map[string]uint64{p.Inbound, p.Outbound, p.OutTerms} {
		for _, n := range of { // any order: each has the same bound
			b.number("in", n)
		}
	}
	for _, of := range []map[string][]uint64{p.InTerms, p.InAgain} {
		for _, list := range of { // any order: each has the same bound
			b.upTo("intrm", uint64(len(list)), 2*maxTerms)
			for _, n := range list {
				b.number("intrm", n)
			}
		}
	}
}

// check returns an error unless the letter is within bounds.
func (d *DeadLetter) check() error {
	var b bounds
	b.line("space", d.Space, maxShort)
	b.line("stream", d.Stream, maxShort)
	b.line("event", d.Event, maxShort)
	b.line("outcome", string(d.Outcome), maxShort)
	b.line("error", d.Error, maxLong)
	b.line("lost", d.Lost, maxLong)
	b.count("attempts", d.Attempts)
	b.number("lane", d.Lane)
	b.number("commit", d.Commit)
	b.trace(&d.Trace)
	return b.err
}

func (a *Ahead) check() error {
	var b bounds
	b.number("up_to", a.UpTo)
	for _, s := range a.Aside {
		b.name("space", s.Space)
		b.number("done", s.Done)
		b.number("last", s.Last)
	}
	return b.err
}

const (
	// maxPartitions is more than a deployment can have.
	maxPartitions = 1 << 12
	maxWeight     = 1e6
	// maxLimits is more than a member announces.
	maxLimits = 1 << 10
)

// Check returns an error unless the announcement is within bounds.
func (m *Member) Check() error {
	var b bounds
	b.name("id", m.ID)
	b.number("beat", m.Beat)
	if m.Weight < 0 || m.Weight > maxWeight {
		b.fail("weight", m.Weight, "0 to %g are allowed", maxWeight)
	}
	b.partitions("holds", m.Holds)
	b.partitions("wants", m.Wants)
	b.upTo("done", uint64(len(m.Done)), maxPartitions)
	for _, seq := range m.Done {
		b.number("done", seq)
	}
	b.upTo("full", uint64(len(m.Full)), maxPartitions)
	for i := range m.Full {
		b.partitions("full", []int{m.Full[i].Partition})
		b.line("full", m.Full[i].Space, maxShort)
		b.count("full", m.Full[i].Waiting)
	}
	b.upTo("limits", uint64(len(m.Limits)), maxLimits)
	for _, l := range m.Limits {
		b.line("limits", l.Name, maxShort)
		b.count("limits", l.Want)
		b.count("limits", l.Claim)
	}
	for field, text := range map[string]string{ // any order: one that is too long is enough
		"role": m.Role, "life": m.Life, "program": m.Program, "host": m.Host, "version": m.Version, "connection": m.Connection,
	} {
		b.line(field, text, maxShort)
	}
	return b.err
}

func (b *bounds) partitions(field string, list []int) {
	b.upTo(field, uint64(len(list)), maxPartitions)
	for _, p := range list {
		if p < 0 || p >= maxPartitions {
			b.fail(field, p, "it must be the number of a partition")
		}
	}
}

func (l *Lease) check() error {
	var b bounds
	b.line("watcher", l.Watcher, maxWatcher)
	return b.err
}
