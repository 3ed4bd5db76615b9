package test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/worker"
)

// relayOf returns a version of relay: total has the same code in every version, label does not.
func relayOf(version string) *settle.Program {
	return relay().
		Compute("sum", func(v *settle.View) (settle.Value, error) { return v.Get("total"), nil }, settle.Version("1")).
		Compute("label", func(v *settle.View) (settle.Value, error) {
			return settle.ValueOf(fmt.Sprintf("%s %s", version, v.Get("sum")))
		}, settle.Version(version)).
		Handle("which", func(*settle.Tx, *settle.Event) (settle.Value, error) { return settle.ValueOf(version) })
}

// rollout determines which version each worker runs.
type rollout struct {
	mu   sync.Mutex
	is   map[string]string
	made map[string]*settle.Program
}

func (r *rollout) programs(id string) settle.Programs {
	return func(string) *settle.Program {
		r.mu.Lock()
		defer r.mu.Unlock()
		version := r.is[id]
		if r.made[version] == nil {
			r.made[version] = relayOf(version)
		}
		return r.made[version]
	}
}

func (r *rollout) set(version string, ids ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		r.is[id] = version
	}
}

// A version is rolled out over running workers, one after the other, and rolled back on one, while some
// workers are restarted, so for most of the time two versions serve the spaces. No call, read or watch
// gets an error, an old value or a wrong count; in the end all spaces run the same version.
func TestRollingDeploy_TwoVersionsAtATimeLoseNothing(t *testing.T) {
	t.Parallel()
	r := &rollout{is: map[string]string{}, made: map[string]*settle.Program{}}
	ids := []string{"r1", "r2", "r3"}
	r.set("one", ids...)
	d := deploy(t, settle.Config{
		Programs: settle.Always(relayOf("none")), Workers: -1, Bus: bus.Config{Partitions: 4},
		Options: worker.Options{MemberTTL: patience}, // a slow machine must not look like a dead worker
	})
	f := &rolled{t: t, d: d, workers: map[string]rolledWorker{}, programs: r.programs}
	for _, id := range ids {
		f.start(id)
	}
	ctx, enough := context.WithCancel(testContext(t))
	defer enough()
	var asking sync.WaitGroup
	var answers atomic.Int64
	spaces := []string{"a", "b", "c", "d"}
	for _, space := range spaces {
		asking.Go(func() { keepCalling(ctx, t, d.Client(), space, &answers) }) // ends with ctx
		asking.Go(func() { keepGetting(ctx, t, d.Client(), space, &answers) }) // likewise
		asking.Go(func() { keepWatching(ctx, t, d.Client(), space) })          // likewise
	}
	someMore := func() {
		before := answers.Load()
		until(t, func() bool { return answers.Load() > before+24 })
	}
	upgrade := func(version string, ids ...string) {
		r.set(version, ids...)
		for _, id := range ids {
			f.workers[id].worker.Refresh()
		}
		someMore()
	}
	someMore()
	upgrade("two", "r1")
	upgrade("two", "r2")
	f.stop("r1") // what r1 served goes to one that runs two, or one
	someMore()
	f.start("r1")
	someMore()
	upgrade("one", "r2")
	upgrade("two", "r3")
	f.stop("r3")
	f.start("r3")
	upgrade("two", "r2")
	enough()
	asking.Wait()
	ended := testContext(t)
	for i, space := range append(spaces, "a-target") {
		rc, err := d.Client().Call(ended, settle.Outgoing{Space: space, Stream: "which", ID: settle.ID(fmt.Sprint("which", i))})
		if err != nil || rc.Result.String() != `"two"` {
			t.Errorf("%s is served by %+v, %v", space, rc, err)
		}
		until(t, func() bool { // the effect may come between two reads
			now, err := d.Client().Space(space).GetCurrent(ended, "label")
			sum, sumErr := d.Client().Space(space).GetCurrent(ended, "sum")
			if err != nil || sumErr != nil || !now.Current {
				t.Fatalf("label of %s is %+v, %v; sum is %+v, %v", space, now, err, sum, sumErr)
			}
			return now.Value.String() == fmt.Sprintf("%q", "two "+sum.Value.String())
		})
	}
	r.sameAgain(f, spaces, ids)
	for _, id := range ids {
		f.stop(id)
	}
}

// sameAgain rolls out another version when nothing else happens: only observed nodes whose code has
// changed run.
func (r *rollout) sameAgain(f *rolled, spaces, ids []string) {
	t, ctx := f.t, testContext(f.t)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	var labels sync.Map
	for _, space := range spaces {
		watching.Go(func() { // ends with ctx
			for u, err := range f.d.Client().Space(space).Watch(ctx, "label") {
				if err != nil {
					t.Error(err)
					return
				}
				labels.Store(space, u.Value.String())
			}
		})
	}
	showing := func(version string) func() bool {
		return func() bool {
			for _, space := range spaces {
				if got, _ := labels.Load(space); got == nil || len(got.(string)) < len(version)+1 || got.(string)[1:len(version)+1] != version {
					return false
				}
			}
			return true
		}
	}
	until(t, showing("two"))
	runs := func() map[worker.RunKey]uint64 {
		all := map[worker.RunKey]uint64{}
		for _, w := range f.workers { // any order: a sum
			for k, n := range w.worker.Runs() { // any order: a sum
				all[k] += n
			}
		}
		return all
	}
	before := runs()
	r.set("three", ids...)
	for _, w := range f.workers { // any order: each on its own
		w.worker.Refresh()
	}
	until(t, showing("three"))
	for k, n := range runs() { // any order: each on its own
		if more := n - before[k]; more > 0 && k.Node == "sum" || more > 1 {
			t.Errorf("%s of %s ran %d times for the new version", k.Node, k.Space, more)
		}
	}
}
