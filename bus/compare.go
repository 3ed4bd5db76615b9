package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle/model"
	"golang.org/x/sync/errgroup"
)

// steady waits until a suspect stream has been compared, and returns
// model.ErrRewound if the epoch is another one by then.
func (s *streams) steady(ctx context.Context, stream string, epoch uint64) error {
	for {
		changed := s.past.changed.wait()
		switch {
		case s.past.now() != epoch:
			return model.ErrRewound
		case !s.past.suspects(stream):
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.stopped:
			return model.ErrStopped
		}
	}
}

// comparing limits how many streams are compared at a time.
const comparing = 16

// compareAll compares every stream with the remembered messages, each until there is an answer.
// It does not wait for that.
func (s *streams) compareAll() {
	s.pub.mu.Lock()
	defer s.pub.mu.Unlock()
	if s.pub.closed {
		return
	}
	n := s.past.times()
	settle := func() {
		s.past.settled(n)
		s.pub.resend(func(r *request) bool { return r.held })
	}
	s.pub.running.Go(func() { // ends when all are compared, or with s.pub.ctx
		defer time.AfterFunc(s.timing.pastLimit, settle).Stop()
		if s.compareEach(s.pub.ctx); s.pub.ctx.Err() == nil {
			settle()
		}
	})
}

// suspect compares a stream that may have gone back, and delays messages for it until then. It does not wait.
func (s *streams) suspect(stream string) {
	s.pub.mu.Lock()
	defer s.pub.mu.Unlock()
	if !s.pub.closed && s.past.suspectOne(stream) {
		s.pub.running.Go(func() { s.compare(s.pub.ctx, stream) }) // ends when it is compared, or with s.pub.ctx
	}
}

func (s *streams) compareEach(ctx context.Context) {
	var g errgroup.Group
	g.SetLimit(comparing)
	for _, stream := range s.past.known() {
		g.Go(func() error { s.compare(ctx, stream); return nil })
	}
	_ = g.Wait() // the functions return no errors
}

// comparePast compares all streams periodically: a leader may lose the end of its
// stream without losing a connection.
func (s *streams) comparePast(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.compareEach(s.pub.ctx)
		case <-s.pub.ctx.Done():
			return
		}
	}
}

// compare compares one stream with its remembered message, and acts on the outcome. A
// leader that does not know yet that it is deposed may answer from an earlier state, and one that has just been elected may
// not know of the stream, so in a cluster a stream that is too short or missing is read again, for as
// long as that is possible. A stream without a leader proves nothing: only answers count.
func (s *streams) compare(ctx context.Context, stream string) {
	var since time.Time // since when leaders have contradicted without interruption
	for try := 1; ; try++ {
		asked := time.Now()
		suspicion := s.past.suspicion(stream) // before the rest: of two suspicions, the earlier one counts
		was := s.past.anchor(stream)
		found, why, err := s.lookBack(ctx, stream, was)
		switch {
		case err != nil:
			since = time.Time{}
		case why == "":
			if !s.past.holds(stream, was, found, suspicion) {
				since = time.Time{}
				continue
			}
			s.pub.resend(func(r *request) bool { return r.stream == stream && r.held })
			return
		default:
			s.past.contradicts(stream)
			if since.IsZero() || time.Since(asked) > s.ackTimeout { // no leader has answered in between
				since = time.Now()
			}
			if !s.clustered.Load() || time.Since(since) >= s.timing.pastLimit {
				s.wentBack(stream, was, why)
				return
			}
		}
		if s.sleep(ctx, pause(try)) != nil {
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
func (s *streams) lookBack(ctx context.Context, stream string, was anchor) (found anchor, why string, err error) {
	if was.seq == 0 {
		return was, "", nil
	}
	found, why, err = s.compareMessage(ctx, stream, was)
	if !errors.Is(err, errNoMessage) {
		return found, why, err
	}
	info, err := s.streamInfo(ctx, stream)
	switch {
	case errors.Is(err, errNoStream):
		return was, noSuchStream, nil
	case err != nil:
		return was, "", err
	case info.State.LastSeq < was.seq:
		return was, fmt.Sprintf("it ends at %d", info.State.LastSeq), nil
	}
	found, why, err = s.compareMessage(ctx, stream, was)
	if errors.Is(err, errNoMessage) {
		err = nil // it was purged
	}
	return found, why, err
}

// compareMessage asks the leader of a stream for the message of an anchor, and compares the two. The error is errNoMessage if there is
// none.
func (s *streams) compareMessage(ctx context.Context, stream string, was anchor) (found anchor, why string, err error) {
	m, err := s.leaderGet(ctx, stream, getRequest{Seq: was.seq})
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

// wentBack ends everything that depends on the earlier state of the stream, and logs it.
func (s *streams) wentBack(stream string, was anchor, why string) {
	r := model.Rewind{At: time.Now().UTC(), Stream: stream, Known: was.seq, Found: why}
	if !s.past.isBack(stream, was, r) {
		return
	}
	if s.forgetRead != nil {
		s.forgetRead()
	}
	s.log.Error("a stream has gone back to an earlier state (a power cut without fsync, a snapshot, an older copy of its files): what was stored last is lost; everything is read anew",
		"stream", stream, "known_up_to", was.seq, "found", why)
	s.pub.abandon(func(r *request) bool { return r.bound }, fmt.Errorf("stream %s was known up to %d, and %s: %w", stream, was.seq, why, model.ErrRewound))
	s.pub.resend(func(r *request) bool { return r.stream == stream && r.held })
	s.pub.mu.Lock()
	defer s.pub.mu.Unlock()
	if !s.pub.closed && s.reportRewind != nil {
		s.pub.running.Go(func() { s.reportRewind(r) }) // ends when it is noted, or with s.pub.ctx
	}
}
