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
	// glanceAtOnce bounds the questions that an owner is asked at a time: one of a space that does
	// not answer takes all the patience that there is.
	glanceAtOnce = 8
	maxReason    = 1 << 10 // bytes
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

// lookAfter keeps an eye on the documents that are watched here. It waits for nobody: what is
// being asked for is left out until that is answered.
func (s *Server) lookAfter(ctx context.Context) {
	var asking sync.WaitGroup
	defer asking.Wait()
	for n := 0; pause.For(ctx, Heartbeat) == nil; n++ {
		for whom, feeds := range s.dueFeeds(n%int(glanceEvery/Heartbeat) == 0) { // any order: each by itself
			asking.Go(func() { s.glanceAll(ctx, whom.owner, feeds) }) // ends with the answers, or in time
		}
	}
}

// asked is who is asked. What is in doubt is asked for by itself: its spaces may take all the
// patience that there is, and the others are not to wait for them.
type asked struct {
	owner string
	doubt bool
}

// dueFeeds are the feeds to look at, all or those of which nothing has been said, by the owners of
// their spaces.
func (s *Server) dueFeeds(all bool) map[asked][]*feed {
	owners, due, now := map[int]string{}, map[asked][]*feed{}, time.Now()
	for _, f := range s.watched() {
		is, doubt := f.toLookAt(all, now)
		if !is {
			continue
		}
		p := model.PartitionOf(f.space, s.bus.Partitions())
		owner, known := owners[p]
		if !known { // it is worked out once for all spaces of a partition
			owner = s.host.Owner(f.space)
			owners[p] = owner
		}
		whom := asked{owner, doubt}
		due[whom] = append(due[whom], f)
	}
	return due
}

func (s *Server) watched() []*feed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.feeds))
}

// glanceAll asks an owner for feeds, those of a space together. One that does not answer is not
// asked for the rest.
func (s *Server) glanceAll(ctx context.Context, owner string, feeds []*feed) {
	slices.SortFunc(feeds, func(a, b *feed) int { return strings.Compare(a.space, b.space) })
	asking, some := errgroup.WithContext(ctx)
	asking.SetLimit(glanceAtOnce)
	for chunk := range slices.Chunk(feeds, glanceMany) {
		asking.Go(func() error {
			found, err := s.glance(some, owner, chunk)
			if err != nil {
				err = cmp.Or(context.Cause(some), err)
			}
			if ctx.Err() == nil {
				answered(chunk, found, owner, err)
			}
			return err
		})
	}
	_ = asking.Wait() // each feed was told of it
}

// answered tells feeds how they stand, or that their owner does not say.
func answered(feeds []*feed, found []glanced, owner string, err error) {
	now := time.Now()
	for i, f := range feeds {
		switch {
		case err == nil:
			f.stands(found[i], now)
		case isBadRequest(err): // an owner of before this question; it says nothing
			f.silent()
		default:
			f.stands(glanced{Stale: unanswered(owner, err), Passing: true}, now)
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
		o.Glance = append(o.Glance, model.DocumentRef{Space: f.space, Document: f.doc})
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
	states, _ := s.host.Read(ctx, model.ReadRequest{Documents: o.Glance}) // has no error, see Host
	for _, g := range states {
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
	f.asked = false
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

// toLookAt reports whether the feed is due: if all are, if nothing has been said of it yet, or if
// it was passed over because an answer was late. It counts as asked for then. Doubt is whether
// there is any.
func (f *feed) toLookAt(all bool, now time.Time) (due, doubt bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked || !all && f.standing.Kind != "" && now.Sub(f.looked) < glanceEvery {
		return false, false
	}
	f.asked, f.looked = true, now
	return true, !f.doubt.since.IsZero()
}

// silent says that nothing is said of how the document stands.
func (f *feed) silent() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = false
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
