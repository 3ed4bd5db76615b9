package ordered

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/status"
)

// A server says of itself what a worker does, under the same endpoint and in the same words, so that `settle
// fleet` and `settle doctor` show both. A key is a space there.

// counts are what the server has got into the log.
type counts struct{ commits, receipts, refused atomic.Uint64 }

const (
	// stuckAfter is for how long a key holds the position back until it is called stuck.
	stuckAfter = 5 * time.Second
	// maxStuck is how many of those are named, maxLoads how many keys for which most waits, maxLosses how
	// many things that are refused.
	maxStuck, maxLoads, maxLosses = 20, 5, 20
	// tellWithin bounds how long it may take to look up when their events were stored.
	tellWithin = 300 * time.Millisecond
)

// standing is what a key is at, as its loop says before it waits.
type standing struct {
	cause, stream, event string
	tries                int    // so many attempts were made
	held                 int    // events that come behind one that is not here
	failure              string // why something cannot be done
}

// standstill is how far a key is done with its lane, and since when it has made no progress. One group
// of transactions may take in hundreds of events until done moves: a handler that is called with another
// event is progress, too. The same event again is an attempt.
type standstill struct {
	done  uint64
	event eventName // that a handler was called with last
	since time.Time
}

// goesOn reports whether the key has made progress since s.
func (s *standstill) goesOn(h *host) bool {
	event := h.code.last()
	return h.low.Load() != s.done || event != eventName{} && event != s.event
}

// standsAt says what the key is at. It is the loop that calls it.
func (h *host) standsAt() (s standing) {
	c := h.core
	head, waits := c.HeadInfo()
	if waits {
		s.stream, s.event = head.Event.Stream, head.Event.ID
	}
	switch {
	case h.under != nil:
		s.cause = status.CauseUncommitted
	case waits && c.NotBefore() > h.now():
		s.cause, s.tries = status.CauseRetry, head.Attempts
	case waits:
		s.cause = status.CauseTurn
	case c.Lane().Held() > 0:
		s.cause, s.held = status.CauseEarly, c.Lane().Held()
	case c.Replica().Seq > h.saver.seq:
		s.cause, s.failure = status.CauseUnsaved, h.saver.failure
	default:
		s.cause = status.CauseTurn
	}
	return s
}

// fails notes why the key cannot be served.
func (h *host) fails(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = standing{cause: status.CauseFailed, failure: firstLine(err.Error())}
}

// why is what a key is at for people.
func (s *standing) why(attempts int) string {
	switch s.cause {
	case status.CauseUncommitted:
		return "the log has not answered its commit yet"
	case status.CauseRetry:
		return fmt.Sprintf("attempt %d of %d at a time, after an error that may pass", s.tries+1, attempts)
	case status.CauseEarly:
		return fmt.Sprintf("it has %d events from other spaces that come behind one that is not here yet", s.held)
	case status.CauseUnsaved:
		if s.failure == "" {
			return "what it has done is not saved yet"
		}
		return "what it has done cannot be saved: " + s.failure
	case status.CauseFailed:
		return "it cannot be served: " + s.failure
	case status.CauseTurn:
		return "it waits for its turn: another server has it, or it is at work"
	}
	return "it is being loaded"
}

// noteStuck looks at which keys have not come further since it looked last.
func (p *partition) noteStuck(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	still := map[string]standstill{}
	for key, h := range p.hosts { // any order: each on its own
		done := h.low.Load()
		switch was, known := p.still[key]; {
		case done == allDone || done >= p.read:
		case known && !was.goesOn(h):
			still[key] = was
		default:
			still[key] = standstill{done, h.code.last(), now}
		}
	}
	p.still = still
}

// stuck are the keys of the partition that have stood still for long enough.
func (p *partition) stuck(now time.Time) (out []status.Stuck) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, was := range p.still { // any order: sorted by the caller
		h := p.hosts[key]
		if h == nil || now.Sub(was.since) < stuckAfter || was.goesOn(h) {
			continue
		}
		s := status.Stuck{Space: key, Partition: p.number, Since: was.since.UTC()}
		if stream, event, since := h.code.since(now); event != "" {
			s.Stream, s.Event, s.Cause = stream, event, status.CauseRunning
			s.Why = "its handler has been running since " + since.UTC().Format("15:04:05") + " UTC"
		} else {
			h.mu.Lock()
			s.Stream, s.Event, s.Cause, s.Why = h.at.stream, h.at.event, cmp.Or(h.at.cause, status.CauseLoading), h.at.why(p.s.cfg.Attempts)
			h.mu.Unlock()
		}
		out = append(out, s)
	}
	return out
}

// figures are those of the partition, and what waits for which key.
func (p *partition) figures() (f status.Partition, busiest []status.Load, lost []status.Loss) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f = status.Partition{Partition: p.number, State: "serving", Since: p.began.UTC(), Awake: len(p.hosts), Read: p.read, Saved: p.saved}
	if p.aside.upTo > p.saved {
		f.Saved, f.Aside = p.aside.upTo, p.aside.keys
	}
	if p.draining() {
		f.State = "leaving"
	}
	for key, h := range p.hosts { // any order: sorted by the caller
		if h.low.Load() != allDone {
			f.Unsaved++
		}
		h.mu.Lock()
		events := len(h.inbox) + h.waiting
		h.mu.Unlock()
		if f.Events += events; events > 0 {
			busiest = append(busiest, status.Load{Space: key, Partition: p.number, Events: events})
		}
	}
	for _, l := range p.lost { // any order: sorted by the caller
		lost = append(lost, l)
	}
	return f, busiest, lost
}

// figures says what the server does now.
func (s *server) figures() status.Figures {
	f := status.Figures{
		Commits: s.counts.commits.Load(), Receipts: s.counts.receipts.Load(), Refused: s.counts.refused.Load(),
		Awake: int(s.awake.Load()), Loading: len(s.loads), Abandoned: s.abandoned.Now(),
	}
	now := time.Now()
	f.Describe(s.peers.Self(), s.bus, now)
	s.mu.Lock()
	partitions := make([]*partition, 0, len(s.partitions))
	for _, p := range s.partitions { // any order: sorted below
		partitions = append(partitions, p)
	}
	s.mu.Unlock()
	for _, p := range partitions {
		of, busiest, lost := p.figures()
		f.Partitions, f.Busiest, f.Losses = append(f.Partitions, of), append(f.Busiest, busiest...), append(f.Losses, lost...)
		f.Stuck = append(f.Stuck, p.stuck(now)...)
	}
	f.StuckCount, f.LossCount = len(f.Stuck), len(f.Losses)
	slices.SortFunc(f.Partitions, func(a, b status.Partition) int { return cmp.Compare(a.Partition, b.Partition) })
	slices.SortFunc(f.Busiest, func(a, b status.Load) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(a.Space, b.Space))
	})
	slices.SortFunc(f.Losses, func(a, b status.Loss) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Space, b.Space))
	})
	slices.SortFunc(f.Stuck, func(a, b status.Stuck) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Space, b.Space))
	})
	f.Busiest, f.Losses, f.Stuck = f.Busiest[:min(len(f.Busiest), maxLoads)], f.Losses[:min(len(f.Losses), maxLosses)], f.Stuck[:min(len(f.Stuck), maxStuck)]
	s.date(f.Stuck)
	return f
}

// date looks up when the events were stored that keys stand still at.
func (s *server) date(stuck []status.Stuck) {
	ctx, cancel := context.WithTimeout(s.ctx, tellWithin)
	defer cancel()
	var looking sync.WaitGroup
	for i := range stuck {
		t := &stuck[i]
		if t.Event == "" {
			continue
		}
		looking.Go(func() { // ends with ctx
			if m, is, err := s.bus.FindEvent(ctx, t.Space, t.Stream, t.Event); err == nil && is {
				t.Stored = m.Stored.UTC()
			}
		})
	}
	looking.Wait()
}

// offerFigures answers who asks for them, as soon as that is possible.
func (s *server) offerFigures() {
	s.tasks.Go(func() { // ends when it is offered, or with s.ctx
		status.Offer(s.ctx, s.bus, s.cfg.id, s.figures, func(err error) {
			s.cfg.faults.Warn("offer the server's figures", "", "server", s.cfg.id, "error", err)
			_ = pause.For(s.ctx, s.cfg.TTL)
		})
	})
}

// firstLine is the first line of an error, as much of it as there is room for.
func firstLine(text string) string {
	const most = 200
	line, _, _ := strings.Cut(text, "\n")
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "..."
	}
	return line
}
