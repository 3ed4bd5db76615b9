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

// past is what a bus remembers of its streams: of each the newest message that it knows.
// A store that has gone back to an earlier state has another one there, or none. Until a
// stream has been compared with what is remembered, nothing is stored in it. The zero
// value is ready.
type past struct {
	mu      sync.Mutex
	epoch   uint64
	rewinds []model.Rewind // the last of each stream that has gone back, as they were noticed
	anchors map[string]anchor
	// suspect are the streams that may have gone back since they were heard of last. As long as
	// there are any, what follows from what was read is not stored in others either; but a
	// stream without a leader does not hold them up for ever. unsettled counts the times that
	// all have to be compared.
	suspect   map[string]bool
	unsettled int
	// contradicted are the streams of which a leader has said that they are not what they were, as long
	// as that is not believed. Nothing rests on what was read before it is decided.
	contradicted map[string]bool
	// changed is raised when a stream is suspected no more, and with every new epoch.
	changed signal
}

// anchor is a message that is known to be in a stream, or to have been purged from it.
type anchor struct {
	seq uint64
	// What follows is compared as far as it is known.
	time    time.Time
	subject string
	commit  string // the Settle-Commit header
}

func anchorOf(m *storedMsg) anchor {
	return anchor{seq: m.Seq, time: m.Time, subject: m.Subject, commit: header(m.Header, headerCommit)}
}

// errOtherEpoch is the answer to what rests on an earlier state of the store.
var errOtherEpoch = fmt.Errorf("not sent: %w", model.ErrRewound)

// Epoch counts how often the store was found to have gone back. See port.Bus.
func (b *Bus) Epoch() uint64 { return b.past.now() }

// Rewinds returns, for each stream that was found to have gone back since the bus was connected, the last time that it
// was, in the order in which that was noticed.
func (b *Bus) Rewinds() []model.Rewind {
	b.past.mu.Lock()
	defer b.past.mu.Unlock()
	return slices.Clone(b.past.rewinds)
}

// Hindsight is for how long a leader may answer from the past. See port.Bus.
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

// note remembers a message, unless a newer one is known of its stream.
func (p *past) note(stream string, a anchor) {
	if stream == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.anchors == nil {
		p.anchors, p.suspect, p.contradicted = map[string]anchor{}, map[string]bool{}, map[string]bool{}
	}
	// What was stored before a stream went back may be heard of only after that.
	if was := p.anchors[stream]; a.seq > was.seq && !p.suspect[stream] {
		p.anchors[stream] = a
	}
}

// suspectAll says that any stream may have gone back: the connection is lost.
func (p *past) suspectAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unsettled++
	for stream := range p.anchors { // any order: all of them
		p.suspect[stream] = true
	}
}

// suspectOne says that a stream may have gone back, and reports whether that is news: then it is to be compared.
func (p *past) suspectOne(stream string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.anchors[stream]; !known || p.suspect[stream] {
		return false
	}
	p.suspect[stream] = true
	return true
}

// settled says that all streams have been compared that were suspected the first n times, or
// could not be for long. One that a leader contradicts is waited for all the same.
func (p *past) settled(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unsettled == n && len(p.contradicted) == 0 {
		p.unsettled = 0
		p.changed.raise()
	}
}

// times is how often the streams have been suspected and not compared.
func (p *past) times() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unsettled
}

// holdsBack reports whether a message is to wait until its stream has been compared.
func (p *past) holdsBack(stream string, bound bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.suspect[stream] || bound && p.unsettled > 0
}

func (p *past) suspects(stream string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.suspect[stream]
}

// known are the streams of which anything is remembered.
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

// contradicts says that a leader does not have what is remembered of a stream.
func (p *past) contradicts(stream string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.anchors[stream]; known { // else it was decided meanwhile
		p.contradicted[stream] = true
	}
}

// holds says that a stream has been compared, and has not gone back. was is what it was
// compared with, found the message that stands there.
func (p *past) holds(stream string, was, found anchor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.anchors[stream]; now == was && found.seq == was.seq {
		p.anchors[stream] = found // its time is known from now on
	}
	delete(p.contradicted, stream)
	if p.suspect[stream] {
		delete(p.suspect, stream)
		p.changed.raise()
	}
}

// isBack begins a new epoch, unless that was noticed meanwhile: a stream is not what it was.
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

// steady waits until a stream has been compared, if it is suspected, and returns
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

// comparing bounds how many streams are compared at a time.
const comparing = 16

// compareAll compares every stream with what is remembered, each until there is an answer.
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

// suspect compares a stream that may not be what it was, and has what is stored in it wait for that. It does not wait.
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
	_ = g.Wait() // there are no errors
}

// comparePast compares all streams now and then: a leader that has lost the end of its
// stream costs no connection.
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

// compare compares one stream with what is remembered of it, and acts on the outcome. A
// leader that does not know yet that it is deposed may answer from the past, and one that has just been elected may
// not know of the stream, so in a cluster a stream that is too short or not there is looked at again, for as
// long as that can be. A stream that has no leader says nothing: only answers count.
func (b *Bus) compare(ctx context.Context, stream string) {
	var since time.Time // leaders have contradicted, without a pause
	for try := 1; ; try++ {
		was, asked := b.past.anchor(stream), time.Now()
		found, why, err := b.lookBack(ctx, stream, was)
		switch {
		case err != nil:
			since = time.Time{}
		case why == "":
			b.past.holds(stream, was, found)
			b.pub.resend(func(r *request) bool { return r.stream == stream && r.held })
			return
		default:
			b.past.contradicts(stream)
			if since.IsZero() || time.Since(asked) > b.cfg.AckTimeout { // no leader has answered meanwhile
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

// lookBack asks the leader of a stream for the message of an anchor. why says what is wrong
// with the answer, "" that nothing is. A message that is not there has been purged, as
// long as the stream reaches further. A stream that is not there has lost all that it had.
func (b *Bus) lookBack(ctx context.Context, stream string, was anchor) (found anchor, why string, err error) {
	if was.seq == 0 {
		return was, "", nil
	}
	m, err := b.leaderGet(ctx, stream, getRequest{Seq: was.seq})
	if err == nil {
		found = anchorOf(&m)
		return found, was.differs(found), nil
	}
	if errors.Is(err, errNoStream) {
		return was, noSuchStream, nil
	}
	if !errors.Is(err, errNoMessage) {
		return was, "", err
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
	return was, "", nil
}

// noSuchStream is what is wrong with a stream that was there.
const noSuchStream = "there is no such stream: it was deleted, or the store is another one"

// differs says what tells two messages of one sequence apart, "" if nothing does.
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

// wentBack ends what rests on the stream as it was, and says so.
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
