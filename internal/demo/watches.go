package demo

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/examples/flights"
	"github.com/settlehq/settle/examples/flights/audit"
)

// watches are the live queries of the run: the punctuality of the watched airports and the nation's
// ranking. They are the only demand, and so the only reason why anything is computed.
type watches struct {
	codes   []string
	want    map[string]string // by airport, and by flights.Nation for the ranking
	changed chan<- struct{}

	mu   sync.Mutex
	seen map[string]seen
}

// seen is what a watch delivered last.
type seen struct {
	value    settle.Value
	revision uint64
}

func newWatches(codes []string, tally flights.Tally, poke chan<- struct{}) *watches {
	w := &watches{codes: codes, want: map[string]string{}, changed: poke, seen: map[string]seen{}}
	for _, code := range codes {
		w.want[code] = audit.Expect(tally.Punctuality(code))
	}
	w.want[flights.Nation] = audit.Expect(tally.Ranking(codes), true)
	return w
}

// run watches until ctx ends.
func (w *watches) run(ctx context.Context, c *settle.Client) error {
	g, ctx := errgroup.WithContext(ctx)
	watch := func(space, doc string) {
		g.Go(func() error {
			for u, err := range c.Space(space).Watch(ctx, doc) {
				if err != nil {
					return err
				}
				w.take(space, u.Value, u.Revision)
			}
			return ctx.Err()
		})
	}
	for _, code := range w.codes {
		watch(code, flights.DocPunctuality)
	}
	watch(flights.Nation, flights.DocRanking)
	return g.Wait()
}

func (w *watches) take(space string, v settle.Value, revision uint64) {
	w.mu.Lock()
	w.seen[space] = seen{v, revision}
	w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// current reports whether every watch has delivered the value expected from the input. Waiting for
// that does not prove it: a run that never gets there stops waiting, and the audit compares the
// last values.
func (w *watches) current() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for space, want := range w.want {
		if w.seen[space].value.String() != want {
			return false
		}
	}
	return true
}

// last returns the last values in the form that the audit takes.
func (w *watches) last() (punctuality map[string]string, ranking string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	punctuality = map[string]string{}
	for _, code := range w.codes {
		punctuality[code] = w.seen[code].value.String()
	}
	return punctuality, w.seen[flights.Nation].value.String()
}

func (w *watches) snapshot(s *Snapshot) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rank := map[string]int{}
	for i, r := range w.ranks() {
		rank[r.Airport] = i + 1
	}
	for _, code := range w.codes {
		a := Airport{Code: code, Rank: rank[code], Revision: w.seen[code].revision}
		v := w.seen[code].value
		a.Departures, a.Known = v.Get("departures").AsInt()
		a.MeanDelay, _ = v.Get("mean_delay").AsFloat()
		a.OnTime, _ = v.Get("on_time_share").AsFloat()
		s.Airports = append(s.Airports, a)
	}
}

// ranking returns the last value of the nation's watch.
func (w *watches) ranking() []flights.Rank {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ranks()
}

// ranks decodes the ranking. w.mu is held.
func (w *watches) ranks() []flights.Rank {
	var out []flights.Rank
	list := w.seen[flights.Nation].value
	for i := range list.Len() {
		code, _ := list.Index(i).Get("airport").AsString()
		share, _ := list.Index(i).Get("on_time_share").AsFloat()
		out = append(out, flights.Rank{Airport: code, OnTimeShare: share})
	}
	return out
}
