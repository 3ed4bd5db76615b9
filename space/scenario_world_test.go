package space

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// stage is the world of one case: the log, lanes and coordinator of world, runtimes that do one thing at a
// time, and the minutes of what they did.
type stage struct {
	*world
	minutes
	now     time.Duration
	clock   clock
	scripts map[string]*script
	// mentions reports whether the case has a name outside of what it expects, nil if that is not known.
	mentions func(name string) bool
	// observed are the saved observations by space.
	observed map[string][]Observation
	actors   []*actor
	// published are the appends that the log has not answered, in order of arrival.
	published []published
	// whole has the saved states that were damaged, as they were before.
	whole map[string]model.SpaceState
	// inquired reports that everything is recorded and queried all the time.
	inquired bool
}

// published is an append on its way. life is the actor's incarnation that made it: a process that died does
// not receive the answer.
type published struct {
	actor *actor
	life  int
	what  *Append
}

// actor is one runtime with one space.
type actor struct {
	*stage
	name   string // runtime.space
	cfg    Config
	core   *Space
	life   int
	answer *answered
	// inbox are the lane events that have not reached this runtime.
	inbox   []model.Event
	follows []follow
	runs    map[string]uint64 // as printed by the last runs command
	wake    time.Duration
	due     int64 // by the clock, 0 if nothing waits for it
	// background is unfinished work, by name; errors have not been printed yet, worked has the counters as
	// they were last printed.
	background map[string]func()
	errors     []string
	worked     Stats
	// durable has the calls of OnDurable since they were last printed.
	durable []string
	// operator has what an operator is notified of, and was not printed yet.
	operator []string

	// State of the minutes.
	passes     int
	inPass     bool
	iterations int
	round      int
	depth      int
	via        string
	order      []string            // the nodes that have run in the last pass, as their runs began
	steps      []string            // likewise, with the events at each attempt
	saw        map[string]string   // what the latest runs of effects have seen
	reasons    map[string][]string // the causes of the latest runs
}

// answered is the log's answer to an append; seq is 0 for a refusal.
type answered struct {
	what *Append
	seq  uint64
}

// follow is a foreign document that a runtime mirrors.
type follow struct {
	ref   Ref
	known bool
	value model.Value
}

func newStage(t tester) *stage {
	return &stage{world: newWorld(t), scripts: map[string]*script{}}
}

func (s *stage) addActor(name string, cfg Config) (*actor, error) {
	var ok bool
	cfg.Runtime, cfg.Space, ok = strings.Cut(name, ".")
	if !ok {
		return nil, fmt.Errorf("%s: a runtime is named runtime.space", name)
	}
	if s.find(name) != nil {
		return nil, fmt.Errorf("%s is there already", name)
	}
	a := &actor{stage: s, name: name, cfg: cfg}
	a.cfg.Trace = a.hooks()
	s.actors = append(s.actors, a)
	return a, a.load()
}

func (s *stage) find(name string) *actor {
	for _, a := range s.actors {
		if a.name == name {
			return a
		}
	}
	return nil
}

// script returns the program of a space, empty if none was registered.
func (s *stage) script(space string) *script {
	if s.scripts[space] == nil {
		s.scripts[space], _ = parseScript(space, "")
	}
	return s.scripts[space]
}

// load starts an incarnation from the checkpoint and the log alone.
func (a *actor) load() error {
	a.core = nil // until it is loaded: the process before is gone
	r, err := replica.Load(a.cfg.Space, a.saved[a.cfg.Space])
	if err != nil {
		return err
	}
	a.core, err = New(a.cfg, a.script(a.cfg.Space).Program, a.replay(r))
	if err != nil {
		return err
	}
	a.core.Rehydrate(a.observed[a.cfg.Space])
	a.life++
	a.passes, a.saw, a.reasons = 0, map[string]string{}, map[string][]string{}
	a.worked = Stats{}
	a.listen()
	a.answer, a.follows, a.inbox, a.runs, a.wake = nil, nil, nil, map[string]uint64{}, 0
	a.due = 0
	for _, ev := range a.lanes[a.cfg.Space] {
		if ev.Lane > a.core.ReadLaneAfter() {
			a.inbox = append(a.inbox, ev)
		}
	}
	return nil
}

// post puts an event into its lane.
func (s *stage) post(ev model.Event) {
	s.publish(ev)
	s.deliverTo(s.lanes[ev.Space][len(s.lanes[ev.Space])-1])
}

func (s *stage) deliverTo(ev model.Event) {
	for _, a := range s.actors {
		if a.cfg.Space == ev.Space && a.core != nil {
			a.inbox = append(a.inbox, ev)
		}
	}
}

// settle calls the core once and does what it requests, except for deciding the append.
func (a *actor) settle() Ready {
	a.inPass = false
	r, alive := a.outlive()
	a.flush()
	if !alive {
		a.tell(a, 1, "dies")
		if err := a.load(); err != nil {
			a.t.Fatalf("%s: %v", a.name, err)
		}
		return Ready{}
	}
	if r.Append != nil {
		a.tell(a, 1, "append %s behind %d: %s", commitName(r.Append.Commit), r.Append.Expect, contents(r.Append.Commit))
		a.published = append(a.published, published{a, a.life, r.Append})
	}
	for _, ref := range r.Follow {
		a.tell(a, 1, "follow @%s/%s", ref.Space, ref.Doc)
		a.follows = append(a.follows, follow{ref: ref})
	}
	for _, ref := range r.Unfollow {
		a.tell(a, 1, "unfollow @%s/%s", ref.Space, ref.Doc)
		a.follows = slices.DeleteFunc(a.follows, func(f follow) bool { return f.ref == ref })
	}
	if r.Refill != nil {
		a.refill(r.Refill.After)
	}
	for _, n := range r.Undone {
		a.tell(a, 1, "undone: tx %d of the application", n)
	}
	if r.Wake != a.wake && r.Wake != 0 {
		a.tell(a, 1, "wake at %s", r.Wake)
	}
	a.wake = r.Wake
	a.tellDue(r.Due)
	checkGraph(a.t, a.core.graph)
	if a.inquired {
		inquire(a.core)
	}
	return r
}

// outlive settles, and reports whether the process is still alive: a function may have called die().
func (a *actor) outlive() (r Ready, alive bool) {
	done := make(chan struct{})
	go func() { // ends with the call, or in the middle of it
		defer close(done)
		if a.clock.set {
			a.core.Clock(a.clock.now())
		}
		r = a.core.Settle(a.now)
		alive = true
	}()
	<-done
	return r, alive
}

// refill reads the lane again from a place.
func (a *actor) refill(after uint64) {
	a.tell(a, 1, "refill behind %d", after)
	for _, ev := range a.lanes[a.cfg.Space] {
		if ev.Lane > after && !a.offer(ev) {
			return
		}
	}
}

// offer passes an event to the core and reports what happens to it.
func (a *actor) offer(ev model.Event) bool {
	waiting, held := a.core.ledger.Lane().Waiting(), a.core.ledger.Lane().Held()
	ok := a.core.Offer(ev)
	what := "known already"
	switch {
	case !ok:
		what = "left in the stream for want of room"
	case a.core.ledger.Lane().Held() > held:
		what = "held until its predecessor is here"
	case a.core.ledger.Lane().Waiting() > waiting:
		what = "queued"
	}
	a.tell(a, 1, "event %s on %s: %s", ev.ID, ev.Stream, what)
	return ok
}

// runAll runs until the core waits for something from outside.
func (a *actor) runAll() {
	a.t.Helper()
	for range 1000 {
		if !a.settle().More {
			if a.core.ledger.Closed() || a.core.ledger.Epoch() != 0 && a.core.Idle() && (a.core.ledger.Lane().Done() || a.cfg.WithoutEvents) {
				a.tellIdle(a)
			}
			return
		}
	}
	a.t.Fatalf("%s: Ready.More without end", a.name)
}

// decide makes the log accept or refuse what was published by one actor, or by all.
func (s *stage) decide(who []*actor) {
	rest := s.published
	s.published = nil
	for _, p := range rest {
		if !slices.Contains(who, p.actor) {
			s.published = append(s.published, p)
			continue
		}
		space := p.actor.cfg.Space
		name := commitName(p.what.Commit)
		seq := s.append(space, p.what)
		if seq == 0 {
			s.tellBus("log.%s refuses %s, the head is %d", space, name, s.head(space))
		} else {
			s.tellBus("log.%s takes %s at %d", space, name, seq)
		}
		if p.life == p.actor.life && p.actor.core != nil {
			p.actor.answer = &answered{p.what, seq}
		}
	}
}

// receive processes what the log, the lane and, unless mirrors is false, other spaces have for this runtime.
func (a *actor) receive(mirrors bool) {
	a.t.Helper()
	if a.answer != nil {
		a.hear()
	}
	if a.core.Settled() {
		a.integrate()
	}
	a.read()
	if mirrors {
		a.mirror()
	}
	a.flush()
}

// read processes the lane's events.
func (a *actor) read() {
	inbox := a.inbox
	a.inbox = nil
	if a.cfg.WithoutEvents {
		return
	}
	for _, ev := range inbox {
		a.offer(ev)
	}
}

// hear processes the answer to the append.
func (a *actor) hear() {
	ans := a.answer
	a.answer = nil
	name := commitName(ans.what.Commit)
	if ans.seq != 0 {
		if err := a.core.Confirm(ans.seq); err != nil {
			a.t.Fatalf("%s: confirm: %v", a.name, err)
		}
		a.tell(a, 1, "confirmed %s at %d", name, ans.seq)
		return
	}
	a.tell(a, 1, "refused %s", name)
	a.via = "revert"
	a.core.Refuse()
	a.flush()
	a.integrate()
	a.core.Resume()
	switch c := ans.what.Commit; { // as a host does: what set out to own the space, or to take part, sets out again
	case a.core.Owned() || a.core.Deposed():
	case c.Takeover:
		a.core.TakeOver()
	case c.Join:
		a.core.Attach()
	}
}

// integrate applies the commits of other runtimes.
func (a *actor) integrate() {
	a.via = "integrate"
	owned := a.core.Owned()
	for _, e := range a.logs[a.cfg.Space] {
		if e.Seq <= a.core.Seq() {
			continue
		}
		a.tell(a, 1, "integrate %d, %s: %s", e.Seq, commitName(a.commit(e)), contents(a.commit(e)))
		if err := a.core.Integrate(e); err != nil {
			a.t.Fatalf("%s: integrate: %v", a.name, err)
		}
		a.flush()
	}
	if owned && a.core.Deposed() {
		a.tell(a, 1, "deposed")
	}
	a.via = ""
}

// mirror delivers followed documents that are new or have changed.
func (a *actor) mirror() {
	a.via = "mirror"
	for i := range a.follows {
		f := &a.follows[i]
		v := a.replica(f.ref.Space).Doc(f.ref.Doc).Value
		if f.known && model.Equal(f.value, v) {
			continue
		}
		if !f.known {
			a.tell(a, 1, "mirror @%s/%s: %s", f.ref.Space, f.ref.Doc, show(v))
		}
		f.known, f.value = true, v
		a.core.MirrorVia(f.ref.Space, f.ref.Doc, v, a.trail(f.ref))
		a.flush()
	}
	a.via = ""
}

// trail returns the trail of the last change of a document.
func (a *actor) trail(ref Ref) *model.Trail {
	return (&world{t: a.t, logs: a.logs}).trail(ref)
}

// coordinate does what the coordinator does: it releases what was committed for other spaces. again starts
// from the first entry, like a coordinator that lost its position; reverse makes the later ones arrive first.
func (s *stage) coordinate(again, reverse bool) {
	var events []model.Event
	for _, space := range sortedKeys(s.logs) {
		from := s.released[space]
		if again {
			from = 0
		}
		for _, e := range s.logs[space][from:] {
			for _, tx := range s.commit(e).Txs {
				for _, send := range tx.Sends {
					if send.To != space {
						events = append(events, send.Event())
					}
				}
			}
		}
		s.released[space] = len(s.logs[space])
	}
	if reverse {
		slices.Reverse(events)
	}
	for _, ev := range events {
		s.post(ev)
		s.tellBus("lane.%s takes %s on %s, released", ev.Space, ev.ID, ev.Stream)
	}
}

// stabilize does everything that can be done at this time, and checks the result.
func (s *stage) stabilize(who []*actor) {
	s.t.Helper()
	for range 1000 {
		before := s.len()
		for _, a := range who {
			a.receive(true)
			a.runAll()
		}
		s.decide(who)
		s.coordinate(false, false)
		if s.len() == before {
			for _, a := range who {
				a.checkCurrent()
			}
			return
		}
	}
	s.t.Fatalf("no fixed point after 1000 rounds")
}
