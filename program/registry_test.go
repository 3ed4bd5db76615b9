package program_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program"
)

func TestTheSameVersionIsTheSamePointerAndCompiledOnce(t *testing.T) {
	w := newWorld(t)
	w.pinTo("*", w.publish("p", "one"))
	r, changes := w.open()
	a, _ := r.Programs("a")
	b, _ := r.Programs("b")
	if a == nil || a != b {
		t.Errorf("space a runs %p, space b %p", a, b)
	}
	w.pinTo("c", w.publish("p", "two"))
	w.until(r, changes, "c", "two")
	w.pinTo("a", w.publish("p", "two"))
	w.until(r, changes, "a", "two")
	w.pinTo("a", w.publish("p", "one")) // back
	w.until(r, changes, "a", "one")
	if again, _ := r.Programs("a"); again != a {
		t.Errorf("rolled back, space a runs %p, and had run %p", again, a)
	}
	if n := w.compiled("one"); n != 1 {
		t.Errorf("compiled %d times", n)
	}
}

func TestARegistryKnowsTheRulesWhenItIsOpen(t *testing.T) {
	w := newWorld(t)
	for i := range 50 {
		w.pinTo(fmt.Sprintf("s%d", i), w.publish("p", fmt.Sprintf("text %d", i)))
	}
	r, _ := w.open()
	for i := range 50 {
		w.wantRuns(r, fmt.Sprintf("s%d", i), fmt.Sprintf("text %d", i))
	}
	w.wantRuns(r, "other", "nothing")
}

// A notification comes after the change is visible.
func TestARegistryThatHasJustOpenedTellsOfNoChange(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.pinTo("*", w.publish("p", "one"))
			_, changes := w.open()
			time.Sleep(time.Second)
			synctest.Wait()
			if n := len(changes); n != 0 {
				t.Errorf("it told of %d changes", n)
			}
		})
	}
}

func TestARegistryThatCannotLearnTheRulesSaysSo(t *testing.T) {
	w := newWorld(t)
	w.Client.Kill()
	ctx, cancel := context.WithTimeout(w.ctx, 10*time.Millisecond)
	defer cancel()
	if _, err := program.Open(ctx, w.Client, program.Config{Compile: w.compile}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("opened with %v", err)
	}
}

func TestAVersionThatDoesNotCompileHereNeverReplacesOneThatRuns(t *testing.T) {
	w := newWorld(t)
	good := w.publish("p", "good")
	w.pinTo("*", good)
	r, changes := w.open()
	before, _ := r.Programs("a")

	broken := w.publish("p", "broken")
	w.pinTo("*", broken)
	for len(r.Problems()) == 0 {
		if !w.next(changes) {
			w.Fatal("there is no trouble")
		}
	}
	troubles := r.Problems()
	if len(troubles) != 1 || troubles[0].Target != broken || troubles[0].Instead != good {
		t.Errorf("troubles: %v", troubles)
	}
	w.wantRuns(r, "a", "good")
	if p, _ := r.Programs("a"); p != before {
		t.Error("it runs another pointer")
	}

	again, _ := w.open() // a worker that starts now gets the same result
	w.wantRuns(again, "a", "good")

	w.pinTo("x", w.publish("p", "other")) // a change that does not concern it is no reason to say it again
	w.until(r, changes, "x", "other")
	if n := w.Log.Count(broken.Version); n != 2 {
		t.Errorf("told %d times by two registries", n)
	}
	w.pinTo("*", w.publish("p", "better"))
	w.until(r, changes, "a", "better")
	if left := r.Problems(); len(left) != 0 {
		t.Errorf("troubles are left: %v", left)
	}
}

func TestACanaryThatDoesNotCompileHereLeavesItsSpacesWithTheOthers(t *testing.T) {
	w := newWorld(t)
	good, broken := w.publish("p", "good"), w.publish("p", "broken")
	w.pin("*", program.Choice{Target: good, Canary: &program.Canary{Version: broken.Version, Percent: 99}})
	r, _ := w.open()
	for i := range 20 {
		w.wantRuns(r, fmt.Sprintf("s%d", i), "good")
	}
}

func TestASpaceWhoseOnlyVersionIsBrokenIsToldWhy(t *testing.T) {
	w := newWorld(t)
	w.pinTo("a", w.publish("p", "broken"))
	w.pinTo("*", w.publish("p", "good"))
	r, changes := w.open()
	if got := w.runs(r, "a"); !strings.Contains(got, "p.star:1:1") {
		t.Errorf("space a runs %s", got)
	}
	w.wantRuns(r, "b", "good")
	w.pin("a", program.Choice{}) // its own rule goes
	w.until(r, changes, "a", "good")
}

func TestARuleThatComesBeforeItsVersionIsFollowedWhenThatIsThere(t *testing.T) {
	w := newWorld(t)
	v := w.version("p", "late")
	w.pinTo("*", v.Target())
	r, changes := w.open()
	if got := w.runs(r, "a"); !strings.Contains(got, "has no version") {
		t.Errorf("space a runs %s", got)
	}
	w.publish("p", "late")
	w.until(r, changes, "a", "late")
}

func TestARuleThatNobodyCanReadChangesNothing(t *testing.T) {
	w := newWorld(t)
	rule := w.pinTo("a", w.publish("p", "one"))
	w.pinTo("*", w.publish("p", "other"))
	r, changes := w.open()
	rec, err := w.Client.LoadRecord(w.ctx, "rule.space.a")
	w.must(err)
	for _, text := range []string{"nonsense", `{"spaces":"b","program":"p","version":"1"}`, `{"spaces":"a","program":"p","version":"*"}`} {
		rec.Rev, err = w.Client.SaveRecord(w.ctx, model.Record{Key: rec.Key, Data: []byte(text), Rev: rec.Rev})
		w.must(err)
	}
	w.pinTo("marker", rule.Target)
	w.until(r, changes, "marker", "one")
	w.wantRuns(r, "a", "one")

	fresh, _ := w.open()
	if got := w.runs(fresh, "a"); !strings.HasPrefix(got, "error: ") {
		t.Errorf("a worker that starts runs %s there, and cannot know what it should be", got)
	}
	if n := w.Log.Count("cannot be decoded"); n == 0 {
		t.Error("there was no notification")
	}
}

func TestAVersionThatSomebodyHasAlteredDoesNotRun(t *testing.T) {
	w := newWorld(t)
	target := w.publish("p", "one")
	key := "version.p." + target.Version
	rec, err := w.Client.LoadRecord(w.ctx, key)
	w.must(err)
	_, err = w.Client.SaveRecord(w.ctx, model.Record{Key: key, Data: []byte(strings.Replace(string(rec.Data), "one", "two", 1)), Rev: rec.Rev})
	w.must(err)
	w.pinTo("*", target)
	r, _ := w.open()
	if got := w.runs(r, "a"); !strings.Contains(got, "altered") {
		t.Errorf("space a runs %s", got)
	}
}

func TestARegistryThatIsCutOffGoesOnWithWhatItKnows(t *testing.T) {
	server := newWorld(t)
	server.pinTo("*", server.publish("p", "one"))
	r, _ := server.open()
	server.Client.Kill()
	r.Close()
	server.wantRuns(r, "a", "one")
}

// interrupted is a store of records whose first follow ends, and which then has fewer records.
type interrupted struct {
	*membus.Bus
	end  chan struct{} // ends the first follow
	gone atomic.Pointer[string]
}

func (b *interrupted) FollowRecords(ctx context.Context, under string, deliver func(model.Record), ready func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if b.gone.Load() == nil {
		go func() { // ends with the follow
			select {
			case <-b.end:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return b.Bus.FollowRecords(ctx, under, func(r model.Record) {
		if gone := b.gone.Load(); gone == nil || !strings.HasSuffix(r.Key, *gone) {
			deliver(r)
		}
	}, ready)
}

// A store that goes back ends the follow: the rules are read again, and a rule that no longer exists no
// longer applies.
func TestARegistryForgetsARuleThatIsGoneWhenItFollowsAnew(t *testing.T) {
	w := newWorld(t)
	w.pinTo("*", w.publish("p", "one"))
	two := w.publish("q", "two")
	before, err := w.Client.ListRecords(w.ctx, "rule")
	w.must(err)
	w.pinTo("a", two)
	after, err := w.Client.ListRecords(w.ctx, "rule")
	w.must(err)
	b := &interrupted{Bus: w.Client, end: make(chan struct{})}
	changes := make(chan struct{}, 100)
	r, err := program.Open(w.ctx, b, program.Config{
		Compile: w.compile, OnChange: func() { changes <- struct{}{} }, Again: time.Millisecond,
	})
	w.must(err)
	t.Cleanup(r.Close)
	w.wantRuns(r, "a", "two")
	for _, rec := range after {
		if !slices.ContainsFunc(before, func(was model.Record) bool { return was.Key == rec.Key }) {
			b.gone.Store(&rec.Key)
		}
	}
	close(b.end)
	w.until(r, changes, "a", "one")
	w.wantRuns(r, "b", "one")
}

// A version to which a rule can be rolled back stays compiled.
func TestAVersionOfTheHistoryIsNotCompiledAgain(t *testing.T) {
	w := newWorld(t)
	one, two := w.publish("p", "one"), w.publish("p", "two")
	w.pinTo("a", one)
	r, changes := w.open()
	w.until(r, changes, "a", "one")
	for range 2 {
		w.pinTo("a", two)
		w.until(r, changes, "a", "two")
		w.pinTo("a", one)
		w.until(r, changes, "a", "one")
	}
	if n, m := w.compiled("one"), w.compiled("two"); n != 1 || m != 1 {
		t.Errorf("compiled %d and %d times", n, m)
	}
}

// unfetched is a bus that lacks the version of a target while on is set.
type unfetched struct {
	*membus.Bus
	key string
	on  atomic.Bool
}

func (b *unfetched) LoadRecord(ctx context.Context, key string) (model.Record, error) {
	if key == b.key && b.on.Load() {
		return model.Record{}, errors.New("the store is out of order")
	}
	return b.Bus.LoadRecord(ctx, key)
}

// A version that ran before is reported again.
func TestAVersionThatDoesNotRunIsToldOfOnceUntilItRuns(t *testing.T) {
	w := newWorld(t)
	base, first := w.publish("p", "base"), w.publish("p", "first")
	b := &unfetched{Bus: w.Client, key: "version.p." + first.Version}
	b.on.Store(true)
	changes := make(chan struct{}, 10000)
	w.pinTo("a", base)
	w.pinTo("a", first)
	r, err := program.Open(w.ctx, b, program.Config{
		Compile: w.compile, OnChange: func() { changes <- struct{}{} }, Again: time.Millisecond, Logger: w.Logger(),
	})
	w.must(err)
	t.Cleanup(r.Close)
	wantTold := func(want int) {
		t.Helper()
		for range 2000 { // it is requested repeatedly
			if w.Log.Count("cannot run here") >= want {
				break
			}
			w.next(changes)
		}
		for range 3 {
			w.next(changes)
		}
		if n := w.Log.Count("cannot run here"); n != want {
			t.Errorf("it is reported %d times, want %d", n, want)
		}
	}
	wantTold(1)
	b.on.Store(false)
	w.until(r, changes, "a", "first")
	for i := range 30 { // more than a rule remembers
		w.pinTo("a", w.publish("p", fmt.Sprintf("text %d", i)))
	}
	w.pinTo("a", base) // which runs instead, as before
	w.until(r, changes, "a", "base")
	b.on.Store(true)
	w.pinTo("a", first)
	wantTold(2)
}
