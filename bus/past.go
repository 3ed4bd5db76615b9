package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

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
	anchors map[string]anchor
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
	// changed is raised when a stream is no longer suspect, and with every new epoch.
	changed signal
}

// anchor is a message that is known to be in a stream, or to have been purged from it.
type anchor struct {
	seq uint64
	// The other fields are compared if they are known.
	time    time.Time
	subject string
	commit  string // the Settle-Commit header
}

func anchorOf(m *storedMsg) anchor {
	return anchor{seq: m.Seq, time: m.Time, subject: m.Subject, commit: header(m.Header, headerCommit)}
}

// errOtherEpoch is the error of a request that depends on an earlier state of the store.
var errOtherEpoch = fmt.Errorf("not sent: %w", model.ErrRewound)

// Epoch returns how often the store was found to have gone back. See port.Bus.
func (b *Bus) Epoch() uint64 { return b.past.now() }

// Rewinds returns, for each stream that was found to have gone back since the bus was connected, the last
// rewind, in the order of detection.
func (b *Bus) Rewinds() []model.Rewind {
	b.past.mu.Lock()
	defer b.past.mu.Unlock()
	return slices.Clone(b.past.rewinds)
}

// Hindsight returns how long a leader may answer from an earlier state. See port.Bus.
func (b *Bus) Hindsight() time.Duration {
	if b.clustered.Load() {
		return b.timing.pastLimit
	}
	return 0
}

func (p *past) now() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.epoch
}

// note records a message, unless a newer one of its stream is known.
func (p *past) note(stream string, a anchor) {
	if stream == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.anchors == nil {
		p.anchors, p.suspect, p.contradicted = map[string]anchor{}, map[string]uint64{}, map[string]bool{}
	}
	// A message stored before a stream went back may be read only after that.
	if was := p.anchors[stream]; a.seq > was.seq && p.suspect[stream] == 0 {
		p.anchors[stream] = a
	}
}

// suspectAll marks all streams as suspect, after the connection is lost.
func (p *past) suspectAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unsettled++
	p.suspicions++
	for stream := range p.anchors { // any order: all of them
		p.suspect[stream] = p.suspicions
	}
}

// suspectOne marks a stream as suspect, and reports whether it was not: then it must be compared. Where it was, the comparison under way
// asks once more.
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
		p.changed.raise()
	}
}

// times returns how often the streams have been suspected and not compared.
func (p *past) times() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unsettled
}

// holdsBack reports whether a message must wait until its stream has been compared.
func (p *past) holdsBack(stream string, bound bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.suspect[stream] > 0 || bound && p.unsettled > 0
}

func (p *past) suspects(stream string) bool { return p.suspicion(stream) > 0 }

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

func (p *past) anchor(stream string) anchor {
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
	if _, known := p.anchors[stream]; known { // otherwise it was decided meanwhile
		p.contradicted[stream] = true
	}
}

// holds records that a stream has been compared, and has not gone back. was is the message that it was
// compared with, found the message in the stream, and suspicion was the stream's before the question was asked. It returns false if the stream has become suspect since: the
// answer may be of the time before, and the stream must be compared again.
func (p *past) holds(stream string, was, found anchor, suspicion uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.suspect[stream] > suspicion {
		return false
	}
	if now := p.anchors[stream]; now == was && found.seq == was.seq {
		p.anchors[stream] = found // its time is known from now on
	}
	delete(p.contradicted, stream)
	if p.suspect[stream] > 0 {
		delete(p.suspect, stream)
		p.changed.raise()
	}
	return true
}

// isBack begins a new epoch because a stream has gone back, unless that was detected meanwhile.
func (p *past) isBack(stream string, was anchor, r model.Rewind) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.contradicted, stream)
	now, known := p.anchors[stream]
	if !known || now.seq < was.seq {
		return false
	}
	p.epoch++
	p.rewinds = slices.DeleteFunc(p.rewinds, func(r model.Rewind) bool { return r.Stream == stream })
	p.rewinds = append(p.rewinds, r)
	delete(p.anchors, stream)
	delete(p.suspect, stream)
	p.changed.raise()
	return true
}

// steady waits until a suspect stream has been compared, and returns
// model.ErrRewound if the epoch is another one by then.
func (b *Bus) steady(ctx context.Context, stream string, epoch uint64) error {
	for {
		changed := b.past.changed.wait()
		switch {
		case b.past.now() != epoch:
			return model.ErrRewound
		case !b.past.suspects(stream):
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-b.stopped:
			return model.ErrStopped
		}
	}
}

// comparing limits how many streams are compared at a time.
const comparing = 16

// compareAll compares every stream with the remembered messages, each until there is an answer.
// It does not wait for that.
func (b *Bus) compareAll() {
	b.pub.mu.Lock()
	defer b.pub.mu.Unlock()
	if b.pub.closed {
		return
	}
	n := b.past.times()
	settle := func() {
		b.past.settled(n)
		b.pub.resend(func(r *request) bool { return r.held })
	}
	b.pub.running.Go(func() { // ends when all are compared, or with b.pub.ctx
		defer time.AfterFunc(b.timing.pastLimit, settle).Stop()
		if b.compareEach(b.pub.ctx); b.pub.ctx.Err() == nil {
			settle()
		}
	})
}

// suspect compares a stream that may have gone back, and delays messages for it until then. It does not wait.
func (b *Bus) suspect(stream string) {
	b.pub.mu.Lock()
	defer b.pub.mu.Unlock()
	if !b.pub.closed && b.past.suspectOne(stream) {
		b.pub.running.Go(func() { b.compare(b.pub.ctx, stream) }) // ends when it is compared, or with b.pub.ctx
	}
}

func (b *Bus) compareEach(ctx context.Context) {
	var g errgroup.Group
	g.SetLimit(comparing)
	for _, stream := range b.past.known() {
		g.Go(func() error { b.compare(ctx, stream); return nil })
	}
	_ = g.Wait() // the functions return no errors
}

// comparePast compares all streams periodically: a leader may lose the end of its
// stream without losing a connection.
func (b *Bus) comparePast(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			b.compareEach(b.pub.ctx)
		case <-b.pub.ctx.Done():
			return
		}
	}
}

// compare compares one stream with its remembered message, and acts on the outcome. A
// leader that does not know yet that it is deposed may answer from an earlier state, and one that has just been elected may
// not know of the stream, so in a cluster a stream that is too short or missing is read again, for as
// long as that is possible. A stream without a leader proves nothing: only answers count.
func (b *Bus) compare(ctx context.Context, stream string) {
	var since time.Time // since when leaders have contradicted without interruption
	for try := 1; ; try++ {
		asked := time.Now()
		suspicion := b.past.suspicion(stream) // before the rest: of two suspicions, the earlier one counts
		was := b.past.anchor(stream)
		found, why, err := b.lookBack(ctx, stream, was)
		switch {
		case err != nil:
			since = time.Time{}
		case why == "":
			if !b.past.holds(stream, was, found, suspicion) {
				since = time.Time{}
				continue
			}
			b.pub.resend(func(r *request) bool { return r.stream == stream && r.held })
			return
		default:
			b.past.contradicts(stream)
			if since.IsZero() || time.Since(asked) > b.cfg.AckTimeout { // no leader has answered in between
				since = time.Now()
			}
			if !b.clustered.Load() || time.Since(since) >= b.timing.pastLimit {
				b.wentBack(stream, was, why)
				return
			}
		}
		if b.sleep(ctx, pause(try)) != nil {
			return
		}
	}
}

// lookBack asks the leader of a stream for the message of an anchor. why is the contradiction
// in the answer, "" if there is none. A missing message has been purged, if
// the stream reaches further. A missing stream has lost all its messages.
//
// A stream that has gone back may grow to where it was, with other messages, between the two questions. So the message is asked for
// again, once it is known that there must be one, or have been.
func (b *Bus) lookBack(ctx context.Context, stream string, was anchor) (found anchor, why string, err error) {
	if was.seq == 0 {
		return was, "", nil
	}
	found, why, err = b.compareMessage(ctx, stream, was)
	if !errors.Is(err, errNoMessage) {
		return found, why, err
	}
	info, err := b.streamInfo(ctx, stream)
	switch {
	case errors.Is(err, errNoStream):
		return was, noSuchStream, nil
	case err != nil:
		return was, "", err
	case info.State.LastSeq < was.seq:
		return was, fmt.Sprintf("it ends at %d", info.State.LastSeq), nil
	}
	found, why, err = b.compareMessage(ctx, stream, was)
	if errors.Is(err, errNoMessage) {
		err = nil // it was purged
	}
	return found, why, err
}

// compareMessage asks the leader of a stream for the message of an anchor, and compares the two. The error is errNoMessage if there is
// none.
func (b *Bus) compareMessage(ctx context.Context, stream string, was anchor) (found anchor, why string, err error) {
	m, err := b.leaderGet(ctx, stream, getRequest{Seq: was.seq})
	switch {
	case errors.Is(err, errNoStream):
		return was, noSuchStream, nil
	case err != nil:
		return was, "", err
	}
	found = anchorOf(&m)
	return found, was.differs(found), nil
}

// noSuchStream describes a stream that existed and is missing.
const noSuchStream = "there is no such stream: it was deleted, or the store is another one"

// differs describes the difference between two messages of one sequence, "" if there is none.
func (a *anchor) differs(found anchor) string {
	switch {
	case !a.time.IsZero() && !a.time.Equal(found.time):
		return "a message stands there that was stored at " + found.time.Format(time.RFC3339Nano)
	case a.subject != "" && a.subject != found.subject:
		return "a message with another subject stands there: " + found.subject
	case a.commit != "" && a.commit != found.commit:
		return "another commit stands there: " + found.commit
	}
	return ""
}

// wentBack ends everything that depends on the earlier state of the stream, and logs it.
func (b *Bus) wentBack(stream string, was anchor, why string) {
	r := model.Rewind{At: time.Now().UTC(), Stream: stream, Known: was.seq, Found: why}
	if !b.past.isBack(stream, was, r) {
		return
	}
	b.seen.clear()
	b.log.Error("a stream has gone back to an earlier state (a power cut without fsync, a snapshot, an older copy of its files): what was stored last is lost; everything is read anew",
		"stream", stream, "known_up_to", was.seq, "found", why)
	b.pub.abandon(func(r *request) bool { return r.bound }, fmt.Errorf("stream %s was known up to %d, and %s: %w", stream, was.seq, why, model.ErrRewound))
	b.pub.resend(func(r *request) bool { return r.stream == stream && r.held })
	b.pub.mu.Lock()
	defer b.pub.mu.Unlock()
	if !b.pub.closed {
		b.pub.running.Go(func() { b.noteRewind(r) }) // ends when it is noted, or with b.pub.ctx
	}
}
