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

// NextTerm returns the number of a term that begins at a time, given the one before it. The time 0 begins none.
func NextTerm(at, before uint64) uint64 {
	if at == 0 {
		return 0
	}
	return max(at, before+1)
}

// Transaction numbers begin anew with an epoch. Two epochs may have the same log sequence, if one of them is in commits that are lost; so
// that no name is given out twice, they begin at txsPerMilli for each millisecond of the time at which the term began, which is
// more than a runtime makes in that time. The numbers come round after txMillis, a day and a half.
const (
	txsPerMilli = 1 << 7
	txMillis    = 1 << 27
)

// BeforeFirstTx returns the number below that of the first transaction of the epoch that began with a term.
func BeforeFirstTx(term uint64) uint64 { return term % txMillis * txsPerMilli }

// Sent is the position that was given out last to a target, and the term in which it was.
type Sent struct{ Position, Term uint64 }

// maxTerms bounds how many terms of an origin are remembered.
const maxTerms = 4

// TermStart says from which position on a space has handled what an origin has sent in a term. Term 0 stands for
// events of which the term is not known: a version that has no terms has sent or released them.
type TermStart struct{ Term, First uint64 }

// Again are positions that an origin has given out again, in Term at the latest: events that it had sent in earlier terms, under First
// to Last, were handled, and the commits that had sent them are lost. The zero Again is none.
type Again struct{ Term, First, Last uint64 }

// againFor is for how long, in milliseconds, an origin may take to send once more what it had sent before it has gone back: it handles
// its lane in order, and what it had handled comes first.
const againFor = 24 * 60 * 60 * 1000

// Received is what a space has handled of the events of one origin. The slice is never changed, so that copies
// may share it.
type Received struct {
	Position uint64
	// Terms are the last few terms, in their order.
	Terms []TermStart
	Again Again
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

func (r *Received) last() TermStart {
	if n := len(r.Terms); n > 0 {
		return r.Terms[n-1]
	}
	return TermStart{}
}

// termOf returns the term in which a position was handled that is not above Position; 0 if that is not known.
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
	case term < last.Term || term == last.Term && position < last.First:
		return r.beforeLast(position, term)
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

func (r *Received) beforeLast(position, term uint64) Verdict {
	switch {
	case position < r.Terms[0].First:
		return Repetition // its turn was before anything that is remembered
	case position > r.Position:
		return Conflict
	}
	if handled := r.termOf(position); handled == term || handled == 0 {
		return Repetition
	}
	return Conflict
}

// Take notes that a position was handled. One that cannot have been the next, because an earlier commit has it or it ended as a
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
	r.Again = r.againWith(t.First, t.Term)
	var kept []TermStart
	for _, was := range r.Terms {
		if was.First < t.First {
			kept = append(kept, was)
		}
	}
	kept = append(kept, t)
	r.Position, r.Terms = t.First, kept[max(len(kept)-maxTerms, 0):]
}

// againWith returns the positions that are given out again when an event is the first one of a term.
func (r *Received) againWith(position, term uint64) Again {
	a := r.Again
	if a.Term > 0 && term > a.Term+againFor {
		a = Again{}
	}
	switch {
	case position > r.Position || term == 0:
		return a
	case a.Term == 0:
		return Again{Term: term, First: position, Last: r.Position}
	}
	return Again{Term: term, First: min(a.First, position), Last: max(a.Last, r.Position)}
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

// Numbers returns the terms, and those positions if there are any, as they are stored: two numbers for each term, and three for those.
func (r *Received) Numbers() (terms, again []uint64) {
	for _, t := range r.Terms {
		terms = append(terms, t.Term, t.First)
	}
	if r.Again.Term > 0 {
		again = []uint64{r.Again.Term, r.Again.First, r.Again.Last}
	}
	return terms, again
}

// ReceivedOf is the inverse of Numbers.
func ReceivedOf(position uint64, terms, again []uint64) Received {
	r := Received{Position: position}
	for ; len(terms) >= 2; terms = terms[2:] {
		r.Terms = append(r.Terms, TermStart{Term: terms[0], First: terms[1]})
	}
	if len(again) == 3 {
		r.Again = Again{Term: again[0], First: again[1], Last: again[2]}
	}
	return r
}

// Reissued are positions that an origin has given out again.
type Reissued struct {
	Origin string
	Again
}

// Reissued returns the positions of which an event of the origin may be one that was handled under another id, given that it is judged
// InTurn, or a Reissue; false if there are none.
func (r *Received) Reissued(origin string, v Verdict, position, term uint64) (Reissued, bool) {
	a := r.Again
	if v == Reissue {
		a = r.againWith(position, term)
	}
	return Reissued{origin, a}, a.Term > 0
}

// Concerns reports whether an event was sent under one of those positions before they were given out again.
func (of *Reissued) Concerns(ev *Event) bool {
	return ev.Position >= of.First && ev.Position <= of.Last && ev.Position > 0 && ev.Term < of.Term && ev.Origin() == of.Origin
}

// CauseKey identifies the cause of an event, whichever transaction has sent it: that of a minted event is
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
