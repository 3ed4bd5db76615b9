package console

import (
	"context"
	"crypto/rand"
	"fmt"
	"hash/maphash"
	"html/template"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/internal/pause"
)

// hub has the topics: the addresses that are shown, by rights.
type hub struct {
	c    *Console
	seed maphash.Seed

	mu     sync.Mutex
	topics map[string]*topic
}

func newHub(c *Console) *hub {
	return &hub{c: c, seed: maphash.MakeSeed(), topics: map[string]*topic{}}
}

const (
	// maxTopics bounds the addresses that are kept at a time.
	maxTopics = 2000
	// kept is how long a topic is kept after its last use.
	kept = 30 * time.Second
	// fresh is how old what an open page shows may be when another visitor opens it.
	fresh = 400 * time.Millisecond
	// pace is the shortest time between two loads of an open page, and ease how many times as long as a load has taken: a page whose load takes
	// long, as a tree of a thousand events does, is loaded less often.
	pace = 500 * time.Millisecond
	ease = 3
	// maxEase bounds that.
	maxEase = 10 * time.Second
)

// topic is one address, as visitors with the same rights see it.
type topic struct {
	hub  *hub
	page *page
	key  string
	// epoch tells it from a topic of the same address in another process, or at another time.
	epoch string
	view  view
	q     *query // of the view; its visitor changes between loads only

	// loading is held during a load.
	loading sync.Mutex

	mu sync.Mutex
	// visitor is the one that has asked last.
	visitor *gateway.Visitor
	last    *version
	// failed is why the last load failed, nil if it did not, and since the time of the first failure after the last success.
	failed  error
	since   time.Time
	changed chan struct{} // closed at the next version or failure
	dirty   bool
	used    time.Time
	streams int
	stop    context.CancelFunc // ends the loop, while there are streams
	wake    chan struct{}
}

// version is what a topic showed at one time.
type version struct {
	number uint64
	at     time.Time
	took   time.Duration
	shown  *shown
	parts  []rendered
}

// rendered is a part, and the version in which it became what it is.
type rendered struct {
	id, html, within, stamp, key string
	sum, since                   uint64
}

// html returns the html of a part, "" if there is none.
func (v *version) html(id string) (string, bool) {
	for i := range v.parts {
		if v.parts[i].id == id {
			return v.parts[i].html, true
		}
	}
	return "", false
}

// topic returns the topic of an address.
func (h *hub) topic(p *page, q *query) (*topic, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	key := q.visitor.Key() + " " + q.at.String()
	if t := h.topics[key]; t != nil {
		t.mu.Lock()
		t.used, t.visitor = now, q.visitor
		t.mu.Unlock()
		return t, nil
	}
	h.sweep(now)
	if len(h.topics) >= maxTopics {
		return nil, fmt.Errorf("%d pages are open, the limit of one console; try again later", maxTopics)
	}
	v, err := p.open(h.c, q)
	if err != nil {
		return nil, err
	}
	t := &topic{hub: h, page: p, key: key, epoch: rand.Text()[:8], view: v, q: q, visitor: q.visitor, changed: make(chan struct{}), wake: make(chan struct{}, 1), used: now}
	h.topics[key] = t
	return t, nil
}

// sweep forgets topics that are not used.
func (h *hub) sweep(now time.Time) {
	for key, t := range h.topics { // any order
		t.mu.Lock()
		if t.streams == 0 && now.Sub(t.used) > kept {
			delete(h.topics, key)
		}
		t.mu.Unlock()
	}
}

// stale makes all topics load again: an action has changed something.
func (h *hub) stale() {
	h.c.trees.stale()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.topics { // any order
		t.mu.Lock()
		t.dirty = true
		t.mu.Unlock()
		t.nudge()
	}
}

func (t *topic) nudge() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// state returns the newest version, nil if there is none yet, since when it is out of date and why, and a channel that is closed when that changes.
func (t *topic) state() (v *version, since time.Time, changed <-chan struct{}, failed error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last, t.since, t.changed, t.failed
}

// current returns a version that is not older than fresh. If it cannot be loaded, an earlier one stands in.
func (t *topic) current(ctx context.Context) (*version, error) {
	t.loading.Lock()
	defer t.loading.Unlock()
	t.mu.Lock()
	v, dirty := t.last, t.dirty
	t.mu.Unlock()
	if v != nil && !dirty && time.Since(v.at) < fresh {
		return v, nil
	}
	if err := t.loadLocked(ctx); err != nil && (v == nil || isA[*missing](err) || isA[*forbidden](err)) {
		return nil, err
	}
	v, _, _, _ = t.state()
	return v, nil
}

// load loads and renders a version.
func (t *topic) load(ctx context.Context) error {
	t.loading.Lock()
	defer t.loading.Unlock()
	return t.loadLocked(ctx)
}

func (t *topic) loadLocked(ctx context.Context) error {
	t.mu.Lock()
	t.dirty = false
	if again := t.visitor.Again(); again != nil {
		t.q.visitor = again
	}
	last := t.last
	t.mu.Unlock()
	at := time.Now()
	var s *shown
	err := t.hub.c.reachable()
	if err == nil {
		s, err = t.view.load(ctx)
	}
	var parts []rendered
	if err == nil {
		parts, err = t.render(s, last)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		if t.failed == nil {
			t.since = at
		}
		announce := t.failed == nil || t.failed.Error() != err.Error()
		t.failed = err
		if announce {
			t.announce()
		}
		return err
	}
	recovered := t.failed != nil
	t.failed = nil
	v := &version{number: 1, at: at, took: time.Since(at), shown: s, parts: parts}
	if last != nil {
		v.number = last.number
		if slices.ContainsFunc(parts, func(p rendered) bool { return p.since > last.number }) {
			v.number++
		}
	}
	t.last = v
	if recovered || last == nil || v.number != last.number {
		t.announce()
	}
	return nil
}

// announce wakes those that wait for a change.
func (t *topic) announce() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// render renders the parts, and compares them with those of the last version.
func (t *topic) render(s *shown, last *version) ([]rendered, error) {
	all := append([]part{{ID: "heading", Template: "heading", Data: s}}, s.Parts...)
	was := map[string]*rendered{}
	next := uint64(1)
	if last != nil {
		next = last.number + 1
		for i := range last.parts {
			was[last.parts[i].id] = &last.parts[i]
		}
	}
	inner := map[string]template.HTML{}
	out := make([]rendered, len(all))
	for i := range all { // those that others contain come first
		if err := t.renderOne(&all[i], &out[i], was[all[i].ID], next, inner, true); err != nil {
			return nil, err
		}
	}
	for i := range all {
		if err := t.renderOne(&all[i], &out[i], was[all[i].ID], next, inner, false); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// renderOne renders a part, if it is one that others contain or is not, as contained says. before is the same part in the last version, nil if
// there is none. inner receives what contained parts look like.
func (t *topic) renderOne(p *part, r *rendered, before *rendered, next uint64, inner map[string]template.HTML, contained bool) error {
	if contained != (p.Within != "") {
		return nil
	}
	*r = rendered{id: p.ID, within: p.Within, stamp: p.Stamp, key: p.Key, since: next}
	if before != nil && p.Key != "" && before.key == p.Key {
		r.html, r.sum, r.since = before.html, before.sum, before.since
	} else {
		if c, is := p.Data.(container); is {
			c.contain(inner)
		}
		var err error
		if r.html, err = t.hub.c.looks.part(p); err != nil {
			return err
		}
		r.sum = maphash.String(t.hub.seed, r.html)
		if before != nil && (before.sum == r.sum || p.Stamp != "" && before.stamp == p.Stamp) {
			r.since = before.since
		}
	}
	if contained {
		inner[p.ID] = template.HTML(r.html) //nolint:gosec // rendered by a template
	}
	return nil
}

// open counts a stream, and starts the loop for the first one.
func (t *topic) open() (leave func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.streams++
	if t.streams == 1 {
		ctx, cancel := context.WithCancel(t.hub.c.ctx)
		t.stop = cancel
		t.hub.c.tasks.Go(func() { t.loop(ctx) }) // ends with the last stream, or with the console
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.used = time.Now()
		if t.streams--; t.streams == 0 {
			t.stop()
		}
	}
}

// loop loads the page while it is open.
func (t *topic) loop(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	if t.view.watch != nil {
		watching.Go(func() { t.view.watch(ctx, t.nudge) }) // ends with ctx
	}
	for {
		if !t.rest(ctx) {
			return
		}
		within, cancel := context.WithTimeout(ctx, patience)
		err := t.load(within)
		cancel()
		if err != nil && ctx.Err() == nil {
			t.hub.c.log.Debug("load a page of the console", "page", t.page.name, "error", err)
		}
	}
}

// restAfter returns the shortest time between a load and the next one, after one that has taken a time.
func restAfter(took time.Duration) time.Duration { return max(pace, min(ease*took, maxEase)) }

// rest waits until the page is due: after a change or after its interval, and not before its pace. It returns false when ctx ends.
func (t *topic) rest(ctx context.Context) bool {
	every, least := t.view.every, pace
	v, _, _, failed := t.state()
	if failed != nil {
		every = 2 * time.Second
	}
	if v != nil {
		least = restAfter(v.took)
	}
	var due <-chan time.Time
	if every > 0 {
		timer := time.NewTimer(max(every, least))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-due:
		return true
	case <-t.wake:
	}
	if v == nil {
		return true
	}
	return pause.For(ctx, v.took+least-time.Since(v.at)) == nil
}

// newer returns the parts that have changed since a version, in order. A part within another one that is returned is left out.
func (v *version) newer(seen uint64) (out []*rendered) {
	whole := map[string]bool{}
	for i := range v.parts {
		p := &v.parts[i]
		if p.since > seen && !whole[p.within] {
			out = append(out, p)
		}
		if p.since > seen {
			whole[p.id] = true
		}
	}
	return out
}

// seenOf returns the version number that a browser has of this topic, 0 if it has none.
func (t *topic) seenOf(text string) (n uint64) {
	epoch, number, _ := strings.Cut(text, "-")
	if epoch != t.epoch {
		return 0
	}
	_, _ = fmt.Sscan(number, &n) // 0 for what is no number
	return n
}

func (t *topic) stamp(v *version) string { return fmt.Sprintf("%s-%d", t.epoch, v.number) }
