package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/leaks"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

func TestMain(m *testing.M) { leaks.VerifyTestMain(m) }

// world is a deployment on a bus in memory, in virtual time: all of it lives in
// the bubble of one test, and time passes when everybody waits.
type world struct {
	*testing.T
	server *membus.Server
	client *membus.Bus
	logged *journal
	forged map[string]bool // the bytes of commits that cannot be read
}

func newWorld(t *testing.T, partitions int) *world {
	return newWorldOf(t, membus.Config{Partitions: partitions})
}

func newWorldOf(t *testing.T, cfg membus.Config) *world {
	server := membus.NewServer(cfg)
	w := &world{T: t, server: server, client: server.Connect("client"), logged: &journal{}}
	t.Cleanup(w.client.Close)
	return w
}

// process is a worker with a connection of its own, so that it can crash alone.
type process struct {
	*worker.Worker
	bus *membus.Bus
	w   *world
}

// process starts a worker. wrap, which may be nil, stands between it and its bus.
func (w *world) process(cfg worker.Config, wrap func(*membus.Bus) port.Bus) *process {
	w.Helper()
	b := w.server.Connect(cfg.ID)
	return w.start(cfg, b, wrap)
}

func (w *world) start(cfg worker.Config, b *membus.Bus, wrap func(*membus.Bus) port.Bus) *process {
	w.Helper()
	var bus port.Bus = b
	if wrap != nil {
		bus = wrap(b)
	}
	if cfg.Programs == nil {
		cfg.Programs = always(book(w.T))
	}
	cfg.Logger = slog.New(w.logged)
	p, err := worker.New(bus, cfg)
	if err != nil {
		w.Fatal(err)
	}
	proc := &process{Worker: p, bus: b, w: w}
	w.Cleanup(proc.crash) // does nothing after a stop
	if err := p.Start(w.Context()); err != nil {
		w.Fatal(err)
	}
	return proc
}

// worker starts a worker of the program book under an id.
func (w *world) worker(id string) *process {
	w.Helper()
	return w.process(worker.Config{ID: id}, nil)
}

// crash ends the process as SIGKILL would.
func (p *process) crash() {
	p.Kill()
	p.bus.Kill()
}

// stop ends the process as SIGTERM would.
func (p *process) stop() {
	p.w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := p.Stop(ctx); err != nil {
		p.w.Errorf("stop: %v", err)
	}
	p.bus.Close()
}

// logger writes to the journal of the world.
func (w *world) logger() *slog.Logger { return slog.New(w.logged) }

func (w *world) coordinator() *coordinator.Coordinator {
	b := w.server.Connect("coordinator")
	c := coordinator.New(b, coordinator.Config{Logger: slog.New(w.logged)})
	c.Start()
	w.Cleanup(func() { c.Stop(); b.Close() })
	return c
}

// send stores an event and returns its lane sequence.
func (w *world) send(space, stream, id string, payload ...string) uint64 {
	w.Helper()
	m := model.Message{Space: space, Stream: stream, ID: id}
	for _, p := range payload {
		m.Payload = []byte(p)
	}
	return w.sendMessage(m)
}

func (w *world) sendMessage(m model.Message) uint64 {
	w.Helper()
	type answer struct {
		r   model.SendResult
		err error
	}
	done := make(chan answer, 1)
	w.client.Send(m, func(r model.SendResult, err error) { done <- answer{r, err} })
	a := <-done
	if a.err != nil {
		w.Fatalf("send %+v: %v", m, a.err)
	}
	return a.r.Seq
}

// sendMany stores n events e1, e2, ... in order.
func (w *world) sendMany(space, stream string, n int) {
	w.Helper()
	for i := range n {
		w.send(space, stream, "e"+strconv.Itoa(i+1))
	}
}

// commits is the whole log of a space, with what was purged of it.
func (w *world) commits(space string) []*model.Commit {
	w.Helper()
	var out []*model.Commit
	for _, e := range w.server.History(space) {
		if w.forged[string(e.Data)] {
			continue
		}
		c, err := model.DecodeCommit(e.Data)
		if err != nil {
			w.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

// receipts are those of a space in log order.
func (w *world) receipts(space string) []*model.Receipt {
	w.Helper()
	var out []*model.Receipt
	for _, c := range w.commits(space) {
		for i := range c.Txs {
			if rc := c.Txs[i].Receipt; rc != nil {
				out = append(out, rc)
			}
		}
	}
	return out
}

// takeovers are the runtimes that have taken the space over, in order.
func (w *world) takeovers(space string) []string {
	w.Helper()
	var out []string
	for _, c := range w.commits(space) {
		if c.Takeover {
			out = append(out, c.Runtime)
		}
	}
	return out
}

// wantHandled checks that exactly these events have been handled, once and in
// this order.
func (w *world) wantHandled(space string, ids ...string) {
	w.Helper()
	var got []string
	for _, rc := range w.receipts(space) {
		if rc.Outcome != model.Handled {
			w.Errorf("event %s of %s: %s (%s)", rc.Event, space, rc.Outcome, rc.Error)
		}
		got = append(got, rc.Event)
	}
	for i := range min(len(got), len(ids)) {
		if got[i] != ids[i] {
			w.Errorf("space %s: the event handled as number %d is %s, want %s", space, i+1, got[i], ids[i])
			return
		}
	}
	if len(got) != len(ids) {
		w.Errorf("space %s has handled %d events, want %d", space, len(got), len(ids))
	}
}

func numbered(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = "e" + strconv.Itoa(i+1)
	}
	return ids
}

// doc is a document as the log has it.
func (w *world) doc(space, doc string) string {
	w.Helper()
	d, err := history.Read(w.Context(), w.client, space, doc)
	if err != nil {
		w.Fatal(err)
	}
	return d.Value.String()
}

// wantSaved checks that the STATE bucket is where the log is: every document, and
// the mark.
func (w *world) wantSaved(space string, docs map[string]string) {
	w.Helper()
	st := w.server.LoadState(space)
	if head := w.server.Head(space); st.Mark.Seq != head {
		w.Errorf("space %s: the mark reflects %d, the log ends at %d", space, st.Mark.Seq, head)
	}
	got := map[string]string{}
	for _, d := range st.Docs {
		got[d.Doc] = string(d.Data)
	}
	for doc, want := range docs { // any order: each on its own
		if got[doc] != want {
			w.Errorf("space %s: the bucket holds %s for %s, want %s", space, got[doc], doc, want)
		}
	}
}

// wantPosition checks where the next owner would begin to read the lane.
func (w *world) wantPosition(partition int, want uint64) {
	w.Helper()
	if got := w.server.LoadPosition(partition, "lane"); got != want {
		w.Errorf("the lane position of partition %d is %d, want %d", partition, got, want)
	}
}

// pass lets virtual time pass, in which everybody else goes on.
func (w *world) pass(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	<-t.C
}

// eventually looks every few milliseconds of virtual time until ok says so.
func (w *world) eventually(what string, ok func() bool) {
	w.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 24_000 { // two minutes
		if ok() {
			return
		}
		<-tick.C
	}
	w.Fatalf("it never came to be that %s; the log says:\n%s", what, w.logged)
}

func (w *world) eventuallyHandled(space string, n int) {
	w.Helper()
	w.eventually(fmt.Sprintf("%s has handled %d events", space, n), func() bool { return len(w.receipts(space)) >= n })
}

// spacesOf finds n names of spaces that lie in a partition.
func spacesOf(partition, of, n int) []string {
	var out []string
	for i := 0; len(out) < n; i++ {
		if name := "s" + strconv.Itoa(i); model.PartitionOf(name, of) == partition {
			out = append(out, name)
		}
	}
	return out
}

// watch observes a document until the end of the test, and collects its values.
func (w *world) watch(space, doc string) *watched {
	v := &watched{}
	ctx, cancel := context.WithCancel(context.Background())
	v.end = cancel
	watch := history.Watch{Bus: w.client, Space: space, Doc: doc, Watcher: "t" + strconv.FormatInt(watchers.next(), 10)}
	var running sync.WaitGroup
	running.Go(func() { // ends with the watch
		err := watch.Changes(ctx, func(c history.Change) { v.add(c.Value, c.Revision) })
		if !errors.Is(err, context.Canceled) && !errors.Is(err, model.ErrStopped) {
			w.Errorf("watch %s of %s: %v", doc, space, err)
		}
	})
	w.Cleanup(func() { cancel(); running.Wait() })
	return v
}

var watchers counter

type counter struct {
	mu sync.Mutex
	n  int64
}

func (c *counter) next() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return c.n
}

// watched is what a watch has delivered.
type watched struct {
	mu        sync.Mutex
	values    []string
	revisions []uint64
	end       func()
}

func (v *watched) add(val model.Value, rev uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.values, v.revisions = append(v.values, val.String()), append(v.revisions, rev)
}

func (v *watched) last() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.values) == 0 {
		return ""
	}
	return v.values[len(v.values)-1]
}

// seen is everything that the watch has delivered, with the revisions.
func (v *watched) seen() (values []string, revisions []uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.values), slices.Clone(v.revisions)
}

// journal is what the processes have logged.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (l *journal) Enabled(context.Context, slog.Level) bool { return true }
func (l *journal) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *journal) WithGroup(string) slog.Handler            { return l }

func (l *journal) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	return nil
}

// all are the lines so far.
func (l *journal) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

func (l *journal) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := ""
	for _, line := range l.lines {
		s += line + "\n"
	}
	return s
}

func (l *journal) count(message string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, line := range l.lines {
		if _, rest, _ := cut(line); len(rest) >= len(message) && rest[:len(message)] == message {
			n++
		}
	}
	return n
}

// cut takes the level off a line.
func cut(line string) (level, rest string, ok bool) {
	for i := range line {
		if line[i] == ' ' {
			return line[:i], line[i+1:], true
		}
	}
	return line, "", false
}

func always(p *space.Program) func(string) (*space.Program, error) {
	return func(string) (*space.Program, error) { return p, nil }
}

// book is a program that counts:
//
//	add      adds one to n
//	forward  adds one to n and sends an add to the space in the payload
//	chain    adds one to n and sends itself on, as often as the payload says
//	fail     fails
//	get      returns the value of double, which is computed from n
//	read     copies double of the space in the payload into seen
//
// and the computations double (twice n) and abroad (double of the space that the
// document from names).
func book(t *testing.T) *space.Program {
	t.Helper()
	p := space.NewProgram("book")
	count := func(tx *space.Tx) int64 {
		n, _ := tx.Get("n").AsInt()
		tx.Set("n", n+1)
		return n + 1
	}
	handle := func(stream string, h func(tx *space.Tx, ev *model.Event) (model.Value, error)) {
		t.Helper()
		if err := p.Handle(stream, h); err != nil {
			t.Fatal(err)
		}
	}
	handle("add", func(tx *space.Tx, _ *model.Event) (model.Value, error) { return model.Int(count(tx)), nil })
	handle("forward", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
		to, _ := ev.Payload.AsString()
		tx.Send(to, "add", nil)
		return model.Int(count(tx)), nil
	})
	handle("chain", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
		if left, _ := ev.Payload.AsInt(); left > 0 {
			tx.Send(tx.Space(), "chain", left-1)
		}
		return model.Int(count(tx)), nil
	})
	handle("fail", func(*space.Tx, *model.Event) (model.Value, error) { return model.Value{}, errors.New("as it should") })
	handle("get", func(tx *space.Tx, _ *model.Event) (model.Value, error) { return tx.Get("double"), nil })
	handle("look", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
		tx.Set("from", ev.Payload)
		return model.Value{}, nil
	})
	handle("read", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
		from, _ := ev.Payload.AsString()
		v := tx.GetFrom(from, "double")
		tx.Set("seen", v)
		return v, nil
	})
	compute := func(doc string, run func(tx *space.Tx) (model.Value, error)) {
		t.Helper()
		if err := p.Add(space.NodeSpec{ID: doc, Kind: space.Computation, Output: doc, Run: run}); err != nil {
			t.Fatal(err)
		}
	}
	compute("double", func(tx *space.Tx) (model.Value, error) {
		n, _ := tx.Get("n").AsInt()
		return model.Int(2 * n), nil
	})
	compute("abroad", func(tx *space.Tx) (model.Value, error) {
		from, ok := tx.Get("from").AsString()
		if !ok {
			return model.Value{}, nil
		}
		return tx.GetFrom(from, "double"), nil
	})
	return p
}
