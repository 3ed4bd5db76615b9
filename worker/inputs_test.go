package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
	"github.com/settlehq/settle/worker/tasks"
)

// forecast is a program whose computation sky shows the weather at the place that the document where names,
// initially "LAS", and whose streams go, ask and drop change the place, refresh it and forget it.
func forecast(t *testing.T, fetch *tasks.Performer) *space.Program {
	t.Helper()
	p := space.NewProgram("forecast")
	p.MadeByReads = []string{"*"}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	weather := &space.ActionSpec{Name: "weather", Input: true, Performer: fetch}
	must(p.Action(weather))
	sky := func(name string, writes []space.Address) {
		must(p.Add(space.NodeSpec{ID: name, Kind: space.Computation, Output: name, Writes: writes, Run: func(tx *space.Tx) (model.Value, error) {
			where, ok := tx.Get("where").AsString()
			if !ok {
				where = "LAS"
			}
			w := tx.WantTask("weather", where)
			return model.String(fmt.Sprintf("%s %s %s %s", where, w.State, w.Out, w.Err)), nil
		}}))
	}
	sky("sky", []space.Address{weather.Wants()})
	sky("unregistered", []space.Address{{Doc: "another"}})
	handle := func(stream string, h func(tx *space.Tx, place string)) {
		must(p.Handle(stream, func(tx *space.Tx, ev *model.Event) (model.Value, error) {
			place, _ := ev.Payload.AsString()
			h(tx, place)
			return model.Value{}, nil
		}))
	}
	handle("go", func(tx *space.Tx, place string) { tx.Set("where", place) })
	handle("ask", func(tx *space.Tx, place string) { tx.RefreshTask("weather", place) })
	handle("drop", func(tx *space.Tx, place string) { tx.ForgetTask("weather", place) })
	return p
}

func TestInput_IsFetchedWhenAnObservedComputationReadsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		out := newOutside()
		out.how = func(_ context.Context, key string, n int) (model.Value, error) {
			time.Sleep(time.Second)
			if key == "SEA" {
				return model.Value{}, errors.New("no answer")
			}
			return model.String(fmt.Sprint(key, n)), nil
		}
		w1 := w.process(worker.Config{ID: "w1", Options: worker.Options{Idle: time.Second}, Programs: worldtest.Always(forecast(t, &tasks.Performer{Do: out.do, Attempts: 2}))}, nil)
		w.Send("s", "go", "e1", `"SFO"`)
		w.Pass(time.Minute)
		if n := out.count("", "SFO"); n != 0 {
			t.Errorf("fetched %d times without an observer", n)
		}
		seen := w.watch("s", "sky")
		w.Eventually("the value is fetched", func() bool { return seen.last() == `"SFO done \"SFO1\" "` })
		w.Send("s", "go", "e2", `"SEA"`)
		w.Eventually("the error is stored", func() bool { return seen.last() == `"SEA failed absent no answer"` })
		w.Send("s", "go", "e3", `"SFO"`) // already fetched
		w.Send("s", "ask", "e4", `"SFO"`)
		w.Eventually("the value is fetched again", func() bool { return seen.last() == `"SFO done \"SFO2\" "` })
		w.Send("s", "drop", "e5", `"SFO"`)
		w.Eventually("the refreshed value is fetched", func() bool { return seen.last() == `"SFO done \"SFO3\" "` })
		for key, want := range map[string]int{"SFO": 3, "SEA": 2} {
			if n := out.count("", key); n != want {
				t.Errorf("%s was fetched %d times", key, n)
			}
		}
		if got := w.Doc("s", "weather-wanted"); got != "{}" {
			t.Errorf("still wanted: %s", got)
		}
		seen.end()
		w.Eventually("it sleeps", func() bool { return w1.Stats().Awake == 0 })
		w.Send("s", "drop", "e6", `"SFO"`)
		w.Pass(time.Minute)
		if n := out.count("", "SFO"); n != 3 {
			t.Errorf("fetched %d times", n)
		}
	})
}

// The result of a fetch that began before a refresh does not satisfy the refresh.
func TestInput_ARefreshDuringAFetchFetchesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		out := newOutside()
		out.how = func(_ context.Context, _ string, n int) (model.Value, error) {
			time.Sleep(10 * time.Second)
			return model.Int(int64(n)), nil
		}
		w.process(worker.Config{ID: "w1", Programs: worldtest.Always(forecast(t, &tasks.Performer{Do: out.do, Attempts: 2}))}, nil)
		seen := w.watch("s", "sky")
		w.Pass(5 * time.Second)
		w.Send("s", "ask", "e1", `"LAS"`)
		w.Pass(time.Minute)
		values, _ := seen.seen()
		// The first value seen depends on whether the watch or the fetch comes first.
		if got := strings.Replace(fmt.Sprint(values), "[absent ", "[", 1); got != `["LAS pending absent " "LAS done 2 "]` {
			t.Errorf("seen %s", got)
		}
	})
}

func TestInput_OfAnUnregisteredComputationIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		out := newOutside()
		w.process(worker.Config{ID: "w1", Programs: worldtest.Always(forecast(t, &tasks.Performer{Do: out.do}))}, nil)
		w.watch("s", "unregistered")
		w.Eventually("the error is logged", func() bool {
			return w.Log.Count(`node space=s node=unregistered`) > 0
		})
		want := `read "LAS" of input weather: computation unregistered was not registered with this input; register it with settle.Using(weather)`
		if n := w.Log.Count(want); n == 0 {
			t.Errorf("the log does not contain %q:\n%s", want, w.Log)
		}
		if n := out.count("", "LAS"); n != 0 {
			t.Errorf("fetched %d times", n)
		}
	})
}

// The worker dies while an input is fetched; watchers get the value from the next one.
func TestInput_IsFetchedByTheNextOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		out := newOutside()
		out.how = func(ctx context.Context, _ string, n int) (model.Value, error) {
			if n == 1 {
				<-ctx.Done()
				return model.Value{}, ctx.Err()
			}
			return model.Int(int64(n)), nil
		}
		cfg := worker.Config{ID: "w1", Programs: worldtest.Always(forecast(t, &tasks.Performer{Do: out.do, Timeout: -1}))}
		w1 := w.process(cfg, nil)
		seen := w.watch("s", "sky")
		w.Eventually("the fetch is in flight", func() bool { return out.count("", "LAS") == 1 })
		w1.Crash()
		cfg.ID = "w2"
		w.process(cfg, nil)
		w.Eventually("the value is fetched", func() bool { return seen.last() == `"LAS done 2 "` })
	})
}
