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
}

// note notes the position of a partition, and returns since when it has stalled: no coordinator has processed an entry of its log, although there are
// some. It returns the zero time if that is not so, or for less than stalledAfter.
func (s *stalls) note(p *fleet.Partition, now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil {
		s.at, s.since = map[int]uint64{}, map[int]time.Time{}
	}
	if p.Unread != "" {
		return time.Time{}
	}
	if was, known := s.at[p.Number]; !known || was != p.Released || p.Unreleased == 0 {
		s.at[p.Number], s.since[p.Number] = p.Released, now
	}
	if since := s.since[p.Number]; now.Sub(since) >= stalledAfter {
		return since
	}
	return time.Time{}
}

// stall is a partition whose coordinators are behind.
type stall struct {
	Since time.Time
	// Reason is why, as far as the coordinators know that, "" if they do not.
	Reason string
	// First is the event that was handled in the first commit that is not released, nil if that is not known, and To the spaces to which the commit sends.
	First *history.EventRef
	To    []string
}

// stalled returns the partitions whose coordinators are behind.
func (c *Console) stalled(ctx context.Context, f *fleet.Fleet) map[int]*stall {
	all := map[int]*stall{}
	for i := range f.Partitions {
		p := &f.Partitions[i]
		if since := c.stalls.note(p, f.At); !since.IsZero() {
			s := &stall{Since: since, Reason: whyBehind(f)}
			if len(all) < maxStalled {
				s.read(ctx, c.cfg.Bus, p)
			}
			all[p.Number] = s
		}
	}
	return all
}

// maxStalled is of how many partitions the first commit that is not released is read, and stallPatience how long that may take.
const maxStalled, stallPatience = 4, 500 * time.Millisecond

// read reads the first commit that is not released, and sends something.
func (s *stall) read(ctx context.Context, bus Bus, p *fleet.Partition) {
	ctx, cancel := context.WithTimeout(ctx, stallPatience)
	defer cancel()
	left := p.Unreleased
	_ = bus.FollowLog(ctx, p.Number, p.Released, func(e model.LogEntry) { // what is not read is not said
		if s.First != nil || left == 0 {
			return
		}
		left--
		if commit, err := e.Commit(); err == nil {
			s.take(commit)
		}
		if s.First != nil || left == 0 {
			cancel()
		}
	})
}

// take takes what a commit has sent to other spaces.
func (s *stall) take(commit *model.Commit) {
	for i := range commit.Txs {
		tx := &commit.Txs[i]
		for _, send := range tx.Sends {
			if send.To == commit.Space {
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
