package live

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
)

// Values come from the log, and the log does not record that a value is out of date because its computation
// fails or no worker serves its space. The server therefore polls the owners of the documents that are
// watched here, with one query for up to statusBatch documents of any spaces, however many clients watch each
// of them.

const (
	// statusEvery is the interval at which the status of a document is queried. A document whose status is not
	// known yet is queried at every heartbeat.
	statusEvery = 2 * Heartbeat
	// statusPatience is how long an owner may take to answer. A status that it does not know by then counts as
	// stale.
	statusPatience = time.Second
	// statusBatch is the largest number of documents in a query. With maxReason it keeps an answer far below
	// the smallest message limit that servers are run with.
	statusBatch = 256
	// statusQueries is the largest number of queries that an owner answers at a time: a query for a space that
	// does not answer takes all of statusPatience.
	statusQueries = 8
	maxReason     = 1 << 10 // bytes
	// gracePeriod is how long a transient problem (a takeover, a handover, a closed gate, a value in transit)
	// must last before watchers are notified.
	gracePeriod = 5 * time.Second
)

// documentStatus is the encoding of a document's status in an answer.
type documentStatus struct {
	Revision uint64 `json:"revision,omitempty"`
	Stale    string `json:"stale,omitempty"`
	Passing  bool   `json:"passing,omitempty"`
}

// pollFreshness queries the status of the watched documents until ctx ends. It does not wait for answers: a
// document whose last query is unanswered is left out.
func (s *Server) pollFreshness(ctx context.Context) {
	var asking sync.WaitGroup
	defer asking.Wait()
	for n := 0; pause.For(ctx, Heartbeat) == nil; n++ {
		for key, feeds := range s.feedsToPoll(n%int(statusEvery/Heartbeat) == 0) { // any order: the queries are independent
			asking.Go(func() { s.pollOwner(ctx, key.owner, feeds) }) // ends with the answers, or by timeout
		}
	}
}

// pollKey groups documents into queries. Documents with a transient problem are queried apart, because their
// spaces may take all of statusPatience, and the others should not have to wait.
type pollKey struct {
	owner string
	apart bool
}

// feedsToPoll returns the feeds to query, grouped by the owner of their spaces: all, or those whose status is
// not known.
func (s *Server) feedsToPoll(all bool) map[pollKey][]*feed {
	owners, due, now := map[int]string{}, map[pollKey][]*feed{}, time.Now()
	for _, f := range s.allFeeds() {
		is, apart := f.startPoll(all, now)
		if !is {
			continue
		}
		p := model.PartitionOf(f.space, s.bus.Partitions())
		owner, known := owners[p]
		if !known { // computed once for all spaces of a partition
			owner = s.host.Owner(f.space)
			owners[p] = owner
		}
		key := pollKey{owner, apart}
		due[key] = append(due[key], f)
	}
	return due
}

func (s *Server) allFeeds() []*feed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.feeds))
}

// pollOwner queries an owner for the status of feeds, sorted by space. After a query without an answer it
// cancels the others.
func (s *Server) pollOwner(ctx context.Context, owner string, feeds []*feed) {
	slices.SortFunc(feeds, func(a, b *feed) int { return strings.Compare(a.space, b.space) })
	asking, some := errgroup.WithContext(ctx)
	asking.SetLimit(statusQueries)
	for chunk := range slices.Chunk(feeds, statusBatch) {
		asking.Go(func() error {
			found, err := s.queryStatus(some, owner, chunk)
			if err != nil {
				err = cmp.Or(context.Cause(some), err)
			}
			if ctx.Err() == nil {
				applyStatuses(chunk, found, owner, err)
			}
			return err
		})
	}
	_ = asking.Wait() // the error is passed to each feed
}

// applyStatuses passes to each feed its status, or the reason why its owner did not report one.
func applyStatuses(feeds []*feed, found []documentStatus, owner string, err error) {
	now := time.Now()
	for i, f := range feeds {
		switch {
		case err == nil:
			f.applyStatus(found[i], now)
		case isBadRequest(err): // an owner of an earlier version does not know this query
			f.endPoll()
		default:
			f.applyStatus(documentStatus{Stale: unanswered(owner, err), Passing: true}, now)
		}
	}
}

func isBadRequest(err error) bool {
	said, is := errors.AsType[*model.ServiceError](err)
	return is && said.Code == model.CodeBadRequest
}

func unanswered(owner string, err error) string {
	if owner == "" {
		return "no worker serves the space"
	}
	return fmt.Sprintf("worker %s, which is to serve the space, does not answer: %v", owner, err)
}

// queryStatus asks an owner for the status of documents. A worker queries even itself over the bus: otherwise
// it would not notice that it cannot be reached.
func (s *Server) queryStatus(ctx context.Context, owner string, feeds []*feed) (found []documentStatus, err error) {
	if owner == "" {
		return nil, errNoOwner
	}
	o := ownerRequest{Patience: Duration(statusPatience)}
	for _, f := range feeds {
		o.Status = append(o.Status, model.DocumentRef{Space: f.space, Document: f.doc})
	}
	question, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, statusPatience+margin)
	defer cancel()
	reply, err := s.bus.Ask(ctx, ownEndpoint(owner), question)
	if err == nil {
		err = json.Unmarshal(reply, &found)
	}
	if err == nil && len(found) != len(feeds) {
		err = fmt.Errorf("the query names %d documents and the answer %d", len(feeds), len(found))
	}
	return found, err
}

// answerStatus answers a query of another worker, or of this one.
func (s *Server) answerStatus(o *ownerRequest) (out []documentStatus) {
	ctx, cancel := context.WithTimeout(s.ctx, min(time.Duration(o.Patience), patience))
	defer cancel()
	states, _ := s.host.Read(ctx, model.ReadRequest{Documents: o.Status}) // has no error, see Host
	for _, g := range states {
		out = append(out, documentStatus{g.Revision, truncateReason(g.Stale), g.Passing})
	}
	return out
}

// truncateReason shortens a reason so that an answer has room for many of them.
func truncateReason(reason string) string {
	if len(reason) <= maxReason {
		return reason
	}
	return strings.ToValidUTF8(reason[:maxReason], "") + " ..."
}

// problem is a transient reason why a document may be out of date.
type problem struct {
	since    time.Time // the zero time if there is none
	revision uint64
}

// applyStatus records the reported status of the document, and notifies watchers of a change.
func (f *feed) applyStatus(g documentStatus, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.polling = false
	if g.Stale == "" && (f.newest.Kind == "" || g.Revision > max(f.newest.Revision, f.read)) {
		g.Stale, g.Passing = "its value has yet to be read from the log", true
	}
	if !g.Passing {
		f.problem = problem{}
	}
	switch {
	case g.Stale == "":
		f.setStatus(Event{Kind: Current})
	case g.Passing && !f.problem.persists(g.Revision, now):
	default:
		f.setStatus(Event{Kind: Stale, Stale: g.Stale})
	}
}

// persists reports whether the problem has lasted for gracePeriod without a new value.
func (p *problem) persists(revision uint64, now time.Time) bool {
	if p.since.IsZero() || revision > p.revision {
		p.since, p.revision = now, max(revision, p.revision)
	}
	return now.Sub(p.since) >= gracePeriod
}

// startPoll reports whether the feed is due: all are, its status is not known, or a late answer made it miss
// its turn. A feed that is due then counts as queried. apart reports whether it has a transient problem.
func (f *feed) startPoll(all bool, now time.Time) (due, apart bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.polling || !all && f.status.Kind != "" && now.Sub(f.polled) < statusEvery {
		return false, false
	}
	f.polling, f.polled = true, now
	return true, !f.problem.since.IsZero()
}

// endPoll records that the query has ended without a status.
func (f *feed) endPoll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.polling = false
}

// setStatus passes a changed status to the watchers. The lock is held.
func (f *feed) setStatus(e Event) {
	if e.Kind == f.status.Kind && e.Stale == f.status.Stale {
		return
	}
	f.status = e
	for s := range f.subs { // any order: watchers are independent
		s.offerStatus(e)
	}
}
