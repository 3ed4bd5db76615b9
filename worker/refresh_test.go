package worker_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/raced"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// registry decides which program runs, as a program registry does.
type registry struct {
	mu      sync.Mutex
	program *space.Program
	err     error
}

func (d *registry) of(string) (*space.Program, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.program, d.err
}

func (d *registry) set(p *space.Program, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.program, d.err = p, err
}

// deploy selects the program to run, and notifies the workers.
func (d *registry) deploy(p *space.Program, workers ...*process) {
	d.set(p, nil)
	for _, w := range workers {
		w.Refresh()
	}
}

// edition is a version of a program with n rows: row i is the sum of document i, of everything that was
// added, and of the i-th of bumps. The version of a row names these.
//
//	add      adds the payload to total, and records the edition that did so
//	put      sets the documents of the payload
//	v1, v2   are handled by the edition with that name
func edition(t *testing.T, name string, n int, bumps map[int]int64) *space.Program {
	t.Helper()
	p := space.NewProgram("edition")
	p.Version = name
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(p.Handle("add", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
		total, _ := tx.Get("total").AsInt()
		by, _ := ev.Payload.AsInt()
		tx.Set("total", total+by)
		return model.String(name), nil
	}))
	must(p.Handle("put", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
		for doc, v := range ev.Payload.All() {
			tx.Set(doc, v)
		}
		return model.String(name), nil
	}))
	must(p.Handle(name, func(*space.Tx, *model.Event) (model.Value, error) { return model.String(name), nil }))
	for i := range n {
		in, row, bump := "in"+strconv.Itoa(i), "row"+strconv.Itoa(i), bumps[i]
		must(p.Add(space.NodeSpec{ID: row, Kind: space.Computation, Output: row, Version: fmt.Sprint("r", bump), Run: func(tx *space.Tx) (model.Value, error) {
			v, _ := tx.Get(in).AsInt()
			return model.Int(v + bump), nil
		}}))
		must(p.Add(space.NodeSpec{ID: "see" + row, Kind: space.Effect, Version: "1", Run: func(tx *space.Tx) (model.Value, error) {
			return tx.Get(row), nil
		}}))
	}
	must(p.Add(space.NodeSpec{ID: "twice", Kind: space.Computation, Output: "twice", Version: name, Run: func(tx *space.Tx) (model.Value, error) {
		total, _ := tx.Get("total").AsInt()
		return model.Int(2 * total), nil
	}}))
	return p
}

// since returns the computations that have run on a worker and are not in before.
func since(p *process, before []string) []string {
	now := ran(p)
	for _, id := range before {
		if i := slices.Index(now, id); i >= 0 {
			now = slices.Delete(now, i, i+1)
		}
	}
	return now
}

// In a new version of a program with 10,000 nodes, three have changed: exactly these run, in the same process
// and without a takeover, and no other node runs after a crash of the process.
func TestRefresh_RunsOnlyChangedNodesOfTenThousand(t *testing.T) {
	const n = 10_000
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var d registry
		d.set(edition(t, "v1", n, nil), nil)
		p := w.process(worker.Config{ID: "w1", Programs: d.of}, nil)
		w.Send("s", "put", "e1", `{"in7":7}`)
		observationsSaved(w, "s", 2*n)
		before := ran(p)
		d.deploy(edition(t, "v2", n, map[int]int64{3: 30, 7: 70, 9999: 1}), p)
		w.Pass(3 * time.Second) // until all is saved
		if a, b, c := w.Doc("s", "row3"), w.Doc("s", "row7"), w.Doc("s", "row9999"); a != "30" || b != "77" || c != "1" {
			t.Errorf("the rows are %s, %s and %s", a, b, c)
		}
		if got := since(p, before); !slices.Equal(got, []string{"row3", "row7", "row9999"}) {
			t.Errorf("%d nodes ran: %v", len(got), got[:min(len(got), 9)])
		}
		if got := w.Takeovers("s"); len(got) != 1 {
			t.Errorf("takeovers by %v", got)
		}
		p.Crash()
		second := w.process(worker.Config{ID: "w2", Programs: d.of}, nil)
		w.Send("s", "put", "e2", `{}`)
		w.EventuallyEnded("s", 2)
		if got := ran(second); len(got) != 0 {
			t.Errorf("%d nodes ran because of the restart: %v", len(got), got[:min(len(got), 9)])
		}
	})
}

// versionsOf returns the events of a space that were handled, and the program version that handled each, from
// the log.
func versionsOf(w *world, name string) (events, versions []string) {
	w.Helper()
	version := map[string]string{}
	for _, c := range w.Commits(name) {
		if c.Program != "" {
			version[c.Runtime] = c.Program
		}
		for i := range c.Txs {
			if rc := c.Txs[i].Receipt; rc != nil {
				events, versions = append(events, rc.Event), append(versions, version[c.Runtime])
				if said, _ := rc.Result.AsString(); said != version[c.Runtime] {
					w.Errorf("event %s was handled by %q, and the log has %s", rc.Event, said, version[c.Runtime])
				}
			}
		}
	}
	return events, versions
}

// Versions change back and forth while events arrive every millisecond. No event is lost, repeated or out of
// order; no append is refused; watchers see ascending values; no space stands still; nodes that are equal in
// both versions do not run because of a change.
func TestRefresh_UnderLoadLosesAndDelaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const partitions = 2
		w := newWorld(t, partitions)
		editions := []*space.Program{edition(t, "v1", 20, nil), edition(t, "v2", 20, map[int]int64{5: 1})}
		var d registry
		d.set(editions[0], nil)
		p := w.remote(worker.Config{ID: "w1", Programs: d.of})
		var spaces []string
		for i := range partitions {
			spaces = append(spaces, worldtest.SpacesIn(i, partitions, 2)...)
		}
		l := w.loadOf(spaces, time.Duration(raced.Step(4))*time.Millisecond, "1")
		w.Pass(200 * time.Millisecond)
		began := time.Now()
		var watches []*watched
		for _, s := range spaces {
			watches = append(watches, w.watch(s, "total"), w.watch(s, "twice"))
		}
		const changes = 50
		for i := range changes {
			d.deploy(editions[(i+1)%2], p)
			w.Pass(7 * time.Millisecond)
		}
		if gap := l.end(began); gap > 20*time.Millisecond {
			t.Errorf("a space has stood still for %v", gap)
		} else {
			t.Logf("the longest pause of a space was %v", gap)
		}
		if n := p.Counts().Refused; n != 0 {
			t.Errorf("%d appends were refused", n)
		}
		for _, s := range spaces {
			_, versions := versionsOf(w, s)
			turns := 0
			for i := 1; i < len(versions); i++ {
				if versions[i] != versions[i-1] {
					turns++
				}
			}
			if turns < changes/2 {
				t.Errorf("the program of %s has changed %d times of %d", s, turns, changes)
			}
			if n := p.Runs()[worker.RunKey{Space: s, Node: "row4"}]; n != 1 {
				t.Errorf("row4 of %s is equal in both versions, and ran %d times", s, n)
			}
			if got, want := w.Doc(s, "total"), fmt.Sprint(l.sent); got != want {
				t.Errorf("total of %s is %s, want %s", s, got, want)
			}
		}
		for _, v := range watches {
			values, revisions := v.seen()
			if !slices.IsSorted(revisions) || !slices.IsSortedFunc(values[1:], func(a, b string) int { return atoi(a) - atoi(b) }) {
				t.Errorf("a watch went back: %v", values)
			}
		}
	})
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// A change of program waits for an append in doubt until it is answered. The work in flight is in the log
// once, whether the append was accepted, lost or refused.
func TestRefresh_WhileAnAppendIsInFlightRefusedOrInDoubt(t *testing.T) {
	for _, how := range []string{"under way", "in doubt", "refused"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				var d registry
				d.set(edition(t, "v1", 3, nil), nil)
				p := w.process(worker.Config{ID: "w1", Programs: d.of, Options: worker.Options{Checkpoint: time.Hour}}, nil)
				w.Send("s", "add", "e1", "1")
				w.EventuallyEnded("s", 1)
				var holding, lost atomic.Bool
				holding.Store(true)
				p.Bus.Inject(func(op membus.Op) membus.Fate {
					if op.Label == "append" && holding.Load() {
						if how == "in doubt" && !lost.Swap(true) {
							return membus.DropAck // in the log, and retried
						}
						return membus.Delay
					}
					return membus.Deliver
				})
				w.Send("s", "add", "e2", "1") // in flight
				w.Pass(10 * time.Millisecond)
				w.Send("s", "add", "e3", "1") // waits for that
				w.Pass(10 * time.Millisecond)
				d.deploy(edition(t, "v2", 3, map[int]int64{1: 5}), p)
				w.Send("s", "add", "e4", "1")
				w.Send("s", "v1", "e5")
				w.Pass(10 * time.Millisecond)
				if how == "refused" {
					elsewhere(w, "s", model.Write{Doc: "in1", Value: model.Int(100)})
				}
				holding.Store(false)
				p.Bus.Release()
				w.EventuallyEnded("s", 5)
				w.Pass(time.Second)
				events, versions := versionsOfHandled(w, "s")
				done := worldtest.Numbered(5)
				if how == "refused" {
					done = worldtest.Numbered(4) // e5 is handled again, by the version without a handler for it
				}
				if !slices.Equal(events, done) {
					t.Errorf("handled events are %v, want %v", events, done)
				}
				if first, last := versions[0], versions[len(versions)-1]; first != "v1" || how == "refused" && last != "v2" {
					t.Errorf("the events were handled by %v", versions)
				}
				if got := w.Doc("s", "total"); got != "4" {
					t.Errorf("total is %s, want 4", got)
				}
				want := "5"
				if how == "refused" {
					want = "105"
				}
				if got := w.Doc("s", "row1"); got != want {
					t.Errorf("row1 is %s, want %s", got, want)
				}
			})
		})
	}
}

// versionsOfHandled is versionsOf without events that were refused, which no handler has handled.
func versionsOfHandled(w *world, name string) (events, versions []string) {
	w.Helper()
	for _, rc := range w.Receipts(name) {
		if said, ok := rc.Result.AsString(); ok {
			events, versions = append(events, rc.Event), append(versions, said)
		}
	}
	return events, versions
}

// When the registry fails to return a program, or returns none, the space continues with the old one, and the
// operator is notified.
func TestRefresh_WithoutAProgramTheSpaceKeepsTheOldOne(t *testing.T) {
	for _, err := range []error{nil, errors.New("the registry is out of order")} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			var d registry
			d.set(edition(t, "v1", 1, nil), nil)
			p := w.process(worker.Config{ID: "w1", Programs: d.of}, nil)
			w.Send("s", "v1", "e1")
			w.EventuallyEnded("s", 1)
			d.set(nil, err)
			p.Refresh()
			w.Send("s", "v1", "e2")
			w.EventuallyEnded("s", 2)
			w.wantHandled("s", "e1", "e2")
			if log := w.Log.String(); !strings.Contains(log, "ERROR no program for spaces that are awake; they go on with those that they have worker=w1 spaces=1 space=s program=edition version=v1") {
				t.Errorf("the logger wrote %s", log)
			}
			w.Send("t", "v2", "e1") // has none, and waits
			w.Pass(time.Second)
			d.deploy(edition(t, "v2", 1, nil), p)
			w.EventuallyEnded("t", 1)
			w.Send("s", "v1", "e3") // the new version has no handler for it
			w.EventuallyEnded("s", 3)
			if rc := w.Receipts("s")[2]; rc.Outcome != model.Refused {
				t.Errorf("an event without a handler in the new program has receipt %+v", rc)
			}
		})
	}
}

// jobs is a program that records the wall times of the stream tick, and of a job that runs every d.
func jobs(t *testing.T, version string, d time.Duration) *space.Program {
	p := reminders(t)
	p.Version = version
	if d == 0 {
		return p
	}
	if err := p.Cron(space.CronSpec{Name: "job", Stream: "now", Schedule: schedule(d), Spec: d.String()}); err != nil {
		t.Fatal(err)
	}
	return p
}

type schedule time.Duration

func (s schedule) Next(after time.Time) time.Time {
	return after.Truncate(time.Duration(s)).Add(time.Duration(s))
}

// A job gets its new schedule at once, and ends with a program that does not have it. Timers and delayed
// events keep waiting across changes, and fire once.
func TestRefresh_ReplacesJobsAndKeepsTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var d registry
		d.set(jobs(t, "hourly", time.Hour), nil)
		p := w.process(worker.Config{ID: "w1", Programs: d.of, Options: worker.Options{Idle: -1}}, nil)
		w.Pass(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)) + time.Second)
		began := time.Now()
		w.Send("s", "remind", "e1", `{"in":7200000,"on":"now"}`)
		w.sendLater("s", "e2", began.Add(3*time.Hour))
		w.Pass(time.Minute)
		d.deploy(jobs(t, "ten minutes", 10*time.Minute), p)
		w.Pass(time.Hour - 2*time.Minute) // 10, 20, 30, 40, 50
		if n := len(w.Receipts("s")); n != 1+5 {
			t.Errorf("the job was handled %d times in an hour", n-1)
		}
		d.deploy(jobs(t, "none", 0), p)
		w.Pass(3 * time.Hour)
		if n := len(w.Receipts("s")); n != 1+5+2 {
			t.Errorf("%d receipts, want the timer and the delayed event besides", n)
		}
		if got := w.handledAt("s", "e2"); got.Before(began.Add(3*time.Hour)) || got.After(began.Add(3*time.Hour+time.Second)) {
			t.Errorf("e2 was handled after %v", got.Sub(began))
		}
	})
}

// A rollback repairs what the new version broke, and keeps what is equal in both.
func TestRefresh_ARollbackRepairs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var d registry
		good := edition(t, "v1", 5, nil)
		d.set(good, nil)
		p := w.process(worker.Config{ID: "w1", Programs: d.of}, nil)
		w.Send("s", "put", "e1", `{"in1":1,"in2":2}`)
		w.Eventually("the rows are computed", func() bool { return w.Doc("s", "row2") == "2" })
		before := ran(p)
		d.deploy(edition(t, "v2", 2, map[int]int64{1: 100}), p) // one is wrong, three are gone
		w.Eventually("row1 is wrong", func() bool { return w.Doc("s", "row1") == "101" })
		w.Send("s", "put", "e2", `{"in2":20}`)
		w.EventuallyEnded("s", 2)
		if got := w.Doc("s", "row2"); got != "2" {
			t.Errorf("row2, whose node is gone, is %s", got)
		}
		d.deploy(good, p)
		w.Eventually("row1 is right again", func() bool { return w.Doc("s", "row1") == "1" && w.Doc("s", "row2") == "20" })
		w.Pass(time.Second)
		if got := since(p, before); !slices.Equal(got, []string{"row1", "row1", "row2", "row3", "row4"}) {
			t.Errorf("%v ran", got)
		}
	})
}

// Several refreshes run concurrently, while programs change: the last one counts.
func TestRefresh_TheLastOfConcurrentRefreshesCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var d registry
		editions := []*space.Program{edition(t, "v1", 3, nil), edition(t, "v2", 3, map[int]int64{0: 1}), edition(t, "v3", 3, map[int]int64{1: 1})}
		d.set(editions[0], nil)
		p := w.process(worker.Config{ID: "w1", Programs: d.of}, nil)
		w.Send("s", "add", "e0", "1")
		w.EventuallyEnded("s", 1)
		for round := range 20 {
			var all sync.WaitGroup
			for i := range 3 {
				all.Go(func() { d.deploy(editions[(round+i)%3], p) })
			}
			w.Send("s", "add", fmt.Sprint("e", round+1), "1")
			all.Wait()
		}
		w.EventuallyEnded("s", 21) // else the last event may be handled before the change
		d.deploy(editions[2], p)
		w.Send("s", "v3", "last")
		w.EventuallyEnded("s", 22)
		events, versions := versionsOfHandled(w, "s")
		if len(events) != 22 || versions[21] != "v3" {
			t.Errorf("%v by %v", events, versions)
		}
		w.Eventually("the rows are of v3", func() bool { return w.Doc("s", "row0") == "0" && w.Doc("s", "row1") == "1" })
	})
}

// A new version is deployed while partitions are handed over. No event is lost, and in the end every space
// runs it, whichever worker owns it.
func TestRefresh_DuringAHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const partitions = 4
		w := newWorld(t, partitions)
		var d registry
		editions := []*space.Program{edition(t, "v1", 3, nil), edition(t, "v2", 3, map[int]int64{0: 1})}
		d.set(editions[0], nil)
		first := w.remote(worker.Config{ID: "w1", Programs: d.of})
		var spaces []string
		for i := range partitions {
			spaces = append(spaces, worldtest.SpacesIn(i, partitions, 1)...)
		}
		l := w.loadOf(spaces, 2*time.Millisecond, "1")
		w.Pass(300 * time.Millisecond)
		second := w.remote(worker.Config{ID: "w2", Programs: d.of})
		for i := range 200 {
			w.Pass(time.Millisecond)
			d.deploy(editions[(i+1)%2], first, second)
		}
		w.Pass(time.Second)
		stopped := make(chan struct{})
		go func() { first.Shutdown(); close(stopped) }()
		for i := range 200 {
			w.Pass(time.Millisecond)
			d.deploy(editions[(i+1)%2], first, second)
		}
		<-stopped
		d.deploy(editions[1], second)
		l.end(time.Now())
		for _, s := range spaces {
			if got, want := w.Doc(s, "total"), fmt.Sprint(l.sent); got != want {
				t.Errorf("total of %s is %s, want %s", s, got, want)
			}
			w.Send(s, "v2", "last")
			w.EventuallyEnded(s, l.sent+1)
			if rcs := w.Receipts(s); rcs[l.sent].Outcome != model.Handled {
				t.Errorf("%s does not run the last version: %+v", s, rcs[l.sent])
			}
			if got := w.Doc(s, "row0"); got != "1" {
				t.Errorf("row0 of %s is %s", s, got)
			}
		}
	})
}

// Mirrors in both directions continue across a change: the links are the same before and after.
func TestRefresh_MirrorsContinueInBothDirections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var d registry
		d.set(book(t), nil)
		p := w.process(worker.Config{ID: "w1", Programs: d.of}, nil)
		w.Send("a", "look", "e1", `"b"`)
		v := w.watch("a", "abroad")
		w.Send("b", "add", "e1")
		w.Eventually("the watcher sees the value", func() bool { return v.last() == "2" })
		followed := w.Log.Count("mirror document")
		d.deploy(book(t), p) // nodes without a version run
		w.Send("b", "add", "e2")
		w.Eventually("the watcher sees the value", func() bool { return v.last() == "4" })
		if n := p.Mirrors(); n != 1 || w.Log.Count("mirror document") != followed {
			t.Errorf("%d documents are mirrored", n)
		}
		if values, _ := v.seen(); slices.Contains(values, "absent") && values[0] != "absent" {
			t.Errorf("the watch received %v", values)
		}
	})
}
