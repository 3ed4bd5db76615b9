package test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker"
)

// stage is a deployment without workers, in which a test starts its own runtimes, and holds back and
// releases their appends, so that a race has a determined outcome.
type stage struct {
	*testing.T
	d      *deployment
	client *settle.Client
	apps   map[string]*actor // of elsewhere, by space
}

func newStage(t *testing.T, base settle.Config) *stage {
	t.Helper()
	base.Programs, base.Workers, base.Bus.Partitions = settle.Always(orders(newNotebook("nobody"))), -1, 1
	d := deploy(t, base)
	return &stage{T: t, d: d, client: d.Client(), apps: map[string]*actor{}}
}

// actor is one runtime with its own connection and its own record of runs.
type actor struct {
	t     *testing.T
	id    string
	line  *line
	notes *notebook
	// attached is nil for a worker.
	attached *worker.Attachment
}

func (s *stage) actor(id string, options ...func(*bus.Config)) *actor {
	s.Helper()
	return &actor{t: s.T, id: id, line: &line{Bus: connect(s.T, s.d, options...)}, notes: newNotebook(id)}
}

// worker starts a worker that serves every space.
func (s *stage) worker(id string, options ...func(*bus.Config)) *actor {
	s.Helper()
	a := s.actor(id, options...)
	w, err := settle.StartWorker(testContext(s.T), a.line, settle.WorkerConfig{
		ID: id, Programs: settle.Always(orders(a.notes)), Options: worker.Options{Heartbeat: s.d.cfg.Heartbeat, MemberTTL: s.d.cfg.MemberTTL, Checkpoint: s.d.cfg.Checkpoint},
	})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { a.end(w.Stop) })
	return a
}

// attach attaches a runtime to a space, which handles the space's events or only makes transactions.
func (s *stage) attach(id, space string, events bool, options ...func(*line)) *actor {
	s.Helper()
	a := s.actor(id)
	for _, o := range options {
		o(a.line)
	}
	a.attached = attach(s.T, a.line, space, settle.AttachConfig{ID: id, Events: events, Program: orders(a.notes)})
	s.Cleanup(func() { a.end(a.attached.Close) })
	return a
}

func (a *actor) end(how func(context.Context) error) {
	a.line.open()
	stop(a.t, how)
	a.line.Close()
}

// transact makes a transaction of the application.
func (a *actor) transact(f func(*settle.Tx)) {
	a.t.Helper()
	err := a.attached.Transact(testContext(a.t), "app", func(tx *settle.Tx) error { f(tx); return nil })
	if err != nil {
		a.t.Fatal(err)
	}
}

// send stores an event whose payload has its id as "for".
func (s *stage) send(space, stream, id string) {
	s.Helper()
	if _, err := s.client.Send(testContext(s.T), settle.Outgoing{Space: space, Stream: stream, ID: settle.ID(id)}); err != nil {
		s.Fatal(err)
	}
}

// ends waits for the receipt of an event.
func (s *stage) ends(space, stream, id string) *model.Receipt {
	s.Helper()
	rc, err := s.client.Space(space).Await(testContext(s.T), stream, settle.ID(id))
	if err != nil {
		s.Fatal(err)
	}
	return rc
}

// call sends an event that must be handled.
func (s *stage) call(space, stream, id string) {
	s.Helper()
	s.send(space, stream, id)
	if rc := s.ends(space, stream, id); rc.Outcome != model.Handled {
		s.Fatalf("event %s: %s (%s)", id, rc.Outcome, rc.Error)
	}
}

// elsewhere sets a document from an application that is attached to the space.
func (s *stage) elsewhere(space, doc string, value any) {
	s.Helper()
	app := s.apps[space]
	if app == nil {
		app = s.attach("app", space, false)
		s.apps[space] = app
	}
	app.transact(func(tx *settle.Tx) { tx.Set(doc, value) })
}

// wantLog checks what has been handled in a space, in order. Each line is a stream,
// the id of the event unless that was sent by a handler, the outcome and the result.
func (s *stage) wantLog(space string, want ...string) {
	s.Helper()
	var got []string
	for _, h := range readLog(s.T, s.d.Bus(), space) {
		line := h.key.Stream
		if _, minted := model.OriginOf(h.key.ID); !minted {
			line += " " + h.key.ID
		}
		line += ": " + string(h.rc.Outcome)
		if !h.rc.Result.IsAbsent() {
			line += " " + h.rc.Result.String()
		}
		got = append(got, line)
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		s.Errorf("space %s has handled\n\t%s\nwant\n\t%s", space, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// wantLane checks how many events have ever been put into a space's lane. A replica
// that is behind is asked again.
func (s *stage) wantLane(space string, want int) {
	s.Helper()
	ctx := testContext(s.T)
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for {
		events, err := s.d.Bus().ReadLane(ctx, space, 0, 100)
		if len(events) == want {
			return
		}
		if err != nil || len(events) > want {
			s.Fatalf("%d events in the lane of %s, want %d: %+v (%v)", len(events), space, want, events, err)
		}
		<-again.C // and ReadLane returns an error once ctx has ended
	}
}

// wantDoc checks a document in the log.
func (s *stage) wantDoc(space, doc, want string) {
	s.Helper()
	v, _, err := s.client.Space(space).Get(testContext(s.T), doc)
	if err != nil {
		s.Fatal(err)
	}
	if v.String() != want {
		s.Errorf("%s of %s is %s, want %s", doc, space, v, want)
	}
}

// line is a connection on which commits can be held back on their way to the log.
type line struct {
	*bus.Bus
	mu   sync.Mutex
	next *hold
	on   []*hold // that hold a commit that is not released
	// forgetful hides the positions of lanes.
	forgetful bool
}

// fromTheBeginning makes a runtime read every event of its lane again.
func fromTheBeginning(l *line) { l.forgetful = true }

// LoadPosition returns the position to continue from.
func (l *line) LoadPosition(ctx context.Context, partition int, name string) (uint64, error) {
	if l.forgetful {
		return 0, nil
	}
	return l.Bus.LoadPosition(ctx, partition, name)
}

// hold is a commit that is to be held back, or is held back.
type hold struct {
	of      func(*model.Commit) bool
	caught  chan *model.Commit
	release chan struct{}
	once    sync.Once
}

// hold holds back the next commit of a kind. A test can wait for one at a time.
func (l *line) hold(of func(*model.Commit) bool) *hold {
	h := &hold{of: of, caught: make(chan *model.Commit, 1), release: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next = h
	return h
}

// holdReceipt holds back the commit that handles an event.
func (l *line) holdReceipt(event string) *hold {
	return l.hold(func(c *model.Commit) bool {
		for i := range c.Txs {
			if rc := c.Txs[i].Receipt; rc != nil && rc.Event == event {
				return true
			}
		}
		return false
	})
}

func (h *hold) wait(t *testing.T) *model.Commit {
	t.Helper()
	select {
	case c := <-h.caught:
		return c
	case <-testContext(t).Done():
		t.Fatal("the commit that is to be held back never comes")
		return nil
	}
}

func (h *hold) letGo() { h.once.Do(func() { close(h.release) }) }

// cancel stops holding back, and releases a held commit.
func (l *line) cancel(h *hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == h {
		l.next = nil
	}
	h.letGo()
}

// open lets all commits pass from now on.
func (l *line) open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next = nil
	for _, h := range l.on {
		h.letGo()
	}
}

// Append holds the commit back if a hold matches it.
func (l *line) Append(a model.Append, done func(uint64, error)) {
	h := l.catch(a)
	if h == nil {
		l.Bus.Append(a, done)
		return
	}
	go func() { // ends when the commit is let go, at the latest by open
		<-h.release
		l.Bus.Append(a, done)
	}()
}

func (l *line) catch(a model.Append) *hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		return nil
	}
	c, err := model.DecodeCommit(a.Data)
	if err != nil || !l.next.of(c) {
		return nil
	}
	h := l.next
	l.next, l.on = nil, append(l.on, h)
	h.caught <- c
	return h
}
