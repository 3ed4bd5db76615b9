package console

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/questions"
)

const (
	// takesEvery is how often workers are asked what takes time, and takesOver over what time that is counted.
	takesEvery, takesOver = 2 * time.Second, 10 * time.Second
	// takesAgain is when they are asked again if none has answered, as when the user of the console may not ask.
	takesAgain = 30 * time.Second
	// takesRows bounds the rows of the page, and takesWorkers the workers that are asked.
	takesRows, takesWorkers = 12, 64
)

// takesRow is a handler or a node, or a whole space, and what it has cost per second.
type takesRow struct {
	Space, Node string
	Handler     bool
	Worker      string
	// Busy is the part of the time in which it ran, in percent; one space runs at most 100.
	Busy                 float64
	Runs, Wasted, Errors float64
	// Each is how long a run took on average.
	Each time.Duration
	URL  string
}

// takesData is what takes time.
type takesData struct {
	Rows   []takesRow
	Spaces []takesRow
	// Over is the time over which that was counted, 0 if the workers have only begun to measure.
	Over   time.Duration
	Silent []string // workers that did not answer
}

// First is what takes the most time, nil if nothing does.
func (d *takesData) First() *takesRow {
	if len(d.Rows) == 0 {
		return nil
	}
	return &d.Rows[0]
}

// reading is what the workers had counted at one time.
type reading struct {
	at     time.Time
	tops   map[string]*questions.Top
	silent []string
}

// lasts is how long it is until the next reading.
func (r *reading) lasts() time.Duration {
	if len(r.tops) == 0 && len(r.silent) > 0 {
		return takesAgain
	}
	return takesEvery
}

// takes has the newest readings.
type takes struct {
	mu       sync.Mutex
	readings []reading
}

// now returns what takes time, from the newest and the oldest of the last readings.
func (x *takes) now(ctx context.Context, c *Console, f *fleet.Fleet) *takesData {
	x.mu.Lock()
	defer x.mu.Unlock()
	if n := len(x.readings); n == 0 || time.Since(x.readings[n-1].at) >= x.readings[n-1].lasts() {
		x.readings = append(x.readings, c.readTakes(ctx, f))
	}
	newest := &x.readings[len(x.readings)-1]
	x.readings = slices.DeleteFunc(x.readings, func(r reading) bool { return newest.at.Sub(r.at) > takesOver+takesEvery })
	return takesBetween(&x.readings[0], &x.readings[len(x.readings)-1])
}

// readTakes asks the workers that are here.
func (c *Console) readTakes(ctx context.Context, f *fleet.Fleet) reading {
	r := reading{at: time.Now(), tops: map[string]*questions.Top{}}
	var ids []string
	for i := range f.Workers {
		if s := f.Workers[i].State; (s == fleet.Here || s == fleet.Leaving) && len(ids) < takesWorkers {
			ids = append(ids, f.Workers[i].ID)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	found := make([]*questions.Top, len(ids))
	eachSpace(ctx, ids, func(ctx context.Context, i int) error {
		top, err := c.asks.Top(ctx, ids[i], 0)
		if err == nil {
			found[i] = top
		}
		return nil // then it is silent
	})
	for i, top := range found {
		if top != nil {
			r.tops[ids[i]] = top
		} else {
			r.silent = append(r.silent, ids[i])
		}
	}
	return r
}

// takesBetween counts what has been added from one reading to another one.
func takesBetween(first, last *reading) *takesData {
	d := &takesData{Silent: last.silent}
	for id, now := range last.tops { // any order: rows are sorted
		was := first.tops[id]
		if was == nil || !was.Now.Before(now.Now) {
			continue
		}
		over := now.Now.Sub(was.Now)
		d.Over = max(d.Over, over)
		d.Spaces = append(d.Spaces, costs(id, was, now, false, over)...)
		d.Rows = append(d.Rows, costs(id, was, now, true, over)...)
	}
	d.Spaces, d.Rows = mostTime(d.Spaces, 5), mostTime(d.Rows, takesRows)
	return d
}

func mostTime(rows []takesRow, n int) []takesRow {
	slices.SortFunc(rows, func(a, b takesRow) int {
		return cmp.Or(cmp.Compare(b.Busy, a.Busy), cmp.Compare(a.Space, b.Space), cmp.Compare(a.Node, b.Node))
	})
	return rows[:min(n, len(rows))]
}

// costs returns what was added to the counts of spaces, or of nodes and handlers.
func costs(id string, was, now *questions.Top, nodes bool, over time.Duration) (rows []takesRow) {
	before, after := was.Spaces, now.Spaces
	if nodes {
		before, after = was.Nodes, now.Nodes
	}
	type key struct {
		space, node string
		handler     bool
		born        uint64
	}
	had := map[key]int{}
	for i := range before {
		u := &before[i]
		had[key{u.Space, u.Node, u.Handler, u.Born}] = i
	}
	per := func(n uint64) float64 { return float64(n) / over.Seconds() }
	for i := range after {
		u := after[i]
		if k, is := had[key{u.Space, u.Node, u.Handler, u.Born}]; is {
			w := &before[k]
			u.Runs, u.Wasted, u.Errors, u.Time = u.Runs-w.Runs, u.Wasted-w.Wasted, u.Errors-w.Errors, u.Time-w.Time
		}
		if u.Runs == 0 {
			continue
		}
		r := takesRow{Space: u.Space, Node: u.Node, Handler: u.Handler, Worker: id, Busy: 100 * u.Time.Seconds() / over.Seconds(), Runs: per(u.Runs), Wasted: per(u.Wasted), Errors: per(u.Errors)}
		r.Each = u.Time / time.Duration(u.Runs)
		r.URL = pathOf("spaces", u.Space)
		if u.Node != "" && !u.Handler {
			r.URL = graphURL(u.Space, u.Node)
		}
		rows = append(rows, r)
	}
	return rows
}
