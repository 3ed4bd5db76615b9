package wire

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle/model"
)

// Steady waits until a suspect stream has been compared, and returns
// model.ErrRewound if the epoch is another one by then.
func (s *Streams) Steady(ctx context.Context, stream string, epoch uint64) error {
	for {
		changed := s.Past.Changed.Wait()
		switch {
		case s.Past.Now() != epoch:
			return model.ErrRewound
		case !s.Past.Suspects(stream):
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.Stopped:
			return model.ErrStopped
		}
	}
}

// comparing limits how many streams are compared at a time.
const comparing = 16

// CompareAll compares every stream with the remembered messages, each until there is an answer.
// It does not wait for that.
func (s *Streams) CompareAll() {
	s.Pub.mu.Lock()
	defer s.Pub.mu.Unlock()
	if s.Pub.closed {
		return
	}
	n := s.Past.times()
	settle := func() {
		s.Past.settled(n)
		s.Pub.resend(func(r *Request) bool { return r.held })
	}
	s.Pub.running.Go(func() { // ends when all are compared, or with s.pub.ctx
		defer time.AfterFunc(s.Timing.PastLimit, settle).Stop()
		if s.compareEach(s.Pub.Ctx); s.Pub.Ctx.Err() == nil {
			settle()
		}
	})
}

// Suspect starts to compare a stream that may have gone back, and holds back messages for it until the end of
// the comparison.
func (s *Streams) Suspect(stream string) {
	s.Pub.mu.Lock()
	defer s.Pub.mu.Unlock()
	if !s.Pub.closed && s.Past.suspectOne(stream) {
		s.Pub.running.Go(func() { s.Compare(s.Pub.Ctx, stream) }) // ends when it is compared, or with s.pub.ctx
	}
}

func (s *Streams) compareEach(ctx context.Context) {
	var g errgroup.Group
	g.SetLimit(comparing)
	for _, stream := range s.Past.known() {
		g.Go(func() error { s.Compare(ctx, stream); return nil })
	}
	_ = g.Wait() // the functions return no errors
}

// comparePast compares all streams periodically: a leader may lose the end of its
// stream without losing a connection.
func (s *Streams) comparePast(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.compareEach(s.Pub.Ctx)
		case <-s.Pub.Ctx.Done():
			return
		}
	}
}

// Compare compares one stream with its remembered message, and acts on the outcome. A
// leader that does not know yet that it is deposed may answer from an earlier state, and one that has just been elected may
// not know of the stream, so in a cluster a stream that is too short or missing is read again, for as
// long as that is possible. A stream without a leader proves nothing: only answers count.
func (s *Streams) Compare(ctx context.Context, stream string) {
	var since time.Time // since when leaders have contradicted without interruption
	for try := 1; ; try++ {
		asked := time.Now()
		suspicion := s.Past.suspicion(stream) // before the rest: of two suspicions, the earlier one counts
		was := s.Past.Anchor(stream)
		found, why, err := s.LookBack(ctx, stream, was)
		switch {
		case err != nil:
			since = time.Time{}
		case why == "":
			if !s.Past.holds(stream, was, found, suspicion) {
				since = time.Time{}
				continue
			}
			s.Pub.resend(func(r *Request) bool { return r.Stream == stream && r.held })
			return
		default:
			s.Past.contradicts(stream)
			if since.IsZero() || time.Since(asked) > s.AckTimeout { // no leader has answered in between
				since = time.Now()
			}
			if !s.Clustered.Load() || time.Since(since) >= s.Timing.PastLimit {
				s.WentBack(stream, was, why)
				return
			}
		}
		if s.Sleep(ctx, Pause(try)) != nil {
			return
		}
	}
}

// LookBack asks the leader of a stream for the message of an anchor. why is the contradiction in the answer,
// "" if there is none. A missing message has been purged, if the stream reaches further. A missing stream has
// lost all its messages.
//
// A stream that has gone back may grow to its former length, with other messages, between the two requests.
// So the message is requested again, once it is known that it must exist, or have existed.
func (s *Streams) LookBack(ctx context.Context, stream string, was Anchor) (found Anchor, why string, err error) {
	if was.Seq == 0 {
		return was, "", nil
	}
	found, why, err = s.compareMessage(ctx, stream, was)
	if !errors.Is(err, ErrNoMessage) {
		return found, why, err
	}
	info, err := s.StreamInfo(ctx, stream)
	switch {
	case errors.Is(err, ErrNoStream):
		return was, NoSuchStream, nil
	case err != nil:
		return was, "", err
	case info.State.LastSeq < was.Seq:
		return was, fmt.Sprintf("it ends at %d", info.State.LastSeq), nil
	}
	found, why, err = s.compareMessage(ctx, stream, was)
	if errors.Is(err, ErrNoMessage) {
		err = nil // it was purged
	}
	return found, why, err
}

// compareMessage asks the leader of a stream for the message of an anchor, and compares the two. The error is errNoMessage if there is
// none.
func (s *Streams) compareMessage(ctx context.Context, stream string, was Anchor) (found Anchor, why string, err error) {
	m, err := s.LeaderGet(ctx, stream, GetRequest{Seq: was.Seq})
	switch {
	case errors.Is(err, ErrNoStream):
		return was, NoSuchStream, nil
	case err != nil:
		return was, "", err
	}
	found = AnchorOf(&m)
	return found, was.differs(found), nil
}

// NoSuchStream describes a stream that existed and is missing.
const NoSuchStream = "there is no such stream: it was deleted, or the store is another one"

// WentBack ends everything that depends on the earlier state of the stream, and logs it.
func (s *Streams) WentBack(stream string, was Anchor, why string) {
	r := model.Rewind{At: time.Now().UTC(), Stream: stream, Known: was.Seq, Found: why}
	if !s.Past.isBack(stream, was, r) {
		return
	}
	if s.ForgetRead != nil {
		s.ForgetRead()
	}
	s.Log.Error("a stream has gone back to an earlier state (a power cut without fsync, a snapshot, an older copy of its files): what was stored last is lost; everything is read again",
		"stream", stream, "known_up_to", was.Seq, "found", why)
	s.Pub.abandon(func(r *Request) bool { return r.Bound }, fmt.Errorf("stream %s was known up to %d, and %s: %w", stream, was.Seq, why, model.ErrRewound))
	s.Pub.resend(func(r *Request) bool { return r.Stream == stream && r.held })
	s.Pub.mu.Lock()
	defer s.Pub.mu.Unlock()
	if !s.Pub.closed && s.ReportRewind != nil {
		s.Pub.running.Go(func() { s.ReportRewind(r) }) // ends when it is noted, or with s.pub.ctx
	}
}
