package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker"
)

// Values come from the log, and the log does not say that one is old: that a computation fails,
// or that nobody serves the space. So the owners of the documents that are watched here are asked
// now and then: one question for up to glanceMany documents of whichever spaces, however many
// watch each of them.

const (
	// glanceEvery is how often a document is looked at. One of which nothing has been said yet is
	// at every beat.
	glanceEvery = 2 * Heartbeat
	// glancePatience is how long an owner may take. What it does not know by then is in doubt.
	glancePatience = time.Second
	// glanceMany bounds a question, and with maxReason an answer, far below the smallest limit of
	// a message that a server is run with.
	glanceMany = 256
	maxReason  = 1 << 10 // bytes
	// lasting is for how long what may pass by itself has to last before who watches is told: a
	// takeover, a handover, a gate that is closed, a value that is on its way.
	lasting = 5 * time.Second
)

// glanced is how a document stands, as it travels.
type glanced struct {
	Revision uint64 `json:"revision,omitempty"`
	Stale    string `json:"stale,omitempty"`
	Passing  bool   `json:"passing,omitempty"`
}

// lookAfter keeps an eye on the documents that are watched here.
func (s *Server) lookAfter(ctx context.Context) {
	for n := 0; pause.For(ctx, Heartbeat) == nil; n++ {
		var asking sync.WaitGroup
		for owner, feeds := range s.dueFeeds(n%int(glanceEvery/Heartbeat) == 0) { // any order: each by itself
			asking.Go(func() { s.glanceAll(ctx, owner, feeds) }) // ends with the answers, or in time
		}
		asking.Wait()
	}
}

// dueFeeds are the feeds to look at, all or those of which nothing has been said, by the owners of
// their spaces.
func (s *Server) dueFeeds(all bool) map[string][]*feed {
	owners, due := map[int]string{}, map[string][]*feed{}
	for _, f := range s.toLookAt(all) {
		p := model.PartitionOf(f.space, s.bus.Partitions())
		owner, known := owners[p]
		if !known { // it is worked out once for all spaces of a partition
			owner = s.host.Owner(f.space)
			owners[p] = owner
		}
		due[owner] = append(due[owner], f)
	}
	return due
}

func (s *Server) toLookAt(all bool) (list []*feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.feeds { // any order: each by itself
		if all || !f.known() {
			list = append(list, f)
		}
	}
	return list
}

// glanceAll asks an owner for feeds. One that does not answer is not asked for the rest.
func (s *Server) glanceAll(ctx context.Context, owner string, feeds []*feed) {
	var err error
	for some := range slices.Chunk(feeds, glanceMany) {
		var found []glanced
		if err == nil {
			found, err = s.glance(ctx, owner, some)
		}
		if ctx.Err() != nil {
			return
		}
		now := time.Now()
		for i, f := range some {
			switch {
			case err == nil:
				f.stands(found[i], now)
			case !isBadRequest(err): // an owner of before this question; it says nothing
				f.stands(glanced{Stale: unanswered(owner, err), Passing: true}, now)
			}
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

// glance asks an owner how documents stand. This worker asks itself over the bus, too: that it
// cannot be reached is something that it would not know.
func (s *Server) glance(ctx context.Context, owner string, feeds []*feed) (found []glanced, err error) {
	if owner == "" {
		return nil, errAlone
	}
	o := own{Patience: Duration(glancePatience)}
	for _, f := range feeds {
		o.Glance = append(o.Glance, worker.Place{Space: f.space, Document: f.doc})
	}
	question, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, glancePatience+margin)
	defer cancel()
	reply, err := s.bus.Ask(ctx, ownEndpoint(owner), question)
	if err == nil {
		err = json.Unmarshal(reply, &found)
	}
	if err == nil && len(found) != len(feeds) {
		err = fmt.Errorf("it was asked for %d documents and told of %d", len(feeds), len(found))
	}
	return found, err
}

// answerGlance answers another worker, or this one.
func (s *Server) answerGlance(o *own) (out []glanced) {
	ctx, cancel := context.WithTimeout(s.ctx, min(time.Duration(o.Patience), patience))
	defer cancel()
	for _, g := range s.host.Glance(ctx, o.Glance) {
		out = append(out, glanced{g.Revision, cut(g.Stale), g.Passing})
	}
	return out
}

// cut keeps a reason short enough for many of them to fit into an answer.
func cut(reason string) string {
	if len(reason) <= maxReason {
		return reason
	}
	return strings.ToValidUTF8(reason[:maxReason], "") + " ..."
}

// doubt is why a document may not be what it should be, as long as that may pass by itself.
type doubt struct {
	since    time.Time // the zero time if there is none
	revision uint64
}

// stands takes in how the document stands.
func (f *feed) stands(g glanced, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if g.Stale == "" && (f.newest.Kind == "" || g.Revision > max(f.newest.Revision, f.read)) {
		g.Stale, g.Passing = "its value has yet to be read from the log", true
	}
	if !g.Passing {
		f.doubt = doubt{}
	}
	switch {
	case g.Stale == "":
		f.say(Event{Kind: Current})
	case g.Passing && !f.doubt.lasts(g.Revision, now):
	default:
		f.say(Event{Kind: Stale, Stale: g.Stale})
	}
}

// lasts reports whether there has been doubt for long, and no new value meanwhile.
func (d *doubt) lasts(revision uint64, now time.Time) bool {
	if d.since.IsZero() || revision > d.revision {
		d.since, d.revision = now, max(revision, d.revision)
	}
	return now.Sub(d.since) >= lasting
}

// known reports whether anything was said of how the document stands.
func (f *feed) known() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.standing.Kind != ""
}

// say tells those who watch how the document stands, if that is news. The lock is held.
func (f *feed) say(e Event) {
	if e.Kind == f.standing.Kind && e.Stale == f.standing.Stale {
		return
	}
	f.standing = e
	for s := range f.subs { // any order: each on its own
		s.hear(e)
	}
}
