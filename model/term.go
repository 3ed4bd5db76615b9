package model

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
)

// A term of a space begins with a commit by which a runtime takes the space over or joins it (docs/adr/0035).
// Its number is the time of that commit by the server's clock, in milliseconds since 1970, and greater than
// any previous one in the log. So the terms of a log only grow, and those that begin after commits were lost
// are greater than the lost ones.

// NoTerm is used in Send.PrevTerm if there is no previous event, or its term is unknown: no real term is as
// small.
const NoTerm = 1

// NextTerm returns the number of a term that begins at a time, given the previous one. The time 0 begins no
// term.
func NextTerm(at, before uint64) uint64 {
	if at == 0 {
		return 0
	}
	return max(at, before+1)
}

// Transaction numbers start anew with an epoch. If commits are lost, two epochs may have the same log
// sequence; so that no id is used twice, numbers start at txsPerMilli for each millisecond of the time at
// which the term began, which is more than a runtime makes in that time. The numbers repeat after txMillis, a
// day and a half.
const (
	txsPerMilli = 1 << 7
	txMillis    = 1 << 27
)

// BeforeFirstTx returns the number before that of the first transaction of the epoch that began with a term.
func BeforeFirstTx(term uint64) uint64 { return term % txMillis * txsPerMilli }

// Sent is the last position assigned to a target, and its term.
type Sent struct{ Position, Term uint64 }

// maxTerms bounds the remembered terms of an origin.
const maxTerms = 4

// TermStart is the first position of an origin that a space has handled in a term. Term 0 stands for events
// whose term is unknown, because a version without terms has sent or released them.
type TermStart struct{ Term, First uint64 }

// Again are positions that an origin has assigned again, in Term at the latest: the events that it had sent
// under First to Last, in earlier terms, were handled, but the commits that had sent them are lost. The zero
// Again means none.
type Again struct{ Term, First, Last uint64 }

// againFor is how long, in milliseconds, an origin may take to send again what it had sent before it lost
// commits: it handles its lane in order, and the events that it had handled come first.
const againFor = 24 * 60 * 60 * 1000

// Received describes the handled events of one origin. The slice is never changed, so copies may share it.
type Received struct {
	Position uint64
	// Terms are the last few terms, in order.
	Terms []TermStart
	Again Again
}

// Verdict is the classification of a position of an origin.
type Verdict uint8

// Verdicts of Received.Judge.
const (
	// InTurn: it is the next one.
	InTurn Verdict = iota
	// Early: a position before it must be handled first.
	Early
	// Repetition: it has been handled.
	Repetition
	// Reissue: it is the next one, and takes the place of handled events that the origin has lost.
	Reissue
	// Conflict: it is of an earlier term than the last one handled, and has not been handled. The commit that
	// sent it is lost, or the server's clock was set back.
	Conflict
)

func (r *Received) last() TermStart {
	if n := len(r.Terms); n > 0 {
		return r.Terms[n-1]
	}
	return TermStart{}
}

// termOf returns the term in which a position up to Position was handled; 0 if unknown.
func (r *Received) termOf(position uint64) uint64 {
	for _, t := range slices.Backward(r.Terms) {
		if t.First <= position {
			return t.Term
		}
	}
	return 0
}

// Judge classifies a position, given the term in which it was sent and that of the event before it, 0 for the
// same term. Positions of one log follow each other, and each term an earlier one; so an event of a later
// term whose predecessor was handled takes the place of everything handled after that predecessor.
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
		return Repetition // handled before anything that is remembered
	case position > r.Position:
		return Conflict
	}
	if handled := r.termOf(position); handled == term || handled == 0 {
		return Repetition
	}
	return Conflict
}

// Take records that a position was handled. It has no effect on a position that cannot have been the next
// one, because an earlier commit contains it or it ended as a Conflict. It reports whether anything has
// changed.
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

// begin records the first position of a term, and discards what it takes the place of.
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

// againWith returns the positions that are assigned again if an event is the first one of a term.
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

// After reports whether r is further than o. Of two known states of a space, the further one is valid.
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

// Numbers returns the terms and Again in their stored form: two numbers for each term, and three for Again,
// if it is set.
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

// Reissued are positions that an origin has assigned again.
type Reissued struct {
	Origin string
	Again
}

// Reissued returns the positions for which an event of the origin may be one that was handled under another
// id, given its verdict of InTurn or Reissue; false if there are none.
func (r *Received) Reissued(origin string, v Verdict, position, term uint64) (Reissued, bool) {
	a := r.Again
	if v == Reissue {
		a = r.againWith(position, term)
	}
	return Reissued{origin, a}, a.Term > 0
}

// Concerns reports whether an event was sent under one of those positions before they were assigned again.
func (of *Reissued) Concerns(ev *Event) bool {
	return ev.Position >= of.First && ev.Position <= of.Last && ev.Position > 0 && ev.Term < of.Term && ev.Origin() == of.Origin
}

// CauseKey identifies the cause of an event, independent of the transaction that has sent it: for a minted
// event it is the ReplayKey, for any other a hash of its name. It is 0 if unknown.
func (e *Event) CauseKey() uint64 {
	if e.ReplayKey != 0 {
		return e.ReplayKey
	}
	if strings.Contains(e.ID, ":") {
		return 0
	}
	return hashOf(e.Space, e.Stream, e.ID)
}

// KeySends sets the ReplayKeys of a handling's sends: the same ones when the event is handled again.
//
// A timer that no event has set, such as that of a cron job, has a key that follows from its name and its
// time.
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

// hashOf returns a nonzero hash.
func hashOf(parts ...string) uint64 {
	h := fnv.New64a()
	for _, part := range parts {
		_, _ = h.Write(append([]byte(part), 0)) // never fails
	}
	return max(h.Sum64(), 1)
}
