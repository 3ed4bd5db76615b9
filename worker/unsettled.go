package worker

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/space/inspect"
	"github.com/settlehq/settle/status"
)

// unsettled are the spaces of a worker in which nodes do not converge.
type unsettled struct {
	mu sync.Mutex
	by map[turning]*status.Unsettled
}

// turning names an episode: a space, and the way round of a circle over several spaces, "" for nodes of the space.
type turning struct{ space, round string }

func turningOf(s *status.Unsettled) turning { return turning{s.Space, strings.Join(s.Through, " ")} }

// maxUnsettled is how many of them a worker reports, and maxUnsettledNodes how many nodes of each.
const (
	maxUnsettled      = 20
	maxUnsettledNodes = 10
)

func (u *unsettled) begin(s *status.Unsettled) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.by == nil {
		u.by = map[turning]*status.Unsettled{}
	}
	u.by[turningOf(s)] = s
}

// end removes an episode, unless another one of the space has begun.
func (u *unsettled) end(s *status.Unsettled) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.by[turningOf(s)] == s {
		delete(u.by, turningOf(s))
	}
}

// describe adds those that have lasted for longest to the figures of the worker.
func (u *unsettled) describe(f *status.Figures) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range u.by { // any order: sorted below
		f.Unsettled = append(f.Unsettled, *s)
	}
	slices.SortFunc(f.Unsettled, func(a, b status.Unsettled) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Space, b.Space), slices.Compare(a.Through, b.Through))
	})
	f.UnsettledCount = len(f.Unsettled)
	f.Unsettled = f.Unsettled[:min(len(f.Unsettled), maxUnsettled)]
}

// episode is a stretch of passes that defer nodes. Most often they do not converge; but a long wave of changes is
// deferred, too, and ends by itself: nodes that are made level by level, or values that are refined step by step.
type episode struct {
	// deferred are the nodes with which an episode began that is not reported yet; nil if there is none.
	deferred []string
	// looked reports that there was no way round when it began; passes counts the passes that have deferred nodes since.
	looked bool
	passes int
	// gated reports that this pass has deferred nodes.
	gated  bool
	now    *status.Unsettled // what is reported, nil if nothing is
	forget func() bool
}

// longWave is the number of passes from which an episode is reported although no way leads round.
const longWave = 10

func (e *episode) begin(nodes []string) {
	e.deferred, e.looked, e.passes = slices.Clone(nodes), false, 0
}

// follow reports the beginning and the end of episodes. It is called after each pass.
func (c *core) follow() {
	e := &c.episode
	if e.gated {
		e.gated = false
		e.passes++
	}
	over := !c.Recorder().NonConverging()
	if e.now != nil && (e.deferred != nil || over) {
		e.forget()
		c.engine.unsettled.end(e.now)
		e.now = nil
	}
	if over {
		e.deferred = nil
	}
	if e.deferred == nil || e.looked && e.passes < longWave {
		return
	}
	nodes := e.deferred[:min(len(e.deferred), maxUnsettledNodes)]
	way := wayRound(c.Inspect(), nodes)
	if e.looked = true; way == nil && e.passes < longWave {
		return
	}
	s := &status.Unsettled{Space: c.of.Space, Nodes: nodes, Count: len(e.deferred), Since: time.Now().UTC(), Way: way}
	e.deferred = nil
	c.of.Warn("computations do not converge: each run changes what makes another one run; they are held back, up to 30 s at a time", c.of.Space,
		"space", c.of.Space, "nodes", strings.Join(nodes, ", "), "deferred", s.Count, "round", s.Round())
	e.now = s
	e.forget = context.AfterFunc(c.of.Ctx, func() { c.engine.unsettled.end(s) })
	c.engine.unsettled.begin(s)
}

// wayRound returns a way round on which one of the nodes lies, nil if there is none.
func wayRound(s *inspect.Snapshot, nodes []string) []string {
	for _, id := range nodes {
		if way := s.WayRound(id); way != nil {
			return way
		}
	}
	return nil
}

// roundEpisode is a circle over several spaces that this space reports.
type roundEpisode struct {
	now    *status.Unsettled
	forget func() bool
}

// round reports the beginning and the end of a circle over several spaces. It is called during a pass.
func (c *core) round(i space.RoundInfo) {
	s := &status.Unsettled{Space: c.of.Space, Through: i.Docs, Since: time.Now().UTC()}
	key := turningOf(s).round
	if e, known := c.rounds[key]; known {
		e.forget()
		c.engine.unsettled.end(e.now)
		delete(c.rounds, key)
	}
	if i.Over {
		return
	}
	for _, at := range i.Docs {
		if doc, here := strings.CutPrefix(at, c.of.Space+"/"); here {
			s.Nodes = append(s.Nodes, doc)
		}
	}
	s.Count = len(s.Nodes)
	c.of.Warn("computations of several spaces do not converge: each changes what another one reads; their pace is limited, to a step in up to 30 s", c.of.Space,
		"space", c.of.Space, "documents", strings.Join(i.Docs, ", "), "steps", i.Steps, "round", s.Round())
	if c.rounds == nil {
		c.rounds = map[string]roundEpisode{}
	}
	c.rounds[key] = roundEpisode{s, context.AfterFunc(c.of.Ctx, func() { c.engine.unsettled.end(s) })}
	c.engine.unsettled.begin(s)
}
