package events

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/settlehq/settle/bench/harness"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/ordered"
)

// orderedEngine is package ordered: handlers without the graph, over the same streams.
type orderedEngine struct{}

func (orderedEngine) Name() string { return "ordered" }

func (orderedEngine) About() string {
	return "package ordered: handlers without computations, over the same streams"
}

func (e orderedEngine) Start(ctx context.Context, at *harness.Site) (System, error) {
	return startSettle(ctx, at, e.Name(), 1, harness.Observed{})
}

func orderedHandlers() map[string]ordered.Handler {
	change := func(tx *ordered.Tx, apply func(*State)) (State, error) {
		var st State
		if err := tx.Read("state", &st); err != nil {
			return st, err
		}
		apply(&st)
		tx.Set("state", st)
		return st, nil
	}
	return map[string]ordered.Handler{
		"add": ordered.On(func(tx *ordered.Tx, a addition) (int64, error) {
			st, err := change(tx, func(st *State) { st.Apply(a.N) })
			return st.Count, err
		}),
		"hop": ordered.On(func(tx *ordered.Tx, r route) (*int, error) {
			_, err := change(tx, func(st *State) {
				st.Apply(0)
				if len(r.Path) == 0 {
					st.Ended++
				}
			})
			if err == nil && len(r.Path) > 0 {
				tx.Send(ordered.To(r.Path[0]), "hop", route{r.Path[1:]})
			}
			return nil, err
		}),
		"fill": ordered.On(func(tx *ordered.Tx, s span) (*int, error) {
			for i := s.From; i < s.To; i++ {
				tx.Set("d"+strconv.Itoa(i), i)
			}
			return nil, nil
		}),
	}
}

// serveOrdered is the process of a server.
func serveOrdered(r harness.Role) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b, err := bus.Connect(ctx, busConfig(r.URL, r.Engine, "ordered/bench"))
	if err != nil {
		return err
	}
	stop, err := harness.Coordinate(ctx, busConfig(r.URL, r.Engine, ""), r.Quiet)
	if err != nil {
		return err
	}
	defer stop()
	o := harness.QuietOptions(r.Quiet)
	served := make(chan struct{})
	go func() { // ends with ctx
		defer close(served)
		err := ordered.Serve(ctx, b, ordered.Config{
			Handlers: orderedHandlers(), Coordinated: true, Heartbeat: o.Heartbeat, TTL: o.MemberTTL, Checkpoint: o.Checkpoint,
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, "ordered:", err)
			os.Exit(1) // the client notices that the process has ended
		}
	}()
	defer func() { cancel(); <-served; b.Close() }()
	return harness.ServeRole()
}
