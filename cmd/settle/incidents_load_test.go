package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/bus/survey"
	"github.com/settlehq/settle/cron"
	"github.com/settlehq/settle/internal/doctor"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/ordered"
	"github.com/settlehq/settle/program"
	"github.com/settlehq/settle/program/star"
	"github.com/settlehq/settle/worker"
)

// gate makes handlers wait until it is opened.
type gate struct {
	open chan struct{}
	once sync.Once
}

// newGate returns a gate that is opened at the end of the test at the latest, before the deployment is
// stopped.
func newGate() *gate { return &gate{open: make(chan struct{})} }

func (g *gate) release() { g.once.Do(func() { close(g.open) }) }

// wait is a handler that blocks until the gate is open.
func (g *gate) wait(*settle.Tx, *settle.Event) (settle.Value, error) {
	<-g.open
	return settle.ValueOf("done")
}

// judgedAfter returns the doctor's findings as if the deployment stayed the same for a while longer.
func judgedAfter(t *testing.T, d *settle.Deployment, longer time.Duration) string {
	t.Helper()
	return judgedOf(t, d, d.Server().ClientURL(), longer)
}

// judgedOf is judgedAfter for a deployment with a separate server.
func judgedOf(t *testing.T, d *settle.Deployment, url string, longer time.Duration) string {
	t.Helper()
	f, err := fleet.Look(t.Context(), d.Bus())
	if err != nil {
		t.Fatal(err)
	}
	f.At = f.At.Add(longer)
	return judged(t, url, f)
}

// soon is the additional age of an incident that was caused a few seconds ago, so that it is at most a minute
// old: by then it must be visible (docs/operations.md).
const soon = 45 * time.Second

// judged returns the doctor's report on a fleet at a server.
func judged(t *testing.T, url string, f *fleet.Fleet) string {
	t.Helper()
	survey, err := survey.New(t.Context(), bus.Config{URL: url}, survey.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := doctor.Judge(survey, f, nil, 0).Print(&out); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(out.String()), " ")
}

// says fails the test unless the text contains each of the parts.
func says(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("it does not say %q:\n%s", part, text)
		}
	}
}

// saysNot fails the test if the text contains any of the parts.
func saysNot(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("it says %q:\n%s", part, text)
		}
	}
}

// sendTo sends n events to a space.
func sendTo(t *testing.T, d *settle.Deployment, space, stream string, n int) {
	t.Helper()
	for i := range n {
		if _, err := d.Client().Send(t.Context(), settle.Outgoing{Space: space, Stream: stream, ID: settle.ID(fmt.Sprint("e", i))}); err != nil {
			t.Fatal(err)
		}
	}
}

// sendMany sends one event for each of n ids, concurrently, to the space of that id.
func sendMany(t *testing.T, d *settle.Deployment, stream string, n int, space func(i int) string) {
	t.Helper()
	var next atomic.Int64
	var sending sync.WaitGroup
	for range 32 {
		sending.Go(func() { // ends when all are sent
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if _, err := d.Client().Send(t.Context(), settle.Outgoing{Space: space(i), Stream: stream, ID: settle.ID(fmt.Sprint("m", i))}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	sending.Wait()
}

// many is the number of timers, watches, letters or spaces in a storm.
const many = 2000

// goneSoon waits until `settle fleet` no longer prints a text.
func goneSoon(t *testing.T, what string) {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for begun := time.Now(); ; <-again.C {
		out, wrong := try(t, 0, "", "fleet")
		if len(wrong) == 0 && !strings.Contains(out, what) {
			return
		}
		if time.Since(begun) > patience {
			t.Fatalf("it still says %q: %v\n%s", what, wrong, out)
		}
	}
}

// A handler that does not return is abandoned. The doctor reports the number of goroutines in such code until
// they have returned.
func TestIncident_AHandlerIsGivenUp(t *testing.T) {
	t.Parallel()
	g := newGate()
	defer g.release()
	d := started(t, settle.Config{Programs: settle.Always(settle.NewProgram("hung").Handle("hang", g.wait, settle.Within(50*time.Millisecond)))})
	wantSoon(t, 0, "1 worker, 1 coordinator", "fleet")
	saysNot(t, want(t, 0, "", "fleet"), "given up")
	says(t, judgedAfter(t, d, 0), "✓ given up")
	sendTo(t, d, "cart", "hang", 1)
	wantSoon(t, 0, "3 goroutines in handlers or nodes of | were given up and have not returned", "fleet")
	wantSoon(t, 1, "has 3 goroutines in handlers or nodes that were given up", "doctor", "--json")
	g.release()
	goneSoon(t, "given up")
	says(t, judgedAfter(t, d, 0), "✓ given up")
}

// A server of package ordered is shown like a worker, with its partitions, and the blocked key with its event.
func TestIncident_AKeyOfPackageOrderedStandsStill(t *testing.T) {
	t.Parallel()
	s := natstest.StartServer(t, embedded.Config{Listen: ":0"})
	pointAt(t, s.ClientURL())
	b, err := bus.Connect(t.Context(), bus.Config{URL: s.ClientURL(), Partitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	g := newGate()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { // ends with ctx
		ended <- ordered.Serve(ctx, b, ordered.Config{Name: "pay", Handlers: map[string]ordered.Handler{
			"charge": func(*ordered.Tx, *model.Event) (any, error) { return "charged", nil },
			"hang":   func(*ordered.Tx, *model.Event) (any, error) { <-g.open; return "late", nil },
		}})
	}()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	defer g.release()
	wantSoon(t, 0, "1 worker, 1 coordinator, 2 partitions | pay-", "fleet")
	want(t, 0, "handled", "send", "bob", "charge", "--id", "b1", "--wait")
	saysNot(t, want(t, 0, "", "fleet"), "STUCK")
	want(t, 0, "stored", "send", "alice", "hang", "--id", "a1", "--wait=none")
	for i := range 12 {
		want(t, 0, "stored", "send", "alice", "charge", "--id", fmt.Sprint("c", i), "--wait=none")
	}
	wantSoon(t, 0, "STUCK SPACE | alice | hang/a1 | its handler has been running since | alice (13)", "fleet")
	if f, err := fleet.Look(t.Context(), b); err != nil {
		t.Error(err)
	} else {
		f.At = f.At.Add(soon)
		says(t, judged(t, s.ClientURL(), f), "stuck spaces space alice at event a1 of stream hang, on pay-", "13 of them of space alice")
	}
	g.release()
	goneSoon(t, "STUCK")
}

// A handler does not return, and most events of the partition are for its space: both are reported with
// the space's name, and no other space is.
func TestIncident_AHandlerThatBlocksAndTheBacklogOfItsSpace(t *testing.T) {
	t.Parallel()
	g := newGate()
	defer g.release()
	d := started(t, settle.Config{Programs: settle.Always(settle.NewProgram("hot").Handle("slow", g.wait).
		Handle("quick", func(*settle.Tx, *settle.Event) (settle.Value, error) { return settle.ValueOf("done") }))})
	defer g.release()
	out := wantSoon(t, 0, "1 worker", "fleet")
	saysNot(t, out, "MOST OF SPACE", "STUCK")
	saysNot(t, judgedAfter(t, d, time.Hour), "! stuck spaces", "! backlog", "✗")
	sendTo(t, d, "hot", "slow", 40)
	want(t, 0, "handled", "send", "cold", "quick", "--wait")
	wantSoon(t, 0, "MOST OF SPACE | hot (40)", "fleet")
	out = wantSoon(t, 0, "STUCK SPACE | hot | slow/e0 | its handler has been running since", "fleet")
	saysNot(t, out, "cold")
	text := judgedAfter(t, d, soon)
	says(t, text, "! stuck spaces space hot at event e0 of stream slow", "its handler has been running since", "Code that does not return belongs in an action",
		"40 events since the first that is not known to be handled", "40 of them of space hot", "More workers do not help one space")
	saysNot(t, text, "cold")
	says(t, judgedAfter(t, d, time.Hour), "✗ stuck spaces space hot")
	g.release()
	goneSoon(t, "hot")
}

// Many timers are due at one moment, and their handler is slow: the report names their space, and since
// when the first has been due.
func TestIncident_AStormOfTimers(t *testing.T) {
	t.Parallel()
	g := newGate()
	defer g.release()
	var ahead atomic.Int64
	d := started(t, settle.Config{
		Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
		Programs: settle.Always(settle.NewProgram("clock").Handle("ring", g.wait).
			Handle("plan", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
				for i := range many / 4 {
					tx.SetTimer(fmt.Sprint(ev.ID, "-", i), "ring", tx.Now().Add(time.Hour), nil)
				}
				return settle.Value{}, nil
			})),
	})
	defer g.release()
	for i := range 4 {
		want(t, 0, "handled", "send", "tower", "plan", "--id", fmt.Sprint("t", i), "--wait")
	}
	saysNot(t, wantSoon(t, 0, "1 worker", "fleet"), "late")
	says(t, judgedAfter(t, d, 0), "✓ timers none is late")
	ahead.Store(int64(2 * time.Hour))
	// However many are due, only one is being handled.
	wantSoon(t, 0, "timers of space tower are late on w1: the first of 2000 events was due at", "fleet")
	wantSoon(t, 2, `"check": "timers" | space tower, on w1: the first of 2000 events was due 1h | settle timers tower`, "doctor", "--json")
	g.release()
	goneSoon(t, "timers of space")
}

// One event stands for all missed times of a job that was due while nothing ran: the doctor reports the job,
// and their number.
func TestIncident_AJobWhoseTimesWereMissed(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	ticks := make(chan string, 100)
	d := started(t, settle.Config{
		Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
		Programs: settle.Always(settle.NewProgram("jobs").
			Handle("wake", func(*settle.Tx, *settle.Event) (settle.Value, error) { return settle.Value{}, nil }).
			Handle("sum", func(_ *settle.Tx, ev *settle.Event) (settle.Value, error) {
				n, _ := ev.Payload.Get("missed").AsInt()
				ticks <- fmt.Sprint(n)
				return settle.ValueOf(n)
			}).
			Cron("hourly", "0 * * * *", settle.NewStream[cron.Tick]("sum"))),
	})
	want(t, 0, "handled", "send", "office", "wake", "--wait")
	saysNot(t, wantSoon(t, 0, "1 worker", "fleet"), "passed over")
	saysNot(t, judgedAfter(t, d, 0), "passed over")
	for _, id := range d.Workers() {
		d.KillWorker(id)
	}
	ahead.Store(int64(10 * time.Hour))
	if _, err := d.AddWorker(t.Context()); err != nil {
		t.Fatal(err)
	}
	if missed := <-ticks; missed != "9" {
		t.Errorf("the event stands for %s others, want 9", missed)
	}
	wantSoon(t, 0, "job hourly of space office has skipped 9 times after the one of", "fleet")
	wantSoon(t, 2, `"check": "timers" | job hourly of space office has skipped 9 times | CatchUp`, "doctor", "--json")
}

// Many spaces are due at once, and there is room for few: the fleet reports how many wait, on which worker, and
// which are next.
func TestIncident_ManySpacesAreWokenAtOnce(t *testing.T) {
	t.Parallel()
	g := newGate()
	defer g.release()
	d := started(t, settle.Config{Options: worker.Options{MaxAwake: 50}, Programs: settle.Always(settle.NewProgram("many").Handle("slow", g.wait))})
	defer g.release()
	saysNot(t, wantSoon(t, 0, "1 worker", "fleet"), "wait to be loaded")
	says(t, judgedAfter(t, d, 0), "✓ waking fewer than 100 spaces")
	sendMany(t, d, "slow", many, func(i int) string { return fmt.Sprintf("s%04d", i) })
	wantSoon(t, 0, "1950 spaces wait to be loaded by w1, next: s | 50 are in memory", "fleet")
	wantSoon(t, 1, `"check": "waking" | 1950 spaces wait to be loaded by w1, next: s | 50 are in memory, of at most 50 | --max-awake`, "doctor", "--json")
	g.release()
	goneSoon(t, "wait to be loaded")
}

// A worker has reached its limit of watches: the doctor reports the document with the most, and that others are
// refused.
func TestIncident_AStormOfWatches(t *testing.T) {
	t.Parallel()
	d := started(t, settle.Config{Programs: settle.Always(counter()), Workers: -1})
	const most = many
	w, err := settle.StartWorker(t.Context(), d.Bus(), settle.WorkerConfig{ID: "w7", Programs: settle.Always(counter()), Live: live.Config{MaxWatches: most}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	saysNot(t, wantSoon(t, 0, "1 worker", "fleet"), "watches")
	says(t, judgedAfter(t, d, 0), "✓ watches 0, and room for more at each worker")
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	for i := range most + 1 {
		watching.Go(func() { // ends with ctx
			q := live.Watch{Space: "cart", Document: "n"}
			if i == 0 {
				q.Document = "double"
			}
			_ = (&live.Client{Bus: d.Bus()}).Watch(ctx, q, func(live.Event) {})
		})
	}
	wantSoon(t, 0, "w7 serves 2000 watches, which is its limit | of them of cart/n; it has refused", "fleet")
	wantSoon(t, 1, `"check": "watches" | worker w7 serves 2000 watches, of at most 2000 | of document n of space cart; it has refused`, "doctor", "--json")
	cancel()
	goneSoon(t, "watches")
}

// A version that fails with every event shows in the dead letters, with the stream and the error. A
// version that workers cannot compile is reported, with its spaces and the version that they run
// instead.
func TestIncident_ABadDeploy(t *testing.T) {
	t.Parallel()
	d := hosting(t)
	dir := t.TempDir()
	want(t, 0, "cart@", "deploy", file(t, dir, "cart.star", cart("5", "0")))
	want(t, 0, "handled", "send", "cart-1", "add", "--id", "a0", "--wait")
	saysNot(t, wantSoon(t, 0, "1 worker", "fleet"), "cannot run")
	says(t, judgedAfter(t, d, 0), "✓ dead letters none", "✓ programs every deployed version")

	bad := strings.Replace(cart("5", "0"), "items.n += 1", `fail("the shelf is empty")`, 1)
	want(t, 0, "cart@", "deploy", file(t, dir, "cart.star", bad))
	// An event that the previous version has handled stays handled, so each attempt sends another one,
	// until three have failed.
	for i, failed, begun := 0, 0, time.Now(); failed < 3; i++ {
		_, wrong := try(t, 1, "failed", "send", "cart-1", "add", "--id", fmt.Sprint("b", i), "--wait")
		switch {
		case len(wrong) == 0:
			failed++
		case time.Since(begun) > time.Minute:
			t.Fatal(wrong)
		}
	}
	wantSoon(t, 1, "3 open, the oldest for | 3 of these of stream add, the first because: | the shelf is empty", "doctor", "--json")

	broken := star.Source{Name: "cart", Entry: "cart.star", Files: map[string]string{"cart.star": "handle("}}
	v, err := program.NewVersion(broken, "test", "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := program.Publish(t.Context(), d.Bus(), v); err != nil {
		t.Fatal(err)
	}
	if _, err := program.Decide(t.Context(), d.Bus(), "cart*", func(r program.Rule) (program.Choice, error) {
		c := r.Choice
		c.Target = program.Target{Program: v.Program, Version: v.ID}
		return c, nil
	}); err != nil {
		t.Fatal(err)
	}
	wantSoon(t, 0, "a deployed version cannot run on w1: spaces cart* should run cart@"+v.ID+", but cart@ | runs there: ", "fleet")
	wantSoon(t, 2, `"check": "programs" | on worker w1: spaces cart* should run cart@`+v.ID+" | settle rollback", "doctor", "--json")
}

// The finding about a wrong clock names only the worker that has it.
func TestIncident_AWorkerWhoseClockIsOff(t *testing.T) {
	t.Parallel()
	d := counting(t, 1)
	saysNot(t, wantSoon(t, 1, "1 worker: ", "doctor"), "the clock of worker")
	w, err := settle.StartWorker(t.Context(), d.Bus(), settle.WorkerConfig{
		ID: "late", Programs: settle.Always(counter()), Now: func() time.Time { return time.Now().Add(-10 * time.Minute) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	out := wantSoon(t, 2, `"check": "clock" | the clock of worker late is | behind this machine's`, "doctor", "--json")
	saysNot(t, out, "the clock of worker w1")
	wantSoon(t, 0, "! the clock of late differs from this machine's by", "fleet")
}

// A hundred failed events are a warning, with the most frequent stream and the reason.
func TestIncident_AFloodOfDeadLetters(t *testing.T) {
	t.Parallel()
	d := started(t, settle.Config{Programs: settle.Always(settle.NewProgram("mail").
		Handle("post", func(*settle.Tx, *settle.Event) (settle.Value, error) {
			return settle.Value{}, errors.New("the letter box is full")
		}).
		Handle("call", func(*settle.Tx, *settle.Event) (settle.Value, error) {
			return settle.Value{}, errors.New("the line is dead")
		}))})
	sendTo(t, d, "street", "call", 1)
	wantSoon(t, 1, "1 open | 1 of these of stream call, the first because: the line is dead", "doctor", "--json")
	says(t, judgedAfter(t, d, 0), "✓ dead letters 1 event, ever")
	sendTo(t, d, "street", "post", 99)
	wantSoon(t, 1, "100 open | 99 of these of stream post, the first because: the letter box is full", "doctor", "--json")
	says(t, judgedAfter(t, d, 0), "! dead letters 100 events, ever")
	sendMany(t, d, "post", many-100, func(int) string { return "street" })
	wantSoon(t, 1, "2000 open | 1999 of these of stream post, the first because: the letter box is full | of stream call, the first because: the line is dead (event e0 of space street)", "doctor", "--json")
}
