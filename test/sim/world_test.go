package sim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/runs"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// world is one run of a plan.
type world struct {
	plan   *plan
	server *membus.Server
	story  *story

	// mu guards the following fields. Nothing may block, and no process may be ended, while it is held.
	mu        sync.Mutex
	procs     map[string]*process // by slot, the last of each
	all       []*process
	ops       []*op
	watches   []*watch
	healed    bool
	edition   int // that is deployed
	storeFull bool
	requests  int
	commits   uint64 // a sum over what was appended, see writeDigests
	appends   int
	runs      int
	flights   map[string]map[*process]bool // appends that have left, per space
	astray    [][]model.Message            // events that were put into lanes of other partitions, per lane
	booked    map[time.Duration]bool       // see book
	deaths    map[eventKey]int             // attempts at deadly events
	over      bool                         // everything is about to end
	folds     map[string]*fold
	outside   outside
	saves     map[string]map[*process]int // that are under way, per space
	attempts  map[eventKey]*attempts      // at what hangs
	hangings  map[*hanging]bool
	rested    map[space.Ref]bool    // nodes that were given up
	givenUp   map[*space.Guard]bool // guards of hosts whose code returned after it was given up
	deeds     deedsDone
	calls     map[string]bool // the names of all calls of children
	sets      map[int]*runs.Set
	running   sync.WaitGroup

	tally  sync.Mutex // of what follows
	counts map[string]int
	wrong  []violation
}

// violation describes a broken promise.
type violation struct{ check, text string }

func (v violation) String() string { return v.check + ": " + v.text }

func (w *world) violate(check, format string, args ...any) {
	v := violation{check, fmt.Sprintf(format, args...)}
	w.story.note("CHECK", "%s", v)
	w.tally.Lock()
	defer w.tally.Unlock()
	if len(w.wrong) < 20 {
		w.wrong = append(w.wrong, v)
	}
}

// count counts an occurrence of something that must happen sometimes.
func (w *world) count(what string) {
	w.tally.Lock()
	defer w.tally.Unlock()
	w.counts[what]++
}

// process is one life of a worker, a coordinator or a client.
type process struct {
	who, name string // the slot, and the life
	id        string // of a worker or an attachment
	bus       *membus.Bus
	ctx       context.Context
	cancel    context.CancelFunc
	worker    *worker.Worker
	answers   *live.Server // beside the worker; nil if it has none
	coord     *coordinator.Coordinator
	client    *settle.Client
	sender    *settle.Sender
	// for an application: its space, and a channel that is closed once it is attached
	space      string
	attachment *worker.Attachment
	attached   chan struct{}
	armed      *item // a crash that is to come
	doomed     bool  // it is coming
	up         bool  // it has started, and was not ended
	paused     bool
	edition    int           // that it runs
	deploys    []*item       // see deployAt
	runLimit   time.Duration // see hangs
	tried      map[eventKey]int
	left       time.Duration // when it was asked to, 0 if it was not
	died       time.Duration // 0 while it lives
}

// newWorld makes the world of a plan; it lives in a bubble of virtual time.
func newWorld(p *plan, verbose bool) *world {
	w := &world{
		plan: p, story: newStory(verbose),
		server: membus.NewServer(membus.Config{Partitions: p.partitions, MaxPayload: p.maxPayload()}),
		procs:  map[string]*process{}, folds: map[string]*fold{}, counts: map[string]int{},
		flights: map[string]map[*process]bool{}, astray: make([][]model.Message, p.partitions), booked: map[time.Duration]bool{}, outside: newOutside(), deaths: map[eventKey]int{},
		saves: map[string]map[*process]int{}, attempts: map[eventKey]*attempts{}, hangings: map[*hanging]bool{}, rested: map[space.Ref]bool{}, givenUp: map[*space.Guard]bool{},
		deeds: newDeedsDone(), calls: map[string]bool{}, sets: map[int]*runs.Set{},
	}
	w.server.Remember()
	for i := range p.spaces {
		w.folds[spaceName(i)] = newFold(w, spaceName(i))
	}
	return w
}

// run runs the plan, and stores a violation in w.wrong.
func (w *world) run() {
	for i := 1; i <= users; i++ {
		w.start(item{at: 0, who: fmt.Sprint("u", i)})
	}
	for _, i := range w.plan.items {
		w.until(i.at)
		w.do(i)
	}
	w.until(w.plan.chaos)
	w.heal()
	rest := w.rest() && w.upgrade()
	if rest {
		w.checkHangs()
	}
	w.end()
	if rest {
		w.check()
	}
}

// until lets time pass.
func (w *world) until(at time.Duration) {
	if d := at - w.story.now(); d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		<-timer.C
	}
}

func (w *world) do(i item) {
	w.mu.Lock()
	p := w.procs[i.who]
	alive, dead := p != nil && p.up, p == nil || p.died > 0
	w.mu.Unlock()
	w.story.note("PLAN", "%s", i)
	switch i.do {
	case "start":
		if dead {
			w.start(i)
		}
	case "deploy":
		w.deploy(i)
	case "rebuild":
		w.rebuild()
	case "lanes-full":
		w.server.LimitLanes(1)
		w.later(i.span, func() { w.server.LimitLanes(0) })
	case "store-full":
		w.set(&w.storeFull, true)
		w.later(i.span, func() { w.set(&w.storeFull, false) })
	default:
		if alive {
			w.doTo(p, i)
		}
	}
}

func (w *world) later(d time.Duration, f func()) {
	time.AfterFunc(d, func() {
		w.mu.Lock()
		healed := w.healed
		w.mu.Unlock()
		if !healed {
			f()
		}
	})
}

// set changes a part of the shared state.
func (w *world) set(flag *bool, to bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*flag = to
}

func (w *world) doTo(p *process, i item) {
	switch i.do {
	case "kill":
		w.kill(p, "is killed")
	case "crash":
		w.mu.Lock()
		if p.armed == nil {
			p.armed = &i
		}
		w.mu.Unlock()
	case "leave":
		w.leave(p)
	case "pause":
		w.count("pauses")
		w.set(&p.paused, true)
		p.bus.Pause()
		w.later(i.span, func() { w.story.note(p.name, "wakes up"); w.set(&p.paused, false); p.bus.Wake() })
	case "cut":
		p.bus.Cut(i.a, i.b)
		w.later(i.span, func() { w.story.note(p.name, "is connected again"); p.bus.Cut(false, false) })
	case "watch":
		w.watch(p, i)
	case "rush":
		w.rush(p)
	case "deploy-at":
		w.mu.Lock()
		if !w.plan.isNewest() {
			p.deploys = nil // in these the last one counts
		}
		p.deploys = append(p.deploys, &i)
		w.mu.Unlock()
	case "observe":
		w.running.Go(func() { // ends with the process at the latest
			select {
			case <-p.attached:
				w.pass(p.ctx, keyed(w.plan.seed, "observe", p.name, i.doc).between(1, time.Millisecond))
				_ = p.attachment.Observe(p.ctx, i.doc) // of one that has just ended, it fails
			case <-p.ctx.Done():
			}
		})
	default:
		w.begin(p, i)
	}
}

// start begins a new life in a slot.
func (w *world) start(i item) {
	p := &process{who: i.who, name: fmt.Sprintf("%s@%d", i.who, i.at.Microseconds())}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.bus = w.server.Dial(p.name, &wire{w: w, p: p})
	w.mu.Lock()
	w.procs[i.who] = p
	w.all = append(w.all, p)
	p.up = true
	w.mu.Unlock()
	w.story.note(p.name, "starts")
	switch i.who[0] {
	case 'u':
		w.startUser(p)
	case 'c':
		o := keyed(w.plan.seed, "coordinator", p.name)
		p.coord = coordinator.New(w.busOf(p), coordinator.Config{
			Window: oneOf(o, 0, 1, 2, 8), Save: o.about(w.plan.checkpoint), Logger: slog.New(logger{w, p, ""}),
		})
		p.coord.Start()
	case 'a':
		w.startAttached(p, i)
	default:
		w.startWorker(p)
	}
}

func (w *world) startUser(p *process) {
	c, err := settle.NewClient(w.busOf(p), settle.ClientConfig{ID: p.who, Logger: slog.New(logger{w, p, ""})})
	if err != nil {
		panic(err)
	}
	p.client, p.sender = c, c.Sender()
}

func (w *world) startWorker(p *process) {
	o, c := &w.plan.options, keyed(w.plan.seed, "worker", p.name)
	p.id = oneOf(c, p.who, p.who+"-"+fmt.Sprint(c.below(1000))) // a restart may use the name again
	cfg := worker.Config{
		ID: p.id, Logger: slog.New(logger{w, p, ""}),
		Options: worker.Options{
			Heartbeat: c.between(o.heartbeat, o.heartbeat*3/2), MemberTTL: c.between(o.ttl, o.ttl*3/2), Checkpoint: c.between(o.checkpoint, o.checkpoint*2),
			Idle: o.idle, MaxAwake: o.maxAwake, Limits: ledger.Limits{LaneLimit: o.laneLimit, MaxGroup: o.maxGroup, MaxChain: w.plan.chainLimit()},
		},
	}
	if o.history > 0 {
		cfg.HistoryBytes, cfg.PurgeDelay, cfg.LeastMarkers = o.history, 1, 1
	}
	if w.plan.has("hangs") {
		p.runLimit = keyed(w.plan.seed, "run limit", p.name).between(o.hangs.limit, o.hangs.limit*3/2)
		cfg.RunLimit = p.runLimit
	}
	w.beginsWith(p)
	programs := w.newPrograms(p)
	cfg.Programs = func(of string) (*space.Program, error) {
		edition := w.editionOf(p)
		if w.orphaned(of, edition) {
			return nil, nil
		}
		return programs(of, edition), nil
	}
	cfg.Aside = oneOf(keyed(w.plan.seed, "aside"), 0, 1, 50*time.Millisecond, 300*time.Millisecond, time.Second)
	bus := w.busOf(p)
	if p.who[0] == 'h' {
		bus = hermit{bus}
	}
	cfg.Computed = w.asksOwners(func(ctx context.Context, space, document string) (bool, error) {
		return p.answers.Computed(ctx, space, document)
	})
	wk, err := worker.New(bus, cfg)
	if err != nil {
		panic(err)
	}
	w.mu.Lock()
	p.worker = wk
	if w.plan.has("queries") {
		p.answers = live.NewServer(w.busOf(p), wk, live.Config{})
	}
	w.mu.Unlock()
	w.running.Go(func() { // ends when the worker serves, or has been killed
		err := p.worker.Start(p.ctx)
		w.mu.Lock()
		wanted := p.up && !w.over // else it is stopped before it has started
		w.mu.Unlock()
		if w.mayStartAgain(err) {
			w.again(p, "does not start: "+err.Error())
			return
		}
		if err == nil && p.answers != nil {
			p.worker.Beside(p.answers.Run)
		}
		if err != nil && p.ctx.Err() == nil && wanted {
			w.violate("shell", "worker %s does not start: %v", p.name, err)
		}
	})
}

// hermit is the bus of a worker that sees no other workers, and that other workers do not see.
type hermit struct{ port.Bus }

func (h hermit) FollowMembers(ctx context.Context, _ func(model.Member), ready func()) error {
	ready()
	<-ctx.Done()
	return ctx.Err()
}

func (h hermit) Announce(context.Context, model.Member) error { return nil }

// kill ends a process as SIGKILL would.
func (w *world) kill(p *process, how string) {
	w.mu.Lock()
	dead := p.died > 0
	if !dead {
		p.died, p.up = max(w.story.now(), 1), false
	}
	w.mu.Unlock()
	if dead {
		return
	}
	w.story.note(p.name, "%s", how)
	w.story.tell("kill", p.name)
	p.bus.Kill()
	p.cancel()
	w.bury(p)
}

// bury releases the goroutines of a dead process, without waiting for them.
func (w *world) bury(p *process) {
	switch {
	case p.worker != nil:
		p.worker.Kill()
	case p.coord != nil:
		w.running.Go(p.coord.Stop) // returns when its goroutines have seen it
	case p.client != nil:
		w.running.Go(p.client.Close)
	}
	if a := w.attachmentOf(p); a != nil {
		a.Kill()
	}
}

// attachmentOf returns the attachment of an application, once there is one.
func (w *world) attachmentOf(p *process) *worker.Attachment {
	w.mu.Lock()
	defer w.mu.Unlock()
	return p.attachment
}

// leave ends a process in good order.
func (w *world) leave(p *process) {
	w.mu.Lock()
	p.up, p.left = false, max(w.story.now(), 1)
	w.mu.Unlock()
	w.story.note(p.name, "is asked to leave")
	w.running.Go(func() { // ends within the time that stopping may take
		if p.worker != nil {
			ctx, cancel := context.WithTimeout(p.ctx, 3*time.Second)
			defer cancel()
			_ = p.worker.Stop(ctx) // cut off, it may fail to end in good order
			p.bus.Pause()          // what is left of it says nothing more
		}
		if a := w.attachmentOf(p); a != nil {
			ctx, cancel := context.WithTimeout(p.ctx, 3*time.Second)
			defer cancel()
			_ = a.Close(ctx)
			p.bus.Pause()
		}
		w.kill(p, "is gone")
	})
}

// heal ends all faults.
func (w *world) heal() {
	w.story.note("PLAN", "everything is healed")
	w.set(&w.healed, true)
	w.set(&w.storeFull, false)
	w.server.LimitLanes(0)
	for _, p := range w.alive() {
		w.mu.Lock()
		if !p.doomed {
			p.armed = nil
		}
		paused := p.paused
		w.mu.Unlock()
		p.bus.Cut(false, false)
		if paused {
			p.bus.Wake()
		}
		if p.who[0] == 'h' {
			w.kill(p, "is found out")
		}
		w.hear(p)
		if p.worker != nil {
			p.worker.Refresh() // there is a program for every space now
		}
	}
	for _, kind := range []string{"w", "c"} {
		if !slices.ContainsFunc(w.alive(), func(p *process) bool { return p.who[:1] == kind && p.up }) {
			w.start(item{at: w.plan.chaos, who: kind + "9"})
		}
	}
}

// alive returns the processes that have not ended.
func (w *world) alive() []*process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.all), func(p *process) bool { return p.died > 0 })
}

// end stops everything in good order.
func (w *world) end() {
	w.set(&w.over, true)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var stopping sync.WaitGroup
	for _, p := range w.alive() {
		if p.worker != nil && p.up {
			stopping.Go(func() { // ends within the minute
				err := p.worker.Stop(ctx)
				if _, givenUp := errors.AsType[*space.LimitError](err); givenUp && w.plan.has("hangs") {
					w.count("workers that stopped and said that a space was given up")
				} else if err != nil {
					w.violate("stop", "worker %s: %v", p.name, err)
				}
			})
		}
	}
	stopping.Wait()
	for _, p := range w.alive() {
		w.kill(p, "ends")
	}
	w.running.Wait()
}

// logger counts the warnings and errors of the shell, and adds them to the minutes.
type logger struct {
	w *world
	p *process
	_ string
}

func (l logger) Enabled(_ context.Context, level slog.Level) bool {
	return l.w.story.verbose || level >= slog.LevelError || level == slog.LevelDebug
}
func (l logger) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l logger) WithGroup(string) slog.Handler      { return l }

func (l logger) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != "stack" {
			text += " " + a.String()
		}
		return true
	})
	l.w.story.note(l.p.name, "%s %s", r.Level, text)
	l.w.noteEviction(l.p, r)
	l.w.noteGivenUp(r)
	if strings.Contains(text, model.ErrPurged.Error()) {
		l.w.count("gaps that were met")
	}
	return nil
}

// noteEviction counts the spaces that are unloaded. An event that arrives in the same instant cannot be
// simulated here, since no two things happen in one instant (worker:
// TestEviction_LosesNoEventOrObserver).
func (w *world) noteEviction(p *process, r slog.Record) {
	if r.Message != "space leaves memory" {
		return
	}
	w.count("evictions")
	w.noteAsleep(r)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != "space" {
			return true
		}
		if w.eventWaits(a.Value.String()) {
			w.count("evictions with an event on its way")
		}
		w.noteHangingEviction(p, a.Value.String())
		return true
	})
}

// eventWaits reports whether the lane holds an event that the log does not record as handled.
func (w *world) eventWaits(space string) bool {
	log := w.server.History(space)
	if len(log) == 0 {
		return false
	}
	c, err := model.DecodeCommit(log[len(log)-1].Data)
	return err == nil && len(w.server.ReadLane(space, c.Cursor.Floor, 1)) > 0
}

// op is an operation of a client, and its answer.
type op struct {
	item
	asked
	p      *process
	begun  time.Duration
	ended  time.Duration // 0 while it waits
	times  int           // answers
	result model.SendResult
	rc     *model.Receipt
	value  model.Value
	rev    uint64
	err    error
}

// begin starts an operation of a client.
func (w *world) begin(p *process, i item) {
	o := &op{item: i, p: p, begun: w.story.now()}
	w.mu.Lock()
	w.ops = append(w.ops, o)
	w.mu.Unlock()
	answer := func(r model.SendResult, err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		o.times++
		o.ended, o.result, o.err = w.story.now(), r, err
		w.story.note(p.name, "is told of %s/%s/%s: %+v %v", i.space, i.stream, i.id, r, err)
	}
	if i.do == "raw" {
		p.bus.Send(model.Message{Space: i.space, Stream: i.stream, ID: i.id, Payload: []byte(i.payload)}, answer)
		return
	}
	if i.do == "astray" {
		m := model.Message{Space: i.space, Stream: i.stream, ID: i.id, Payload: []byte(i.payload)}
		if i.due != 0 {
			m.NotBefore = model.NotBefore(w.story.begin.Add(i.due))
		}
		if i.expires != 0 {
			m.Expires = model.NotBefore(w.story.begin.Add(i.expires))
		}
		p.bus.SendAstray(i.lane, m, answer)
		return
	}
	ev := settle.Outgoing{Space: i.space, Stream: i.stream, ID: settle.ID(i.id)}
	if i.due != 0 {
		ev.NotBefore = w.story.begin.Add(i.due)
	}
	if i.expires != 0 {
		ev.Expires = w.story.begin.Add(i.expires)
	}
	if i.payload != "" {
		v, err := model.ParseValue([]byte(i.payload))
		if err != nil {
			panic(err)
		}
		ev.Payload = v
	}
	if i.do == "queue" {
		if err := p.sender.Send(p.ctx, ev, answer); err != nil {
			answer(model.SendResult{}, err)
		}
		return
	}
	w.running.Go(func() { // ends with the operation, at the latest with the process
		switch i.do {
		case "send":
			answer(p.client.Send(p.ctx, ev))
		case "call":
			rc, err := p.client.Call(p.ctx, ev)
			o.rc = rc
			answer(model.SendResult{}, err)
		case "await":
			rc, err := p.client.Space(i.space).Await(p.ctx, i.stream, settle.ID(i.id))
			o.rc = rc
			answer(model.SendResult{}, err)
		case "transact":
			answer(model.SendResult{}, w.transact(p, o))
		case "get":
			value, rev, err := p.client.Space(i.space).Get(p.ctx, i.doc)
			o.value, o.rev = value, rev
			answer(model.SendResult{}, err)
		case "query":
			answer(model.SendResult{}, w.query(p, o))
		case "redrive", "dismiss":
			answer(w.redrive(p, o))
		case "letters":
			answer(model.SendResult{}, w.list(p, o))
		case "tree", "wait-tree":
			answer(model.SendResult{}, w.askTree(p, o))
		case "cancel", "skip", "spare":
			answer(model.SendResult{}, w.takeBack(p, o))
		}
	})
}

// watch is an observation and its deliveries.
type watch struct {
	item
	p         *process
	values    []model.Value
	revisions []uint64
	over      bool
}

func (w *world) watch(p *process, i item) {
	o := &watch{item: i, p: p}
	w.mu.Lock()
	w.watches = append(w.watches, o)
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(p.ctx)
	if i.span > 0 {
		time.AfterFunc(i.span, func() { w.set(&o.over, true); cancel() })
	}
	w.running.Go(func() { // ends with the observation, at the latest with the process
		defer cancel()
		var err error
		for u, failed := range p.client.Space(i.space).Watch(ctx, i.doc) {
			if err = failed; err != nil {
				break
			}
			w.mu.Lock()
			o.values, o.revisions = append(o.values, u.Value), append(o.revisions, u.Revision)
			w.mu.Unlock()
			w.story.note(p.name, "sees %s/%s = %s at %d", i.space, i.doc, u.Value, u.Revision)
		}
		if errors.Is(err, errStore) {
			w.watchAgain(p, i, o)
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if !o.over && p.died == 0 && ctx.Err() == nil {
			w.violate("watch", "watch of %s/%s by %s ended: %v", i.space, i.doc, p.name, err)
		}
		o.over = true
	})
}
