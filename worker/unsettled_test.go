package worker_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// ringing is the program book with three computations that count each other up, until there is an event.
func ringing(t *testing.T) *space.Program {
	p := book(t)
	next := func(of, from string) error {
		return p.Add(space.NodeSpec{ID: of, Kind: space.Computation, Output: of, Run: func(tx *space.Tx) (model.Value, error) {
			if n, _ := tx.Get("n").AsInt(); n > 0 {
				return model.Int(0), nil
			}
			n, _ := tx.Get(from).AsInt()
			return model.Int(n + 1), nil
		}})
	}
	if err := errors.Join(next("a", "c"), next("b", "a"), next("c", "b")); err != nil {
		t.Fatal(err)
	}
	return p
}

// Computations that do not converge are one warning per episode, which names them and the way round (row E07). The figures of the worker have
// them for as long as it lasts.
func TestUnsettled_AnEpisodeIsOneWarningWithTheWayRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var log strings.Builder
		p := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(ringing(t)), Logger: slog.New(slog.NewTextHandler(&log, nil))}, nil)
		v := w.watch("s", "c")
		w.Eventually("the worker reports it", func() bool { return p.Figures().UnsettledCount == 1 })
		w.Pass(2 * time.Minute)
		u := p.Figures().Unsettled[0]
		if round := u.Round(); u.Space != "s" || len(u.Way) != 6 || !strings.Contains(round+round, "a -> b -> c -> a") {
			t.Errorf("the worker reports %+v, round %q", u, round)
		}
		const warning = "computations do not converge"
		w.Send("s", "add", "e1") // which ends it
		w.Eventually("the worker reports it no more", func() bool { return p.Figures().UnsettledCount == 0 })
		v.end()
		p.Crash() // and writes no more
		if text := log.String(); strings.Count(text, warning) != 1 || !strings.Contains(text, "round=") {
			t.Errorf("there are %d warnings:\n%s", strings.Count(text, warning), text)
		}
	})
}

// A space that leaves the worker takes its episode with it.
func TestUnsettled_EndsWithTheSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(ringing(t)), Options: worker.Options{Idle: time.Second}}, nil)
		v := w.watch("s", "c")
		w.Eventually("the worker reports it", func() bool { return p.Figures().UnsettledCount == 1 })
		v.end()
		w.Eventually("the space has left", func() bool { return p.Figures().UnsettledCount == 0 })
	})
}

// Spaces that derive documents from each other: a step more with each round. The workers make a hundred steps at once, and then fewer and fewer;
// of all workers, one warns, once, and names the way round (rows E07, Y04).
func TestUnsettled_ACircleOverSpacesIsOneWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		var log strings.Builder
		programs := func(name string) (*space.Program, error) {
			p, of := book(t), map[string]string{"north": "south", "south": "north"}[name]
			err := p.Add(space.NodeSpec{ID: "x", Kind: space.Computation, Output: "x", Run: func(tx *space.Tx) (model.Value, error) {
				if n, _ := tx.Get("n").AsInt(); n > 1 {
					return model.Int(0), nil
				}
				n, _ := tx.GetFrom(of, "x").AsInt()
				return model.Int(n + 1), nil
			}})
			return p, err
		}
		var all []*process
		logger := slog.New(slog.NewTextHandler(&log, nil))
		for _, id := range []string{"w1", "w2"} {
			all = append(all, w.process(worker.Config{ID: id, Programs: programs, Logger: logger}, nil))
		}
		w.Eventually("each worker serves a partition", func() bool { return len(all[0].Partitions()) == 1 && len(all[1].Partitions()) == 1 })
		unsettled := func() (n int) {
			for _, p := range all {
				n += p.Figures().UnsettledCount
			}
			return n
		}
		w.Send("north", "add", "e1")
		w.Send("south", "add", "e1")
		v := w.watch("north", "x")
		w.Eventually("a worker reports it", func() bool { return unsettled() == 1 })
		w.Pass(10 * time.Second)
		// Both spaces begin a wave, of 100 steps each before it is held back; how many of them fall into one commit is a matter of scheduling.
		if n := len(w.Server.History("north")) + len(w.Server.History("south")); n < 100 || n > 220 {
			t.Errorf("%d commits within ten seconds, want 100 to 220", n)
		}
		w.Pass(10 * time.Minute)
		if n := len(w.Server.History("north")) + len(w.Server.History("south")); n > 270 {
			t.Errorf("%d commits within ten minutes, want at most 270", n)
		}
		w.Send("north", "add", "e2") // which ends it
		w.Send("south", "add", "e2")
		w.Eventually("no worker reports it any more", func() bool { return unsettled() == 0 })
		v.end()
		for _, p := range all {
			p.Crash() // and writes no more
		}
		const warning = "computations of several spaces do not converge"
		if text := log.String(); strings.Count(text, warning) != 1 || !strings.Contains(text, `round="north/x -> south/x -> north/x"`) {
			t.Errorf("there are %d warnings:\n%s", strings.Count(text, warning), text)
		}
	})
}
