package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/status"
	"github.com/settlehq/settle/worker"
)

// stuckLines formats what a worker reports about stuck spaces, without times.
func stuckLines(f *status.Figures) (lines []string) {
	for _, s := range f.Stuck {
		lines = append(lines, fmt.Sprintf("%s %s/%s %s: %s", s.Space, s.Stream, s.Event, s.Cause, s.Reason))
	}
	slices.Sort(lines)
	return lines
}

// wantStuck waits until the worker reports exactly these stuck spaces, each given by a prefix.
func (w *world) wantStuck(p *process, want ...string) status.Figures {
	w.Helper()
	var f status.Figures
	said := func() bool {
		f = p.Figures()
		lines := stuckLines(&f)
		if len(lines) != len(want) {
			return false
		}
		for i := range want {
			if !strings.HasPrefix(lines[i], want[i]) {
				return false
			}
		}
		return true
	}
	for range 60 {
		if said() {
			return f
		}
		w.Pass(time.Second)
	}
	w.Fatalf("stuck spaces: %q, want %q", stuckLines(&f), want)
	return f
}

// unheardOf is a bus that receives nothing from one space.
type unheardOf struct {
	*membus.Bus
	space string
}

func (b unheardOf) LoadState(ctx context.Context, space string) (model.SpaceState, error) {
	if space == b.space {
		<-ctx.Done()
		return model.SpaceState{}, ctx.Err()
	}
	return b.Bus.LoadState(ctx, space)
}

func (b unheardOf) LoadPart(ctx context.Context, space, key string) (model.SpaceState, error) {
	if space == b.space {
		<-ctx.Done()
		return model.SpaceState{}, ctx.Err()
	}
	return b.Bus.LoadPart(ctx, space, key)
}

func (b unheardOf) FollowSpace(ctx context.Context, space string, after uint64, deliver func(model.LogEntry)) error {
	if space == b.space {
		<-ctx.Done()
		return ctx.Err()
	}
	return b.Bus.FollowSpace(ctx, space, after, deliver)
}

// A stuck space is reported with its event, since when it is stuck, and why. Spaces that make progress beside
// it are not reported.
func TestStuck_SpacesAreReportedWithEventTimeAndReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := book(t)
		release := make(chan struct{})
		unblock := sync.OnceFunc(func() { close(release) })
		defer unblock()
		if err := p.Handle("block", func(*space.Tx, *model.Event) (model.Value, error) { <-release; return model.Value{}, nil }); err != nil {
			t.Fatal(err)
		}
		proc := w.process(worker.Config{ID: "w1", Programs: func(name string) (*space.Program, error) {
			switch name {
			case "orphan", "elsewhere":
				return nil, nil
			case "broken":
				return nil, errors.New("no such version")
			}
			return p, nil
		}}, func(b *membus.Bus) port.Bus { return unheardOf{b, "elsewhere"} })
		begun := time.Now()
		w.sendMany("orphan", "add", 3)
		w.Send("broken", "add", "b1")
		w.Send("blocks", "block", "x1")
		w.Send("reads", "read", "r1", `"elsewhere"`)
		for i := range 30 { // other spaces make progress, one of them continuously
			w.Send(fmt.Sprintf("well%d", i), "add", "e1")
		}
		for i := range 40 {
			w.Send("hot", "add", fmt.Sprintf("h%d", i))
			w.Pass(500 * time.Millisecond)
		}
		f := w.wantStuck(proc,
			"blocks block/x1 running: its handler has been running since ",
			"broken add/b1 no program: there is no program that it is to run: no such version",
			"orphan add/e1 no program: there is no program that it is to run",
			"reads read/r1 document: waits for document @elsewhere/double, which is not here",
		)
		if f.StuckCount != 4 {
			t.Errorf("%d spaces count as stuck", f.StuckCount)
		}
		for _, s := range f.Stuck {
			if since := s.Since.Sub(begun); since < 0 || since > time.Second {
				t.Errorf("%s counts as stuck since %v after it began", s.Space, since)
			}
		}
		unblock()
		w.Eventually("the handler returns", func() bool { return len(w.Receipts("blocks")) == 1 })
		w.wantStuck(proc, "broken", "orphan", "reads")
	})
}

// The oldest stuck spaces are named, and all are counted.
func TestStuck_TheOldestAreNamedAndAllAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		proc := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(nil)}, nil)
		for i := range 50 {
			w.Send(fmt.Sprintf("s%02d", i), "add", "e1")
			if i == 24 {
				w.Pass(10 * time.Second)
			}
		}
		var f status.Figures
		w.Eventually("all stuck spaces are counted", func() bool { f = proc.Figures(); return f.StuckCount == 50 })
		if len(f.Stuck) != 20 {
			t.Fatalf("%d are named", len(f.Stuck))
		}
		for _, s := range f.Stuck {
			if s.Space > "s24" {
				t.Errorf("%s is named instead of older ones", s.Space)
			}
		}
	})
}

// All stuck spaces are named when that is asked: page by page, each once, in the order of the time since which they have been stuck.
func TestStuck_AllAreNamedPageByPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		proc := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(nil)}, nil)
		const all = 1100
		for i := range all {
			w.Send(fmt.Sprintf("s%04d", i), "add", "e1")
		}
		w.Eventually("all stuck spaces are counted", func() bool { return proc.Figures().StuckCount == all })
		var q status.StuckQuery
		named, pages := map[string]bool{}, 0
		for more := true; more; pages++ {
			question, err := json.Marshal(status.Question{Stuck: &q})
			if err != nil {
				t.Fatal(err)
			}
			answer, err := w.Client.Ask(t.Context(), status.Endpoint("w1"), question)
			if err != nil {
				t.Fatal(err)
			}
			var page status.StuckPage
			if err := json.Unmarshal(answer, &page); err != nil || !page.Paged || len(page.Stuck) == 0 {
				t.Fatalf("page %d has %d spaces: %v", pages, len(page.Stuck), err)
			}
			for i := range page.Stuck {
				s := &page.Stuck[i]
				if !q.Behind(s) || named[s.Space] || s.Cause != status.CauseNoProgram {
					t.Fatalf("page %d has %+v after %s", pages, s, q.Space)
				}
				named[s.Space] = true
				q = status.StuckQuery{Since: s.Since, Space: s.Space}
			}
			more = page.More
		}
		if len(named) != all || pages != 3 {
			t.Errorf("%d spaces are named on %d pages", len(named), pages)
		}
	})
}

// A worker whose spaces all make progress reports none as stuck, however busy it is.
func TestStuck_NoSpaceIsReportedWhereAllMakeProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		proc := w.worker("w1")
		for i := range 60 {
			for s := range 5 {
				w.Send(fmt.Sprintf("s%d", s), "add", fmt.Sprintf("e%d", i))
			}
			w.Pass(300 * time.Millisecond)
			if f := proc.Figures(); f.StuckCount > 0 {
				t.Fatalf("stuck: %q", stuckLines(&f))
			}
		}
	})
}

// A space with a backlog makes progress while one pass handles many events, however late their commit is: the
// start of each handler and each computation is progress.
func TestStuck_ASpaceWithABacklogIsNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := book(t)
		work := func(d time.Duration) { // as code of an application does
			t := time.NewTimer(d)
			defer t.Stop()
			<-t.C
		}
		if err := p.Handle("work", func(*space.Tx, *model.Event) (model.Value, error) {
			work(50 * time.Millisecond)
			return model.Value{}, nil
		}); err != nil {
			t.Fatal(err)
		}
		for i := range 200 {
			doc := fmt.Sprint("late", i)
			if err := p.Add(space.NodeSpec{ID: doc, Kind: space.Computation, Output: doc, Run: func(tx *space.Tx) (model.Value, error) {
				work(100 * time.Millisecond)
				return tx.Get("n"), nil
			}}); err != nil {
				t.Fatal(err)
			}
			w.watch("wide", doc)
		}
		proc := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(p)}, nil)
		w.Send("wide", "add", "e1")
		const n = 1000
		w.sendMany("hot", "work", n)
		for range 4 * 60 {
			if w.Pass(250 * time.Millisecond); len(w.Receipts("hot")) == n {
				return
			}
			if f := proc.Figures(); f.StuckCount > 0 {
				t.Errorf("stuck after %d receipts: %q", len(w.Receipts("hot")), stuckLines(&f))
			}
		}
		t.Errorf("%d receipts after a minute, want %d", len(w.Receipts("hot")), n)
	})
}

// The age of a stuck space begins when it gets stuck. How long its event had waited before is a separate
// figure.
func TestStuck_TheAgeBeginsWithTheStandstill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := book(t)
		release := make(chan struct{})
		unblock := sync.OnceFunc(func() { close(release) })
		defer unblock()
		if err := p.Handle("block", func(*space.Tx, *model.Event) (model.Value, error) { <-release; return model.Value{}, nil }); err != nil {
			t.Fatal(err)
		}
		sent := time.Now()
		w.Send("cart", "block", "x1")
		w.Pass(10 * time.Minute) // the space is not served
		began := time.Now()
		proc := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(p)}, nil)
		f := w.wantStuck(proc, "cart block/x1 running: its handler has been running since ")
		s := f.Stuck[0]
		if late := s.Since.Sub(began); late < 0 || late > 2*time.Second {
			t.Errorf("the space counts as stuck since %v after it began", late)
		}
		if late := s.Stored.Sub(sent); late < 0 || late > time.Second {
			t.Errorf("its event was stored %v after it was sent", late)
		}
	})
}

// A space whose changes cannot be saved, or whose log does not answer, is reported with exactly that cause.
func TestStuck_AStoreThatFailsIsReportedAsTheCause(t *testing.T) {
	for label, want := range map[string]string{
		"save":   "s0 / unsaved: what it has done is not saved yet",
		"append": "s0 add/e1 uncommitted: the log has not answered its commit yet",
	} {
		t.Run(label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				proc := w.worker("w1")
				proc.Bus.Inject(func(op membus.Op) membus.Fate {
					if op.Label == label && op.Space == "s0" {
						return membus.Delay
					}
					return membus.Deliver
				})
				w.Send("s0", "add", "e1")
				w.wantStuck(proc, want)
				proc.Bus.Inject(nil)
				proc.Bus.Release()
				w.wantStuck(proc)
			})
		})
	}
}
