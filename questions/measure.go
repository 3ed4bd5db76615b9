package questions

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/settlehq/settle/worker"
)

// Load is what runs have cost in a second.
type Load struct {
	Space   string `json:"space"`
	Node    string `json:"node,omitzero"`
	Handler bool   `json:"handler,omitzero"`
	Worker  string `json:"worker"`
	// Time is the part of a second that its runs took, Runs, Wasted, Errors and Bytes are counts per second.
	Time   float64 `json:"time"`
	Runs   float64 `json:"runs"`
	Wasted float64 `json:"wasted"`
	Errors float64 `json:"errors"`
	Bytes  float64 `json:"bytes"`
}

// Measurement is what workers have measured in an interval.
type Measurement struct {
	At      time.Time `json:"at"`
	Seconds float64   `json:"seconds"`
	Workers []string  `json:"workers"`
	Silent  []string  `json:"silent,omitzero"` // that have not answered
	Spaces  []Load    `json:"spaces"`
	Nodes   []Load    `json:"nodes"`
}

// Meter measures workers. The zero value of Last has measured nothing.
type Meter struct {
	// Ask asks one worker, as Client.Top does.
	Ask func(ctx context.Context, worker string) (*Top, error)

	last map[string]*Top // by worker
}

// workerPatience is how long a worker may take to answer what it has measured.
const workerPatience = 3 * time.Second

// Read returns what workers have measured since the last call. A worker that was not asked before adds nothing.
func (m *Meter) Read(ctx context.Context, workers []string) (*Measurement, error) {
	out := &Measurement{At: time.Now().UTC(), Workers: []string{}, Spaces: []Load{}, Nodes: []Load{}}
	if m.last == nil {
		m.last = map[string]*Top{}
	}
	for _, id := range workers {
		within, cancel := context.WithTimeout(ctx, workerPatience)
		top, err := m.Ask(within, id)
		cancel()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil { // it has left, or is of a version without this
			out.Silent = append(out.Silent, id)
			delete(m.last, id)
			continue
		}
		out.Workers = append(out.Workers, id)
		if before := m.last[id]; before != nil && before.Now.Before(top.Now) {
			out.Seconds = top.Now.Sub(before.Now).Seconds()
			out.Spaces = append(out.Spaces, differences(id, before.Spaces, top.Spaces, out.Seconds)...)
			out.Nodes = append(out.Nodes, differences(id, before.Nodes, top.Nodes, out.Seconds)...)
		}
		m.last[id] = top
	}
	return out, nil
}

// differences returns what has been added to counts within some seconds.
func differences(id string, before, after []worker.Usage, seconds float64) (out []Load) {
	type key struct {
		space, node string
		born        uint64
	}
	had := make(map[key]worker.Usage, len(before))
	for _, u := range before {
		had[key{u.Space, u.Node, u.Born}] = u
	}
	for _, u := range after {
		was := had[key{u.Space, u.Node, u.Born}] // zero for one that is new
		if u.Runs <= was.Runs {
			continue
		}
		per := func(n uint64) float64 { return float64(n) / seconds }
		out = append(out, Load{
			Space: u.Space, Node: u.Node, Handler: u.Handler, Worker: id, Time: (u.Time - was.Time).Seconds() / seconds,
			Runs: per(u.Runs - was.Runs), Wasted: per(u.Wasted - was.Wasted), Errors: per(u.Errors - was.Errors), Bytes: per(u.Bytes - was.Bytes),
		})
	}
	return out
}

// Orders are the names of what loads can be sorted by.
var Orders = []string{"time", "runs", "bytes", "wasted"}

// Largest sorts loads by one of Orders, and returns the first limit of them.
func Largest(all []Load, by string, limit int) []Load {
	of := map[string]func(*Load) float64{
		"time": func(l *Load) float64 { return l.Time }, "runs": func(l *Load) float64 { return l.Runs },
		"bytes": func(l *Load) float64 { return l.Bytes }, "wasted": func(l *Load) float64 { return l.Wasted },
	}[by]
	slices.SortFunc(all, func(a, b Load) int {
		return cmp.Or(cmp.Compare(of(&b), of(&a)), cmp.Compare(a.Space, b.Space), cmp.Compare(a.Node, b.Node))
	})
	return all[:min(len(all), limit)]
}
