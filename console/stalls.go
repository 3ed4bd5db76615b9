package console

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/model"
)

// stalledAfter is how long a coordinator may process nothing: longer than it takes to announce what it has processed.
const stalledAfter = 10 * time.Second

// stalls has, by partition, the position of the coordinators, and since when that is the same with entries after it.
type stalls struct {
	mu    sync.Mutex
	at    map[int]uint64
	since map[int]time.Time
	// found are the partitions whose position was the same when it was noted first, since a time that is not known.
	found map[int]bool
}

// note notes the position of a partition, and returns since when it is the same. known is false if that may be so for longer: it was so when the position
// was noted first.
func (s *stalls) note(p *fleet.Partition, now time.Time) (since time.Time, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil {
		s.at, s.since, s.found = map[int]uint64{}, map[int]time.Time{}, map[int]bool{}
	}
	if p.Unread != "" {
		return now, true
	}
	was, noted := s.at[p.Number]
	if !noted || was != p.Released || p.Unreleased == 0 {
		s.at[p.Number], s.since[p.Number], s.found[p.Number] = p.Released, now, !noted && p.Unreleased > 0
	}
	return s.since[p.Number], !s.found[p.Number]
}

// begun notes since when an entry at the head of a partition waits, if the position is still the same.
func (s *stalls) begun(p *fleet.Partition, since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at[p.Number] == p.Released {
		s.since[p.Number], s.found[p.Number] = since, false
	}
}

// stall is a partition whose coordinators are behind.
type stall struct {
	Since time.Time
	// oldest is when the first entry that is not released was stored, the zero time if it was not read.
	oldest time.Time
	// Reason is why, as far as the coordinators know that, "" if they do not.
	Reason string
	// First is the event that was handled in the first commit of which something is not delivered, nil if that is not known, and To the spaces to which that is sent.
	First *history.EventRef
	To    []string
}

// stalled returns the partitions whose coordinators are behind: none has processed an entry of the log for stalledAfter, although there is one that was
// stored before. So it is known with the first page that a console shows, too.
func (c *Console) stalled(ctx context.Context, f *fleet.Fleet) map[int]*stall {
	all := map[int]*stall{}
	read := 0
	for i := range f.Partitions {
		p := &f.Partitions[i]
		since, known := c.stalls.note(p, f.At)
		if p.Unread != "" || p.Unreleased == 0 || known && f.At.Sub(since) < stalledAfter {
			continue
		}
		s := &stall{Reason: whyBehind(f)}
		if read < maxStalled {
			read++
			s.read(ctx, c.cfg.Bus, p)
		}
		if s.begin(since, known); known || !s.oldest.IsZero() {
			c.stalls.begun(p, s.Since)
		}
		if f.At.Sub(s.Since) >= stalledAfter {
			all[p.Number] = s
		}
	}
	return all
}

// begin decides since when it is so: since the coordinators have this position, but not before the first entry after it was stored. If the position was
// not known before, the entry alone decides.
func (s *stall) begin(since time.Time, known bool) {
	if s.Since = since; !s.oldest.IsZero() && (!known || s.oldest.After(since)) {
		s.Since = s.oldest
	}
}

// maxStalled is of how many partitions the first commit that is not released is read, and stallPatience how long that may take.
const maxStalled, stallPatience = 4, 500 * time.Millisecond

// maxLooks is how many events are looked for in the lanes of their targets. A coordinator that ends has released some whose position it has not saved.
const maxLooks = 64

// read reads the first commit that sends an event which is not in the lane of its target.
func (s *stall) read(ctx context.Context, bus Bus, p *fleet.Partition) {
	ctx, cancel := context.WithTimeout(ctx, stallPatience)
	defer cancel()
	left, looks := p.Unreleased, 0
	delivered := func(send *model.Send) bool {
		looks++
		_, is, err := bus.FindEvent(ctx, send.To, send.Stream, send.ID)
		return is || err != nil // what is not known is not claimed
	}
	_ = bus.FollowLog(ctx, p.Number, p.Released, func(e model.LogEntry) { // what is not read is not said
		if s.oldest.IsZero() {
			s.oldest = e.Stored
		}
		if s.First != nil || left == 0 {
			return
		}
		left--
		if commit, err := e.Commit(); err == nil {
			s.take(commit, delivered)
		}
		if s.First != nil || left == 0 || looks >= maxLooks {
			cancel()
		}
	})
}

// take takes what a commit has sent to other spaces and is not delivered.
func (s *stall) take(commit *model.Commit, delivered func(*model.Send) bool) {
	for i := range commit.Txs {
		tx := &commit.Txs[i]
		for k := range tx.Sends {
			send := &tx.Sends[k]
			if send.To == commit.Space || s.First == nil && delivered(send) {
				continue
			}
			if s.First == nil && tx.Receipt != nil {
				h := history.Handling{Space: commit.Space, Tx: *tx}
				s.First = &history.EventRef{Space: commit.Space, Stream: h.Stream(), Event: tx.Receipt.Event}
			}
			if !slices.Contains(s.To, send.To) {
				s.To = append(s.To, send.To)
			}
		}
	}
}

// whyBehind returns why coordinators are behind, as far as they know.
func whyBehind(f *fleet.Fleet) string {
	for i := range f.Coordinators {
		m := &f.Coordinators[i]
		switch {
		case len(m.Full) > 0:
			return fmt.Sprintf("the lane of partition %d, to which space %s belongs, has no room", m.Full[0].Partition, m.Full[0].Space)
		case m.Noticed != nil && m.Noticed.Denied != "":
			return "the NATS user of " + m.ID + " lacks a permission: " + m.Noticed.Denied
		case m.State == fleet.Silent:
			return m.ID + " does not answer"
		}
	}
	return ""
}

// title is the title of a page about it.
func (s *stall) title(p *fleet.Partition) string {
	return fmt.Sprintf("The coordinator is behind: it has not released %s of partition %d", display.Count(int(p.Unreleased), "commit"), p.Number) //nolint:gosec // a count
}

// maxTargets is how many of the spaces are named for which something waits.
const maxTargets = 3

// Text says what waits, and why.
func (s *stall) Text() string {
	text := "what spaces of this partition send to others is not delivered"
	if s.First != nil {
		to := strings.Join(s.To[:min(len(s.To), maxTargets)], ", ")
		if more := len(s.To) - maxTargets; more > 0 {
			to += " and " + display.Count(more, "other")
		}
		text = fmt.Sprintf("what %s of space %s sends to %s is the first that is not delivered", s.First.Stream, s.First.Space, to)
	}
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	return text
}

// concern is it on the overview.
func (s *stall) concern(p *fleet.Partition) concern {
	one := concern{
		Key: fmt.Sprint("stalled ", p.Number), State: "parked", What: fmt.Sprintf("partition %d", p.Number), URL: "/fleet", Since: s.Since, CLI: "settle fleet",
		Title: s.title(p), Text: "its coordinator is behind: " + s.Text(),
	}
	if s.First != nil {
		one.Why = eventURL(s.First.Space, s.First.Stream, s.First.Event)
	}
	return one
}
