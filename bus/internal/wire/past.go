package wire

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/settlehq/settle/model"
)

// past is a bus's memory of its streams: the newest known message of each.
// A store that has gone back to an earlier state has another one there, or none. Until a
// stream has been compared with the memory, nothing is stored in it. The zero
// value is ready.
type past struct {
	mu      sync.Mutex
	epoch   uint64
	rewinds []model.Rewind // the last rewind of each stream that has gone back, in the order of detection
	anchors map[string]Anchor
	// suspect are the streams that may have gone back since their last message was read. While
	// there are any, nothing that depends on what was read is stored in other streams either; but a
	// stream without a leader does not block them without a limit. unsettled counts how often
	// all of them had to be compared.
	// Each has the number of the suspicion: an answer to a question that was asked before does not end it.
	suspect    map[string]uint64
	suspicions uint64
	unsettled  int
	// contradicted are the streams whose leader has reported another state than the known one, until
	// that is believed or refuted. Nothing that depends on earlier reads is stored until it is decided.
	contradicted map[string]bool
	// Changed is raised when a stream is no longer suspect, and with every new epoch.
	Changed signal
}

// Anchor is a message that is known to be in a stream, or to have been purged from it.
type Anchor struct {
	Seq uint64
	// The other fields are compared if they are known.
	Time    time.Time
	Subject string
	Commit  string // the Settle-Commit header
}

func AnchorOf(m *StoredMsg) Anchor {
	return Anchor{Seq: m.Seq, Time: m.Time, Subject: m.Subject, Commit: Header(m.Header, HeaderCommit)}
}

// ErrOtherEpoch is the error of a request that depends on an earlier state of the store.
var ErrOtherEpoch = fmt.Errorf("not sent: %w", model.ErrRewound)

func (p *past) Now() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.epoch
}

// Rewound returns the last rewind of each stream that has gone back, in the order of detection.
func (p *past) Rewound() []model.Rewind {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.rewinds)
}

// Note records a message, unless a newer one of its stream is known.
func (p *past) Note(stream string, a Anchor) {
	if stream == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.anchors == nil {
		p.anchors, p.suspect, p.contradicted = map[string]Anchor{}, map[string]uint64{}, map[string]bool{}
	}
	// A message stored before a stream went back may be read only after that.
	if was := p.anchors[stream]; a.Seq > was.Seq && p.suspect[stream] == 0 {
		p.anchors[stream] = a
	}
}

// SuspectAll marks all streams as suspect, after the connection is lost.
func (p *past) SuspectAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unsettled++
	p.suspicions++
	for stream := range p.anchors { // any order: all of them
		p.suspect[stream] = p.suspicions
	}
}

// suspectOne marks a stream as suspect, and reports whether it was not: then it must be compared. If it was,
// the comparison in progress asks once more.
func (p *past) suspectOne(stream string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.anchors[stream]; !known {
		return false
	}
	was := p.suspect[stream]
	p.suspicions++
	p.suspect[stream] = p.suspicions
	return was == 0
}

// settled records that all streams have been compared that were suspected the first n times, or
// could not be compared for long. A stream that a leader contradicts still blocks.
func (p *past) settled(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unsettled == n && len(p.contradicted) == 0 {
		p.unsettled = 0
		p.Changed.raise()
	}
}

// times returns how often the streams have been suspected and not compared.
func (p *past) times() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unsettled
}

// HoldsBack reports whether a message must wait until its stream has been compared.
func (p *past) HoldsBack(stream string, bound bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.suspect[stream] > 0 || bound && p.unsettled > 0
}

func (p *past) Suspects(stream string) bool { return p.suspicion(stream) > 0 }

// known returns the streams with a remembered message.
func (p *past) known() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for stream := range p.anchors { // any order: each on its own
		all = append(all, stream)
	}
	return all
}

func (p *past) Anchor(stream string) Anchor {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.anchors[stream]
}

// suspicion returns the number of the suspicion of a stream, 0 if it is not suspect.
func (p *past) suspicion(stream string) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.suspect[stream]
}

// contradicts records that a leader does not have the remembered message of a stream.
func (p *past) contradicts(stream string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.anchors[stream]; known { // otherwise another comparison has decided
		p.contradicted[stream] = true
	}
}

// holds records that a stream has been compared, and has not gone back. was is the message that it was
// compared with, found the message in the stream, and suspicion the stream's before the request. It returns
// false if the stream has become suspect since: the answer may be older than that, and the stream must be
// compared again.
func (p *past) holds(stream string, was, found Anchor, suspicion uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.suspect[stream] > suspicion {
		return false
	}
	if now := p.anchors[stream]; now == was && found.Seq == was.Seq {
		p.anchors[stream] = found // its time is known from now on
	}
	delete(p.contradicted, stream)
	if p.suspect[stream] > 0 {
		delete(p.suspect, stream)
		p.Changed.raise()
	}
	return true
}

// isBack begins a new epoch because a stream has gone back, unless that was already detected.
func (p *past) isBack(stream string, was Anchor, r model.Rewind) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.contradicted, stream)
	now, known := p.anchors[stream]
	if !known || now.Seq < was.Seq {
		return false
	}
	p.epoch++
	p.rewinds = slices.DeleteFunc(p.rewinds, func(r model.Rewind) bool { return r.Stream == stream })
	p.rewinds = append(p.rewinds, r)
	delete(p.anchors, stream)
	delete(p.suspect, stream)
	p.Changed.raise()
	return true
}

// differs describes the difference between two messages of one sequence, "" if there is none.
func (a *Anchor) differs(found Anchor) string {
	switch {
	case !a.Time.IsZero() && !a.Time.Equal(found.Time):
		return "the sequence has a message that was stored at " + found.Time.Format(time.RFC3339Nano)
	case a.Subject != "" && a.Subject != found.Subject:
		return "the sequence has a message with another subject: " + found.Subject
	case a.Commit != "" && a.Commit != found.Commit:
		return "the sequence has another commit: " + found.Commit
	}
	return ""
}
