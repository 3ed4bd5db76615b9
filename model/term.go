package model

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
)

// A term of a space begins with a commit by which a runtime takes the space over or joins it (docs/adr/0035). Its number is
// the time of that by the server's clock, in milliseconds since 1970, and greater than any that the log had before. So the
// terms of a log only grow, and those that follow on commits that are lost are greater than those of the lost ones.

// NoTerm stands in Send.PrevTerm for a predecessor that there is none of, or whose term is not known: no term is
// as small.
const NoTerm = 1

// NextTerm is the number of a term that begins at a time, given the one before it. The time 0 begins none.
func NextTerm(at, before uint64) uint64 {
	if at == 0 {
		return 0
	}
	return max(at, before+1)
}

// Transaction numbers begin at firstTxUnit for each millisecond of the time at which the term began, so that two terms that began
// with the same log sequence, one of them in commits that are lost, name no transaction alike; after half a year they may.
const (
	firstTxUnit  = 1 << 8
	firstTxMilli = 1 << 34
)

// BeforeFirstTx is the number below that of the first transaction of the epoch that began with a term.
func BeforeFirstTx(term uint64) uint64 { return term % firstTxMilli * firstTxUnit }

// Sent is the position that was given out last to a target, and the term in which it was.
type Sent struct{ Position, Term uint64 }

// maxTerms bounds how many terms of an origin are remembered.
const maxTerms = 4

// TermStart says from which position on a space has handled what an origin has sent in a term. Term 0 stands for
// events of which the term is not known: a version that has no terms has sent or released them.
type TermStart struct {
	Term, First uint64
	// Lost is the highest position that was handled of earlier terms, if that is not below First: the commits that had sent
	// First to Lost were lost, and the origin gives those positions out again.
	Lost uint64
}

// Received is what a space has handled of the events of one origin. The slice is never changed, so that copies
// may share it.
type Received struct {
	Position uint64
	// Terms are the last few terms, in their order.
	Terms []TermStart
}

// Verdict says what a position of an origin is to a space.
type Verdict uint8

// Verdicts of Received.Judge.
const (
	// InTurn: it is the next one.
	InTurn Verdict = iota
	// Early: one before it has to come first.
	Early
	// Repetition: it has had its turn.
	Repetition
	// Reissue: it is the next one, and others have had its turn that are lost to the origin.
	Reissue
	// Conflict: it is of a term before the last one that was handled, and has not had its turn. The commit that has sent it
	// is lost, or the server's clock was set back.
	Conflict
)

// LastTerm is the term of the last event that was handled, 0 if that is not known.
func (r *Received) LastTerm() uint64 { return r.last().Term }

func (r *Received) last() TermStart {
	if n := len(r.Terms); n > 0 {
		return r.Terms[n-1]
	}
	return TermStart{}
}

// termOf is the term in which a position was handled that is not above Position; 0 if that is not known.
func (r *Received) termOf(position uint64) uint64 {
	for _, t := range slices.Backward(r.Terms) {
		if t.First <= position {
			return t.Term
		}
	}
	return 0
}

// Judge says what a position is, given the term in which it was sent and that of the event before it, 0 for the
// same one. Positions of one log follow each other, each term on an earlier one; so what follows on a position that was
// handled, in a later term, takes the place of all behind that.
func (r *Received) Judge(position, term, prevTerm uint64) Verdict {
	last := r.last()
	switch {
	case term == 0 || last.Term == 0:
		return r.byPosition(position)
	case term < last.Term:
		return r.ofEarlierTerm(position, term)
	case term == last.Term && position < last.First:
		return Conflict
	case term == last.Term:
		return r.byPosition(position)
	}
	if prevTerm == 0 {
		prevTerm = term
	}
	switch {
	case prevTerm > last.Term || position > r.Position+1:
		return Early
	case position == r.Position+1:
		return InTurn
	}
	return Reissue
}

func (r *Received) byPosition(position uint64) Verdict {
	switch {
	case position <= r.Position:
		return Repetition
	case position == r.Position+1:
		return InTurn
	}
	return Early
}

func (r *Received) ofEarlierTerm(position, term uint64) Verdict {
	first := r.Terms[0]
	switch {
	case term < first.Term || position < first.First:
		return Repetition // it was sent before anything that is remembered
	case position > r.Position:
		return Conflict
	}
	if handled := r.termOf(position); handled == term || handled == 0 {
		return Repetition
	}
	return Conflict
}

// Take notes that a position was handled. One that cannot have been the next, because a commit says so again or it ended as a
// Conflict, changes nothing. It reports whether anything has changed.
func (r *Received) Take(position, term uint64) bool {
	last := r.last()
	switch {
	case term == last.Term || term == 0 && position <= r.Position || last.Term == 0 && position <= r.Position:
		if position <= r.Position {
			return false
		}
		r.Position = position
	case term == 0:
		r.begin(TermStart{First: position})
	case term > last.Term:
		r.begin(TermStart{Term: term, First: position})
	default:
		return false
	}
	return true
}

// begin notes the first position of a term, and forgets what it takes the place of.
func (r *Received) begin(t TermStart) {
	if t.First <= r.Position {
		t.Lost = r.Position
	}
	var kept []TermStart
	for _, was := range r.Terms {
		if was.First < t.First {
			kept = append(kept, was)
		} else if was.Lost >= t.First {
			t.Lost = max(t.Lost, was.Lost)
		}
	}
	kept = append(kept, t)
	r.Position, r.Terms = t.First, kept[max(len(kept)-maxTerms, 0):]
}

// Steps reports whether r is one position further than o, in the same term.
func (r *Received) Steps(o *Received) bool {
	return r.Position == o.Position+1 && len(r.Terms) == len(o.Terms) && r.last() == o.last()
}

// After reports whether r is further than o: what is known of two of a space, the further one holds.
func (r *Received) After(o *Received) bool {
	a, b := r.highest(), o.highest()
	return a > b || a == b && r.Position > o.Position
}

func (r *Received) highest() (term uint64) {
	for _, t := range r.Terms {
		term = max(term, t.Term)
	}
	return term
}

// Numbers are the terms as they are stored: three numbers for each.
func (r *Received) Numbers() []uint64 {
	var list []uint64
	for _, t := range r.Terms {
		list = append(list, t.Term, t.First, t.Lost)
	}
	return list
}

// ReceivedOf is the inverse of Numbers.
func ReceivedOf(position uint64, numbers []uint64) Received {
	r := Received{Position: position}
	for ; len(numbers) >= 3; numbers = numbers[3:] {
		r.Terms = append(r.Terms, TermStart{Term: numbers[0], First: numbers[1], Lost: numbers[2]})
	}
	return r
}

// Reissued are positions that an origin has given out again: events of earlier terms than Term have had the turns from First
// to Last, and the commits that had sent them are lost.
type Reissued struct {
	Origin      string
	Term        uint64
	First, Last uint64
}

// Concerns reports whether an event was sent under one of those positions before they were given out again.
func (of *Reissued) Concerns(ev *Event) bool {
	return ev.Position >= of.First && ev.Position <= of.Last && ev.Position > 0 && ev.Term < of.Term && ev.Origin() == of.Origin
}

// Reissued are the positions of which an event of the origin may be a second one that was given out again; false if
// none are known.
func (r *Received) Reissued(origin string) (Reissued, bool) {
	out := Reissued{Origin: origin}
	for _, t := range r.Terms {
		if t.Lost < t.First {
			continue
		}
		if out.Term == 0 {
			out.First = t.First
		}
		out.Term, out.First, out.Last = t.Term, min(out.First, t.First), max(out.Last, t.Lost)
	}
	return out, out.Term > 0
}

// With are those positions and the ones that an event would add which is judged to be a Reissue.
func (r *Received) With(origin string, position, term uint64) Reissued {
	out, known := r.Reissued(origin)
	if !known {
		return Reissued{Origin: origin, Term: term, First: position, Last: r.Position}
	}
	out.Term, out.First, out.Last = term, min(out.First, position), max(out.Last, r.Position)
	return out
}

// CauseKey tells what an event stands for from everything else, whichever transaction has sent it: that of a minted event is
// its ReplayKey, that of any other follows from its name. It is 0 if that is not known.
func (e *Event) CauseKey() uint64 {
	if e.ReplayKey != 0 {
		return e.ReplayKey
	}
	if strings.Contains(e.ID, ":") {
		return 0
	}
	return hashOf(e.Space, e.Stream, e.ID)
}

// KeySends gives the sends of a handling their ReplayKeys: the same ones when the event is handled again.
//
// A timer that no event has set, as that of a cron job, has one that follows from its name and its time.
func KeySends(cause uint64, sends []Send) {
	for k := range sends {
		switch s := &sends[k]; {
		case cause != 0:
			s.ReplayKey = hashOf(strconv.FormatUint(cause, 10), s.To, s.Stream, strconv.Itoa(k))
		case s.Timer != "":
			s.ReplayKey = hashOf(s.To, s.Stream, s.Timer, strconv.FormatInt(s.NotBefore, 10))
		}
	}
}

// hashOf is never 0.
func hashOf(parts ...string) uint64 {
	h := fnv.New64a()
	for _, part := range parts {
		_, _ = h.Write(append([]byte(part), 0)) // which cannot fail
	}
	return max(h.Sum64(), 1)
}
