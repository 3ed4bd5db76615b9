// Package hosted measures the cost of writing a program in Starlark: the same graphs in Go and hosted,
// over package space, alternately in the same process. The ratio is the result.
//
// The source of a shape is a document of another space, and derived documents are volatile: nothing is
// logged, so only the scheduler and the functions are measured. The counter is an event handler with its
// commit.
package hosted

import (
	"fmt"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program/star"
	"github.com/settlehq/settle/replica"
	"github.com/settlehq/settle/space"
)

// Shape is a graph, or a handler, in both languages.
type Shape struct {
	Name string
	// What describes it in a few words.
	What string
	Go   func() (*space.Program, error)
	Star string
	// Updates is the number of updates per measurement. Event selects events instead of changes of the source.
	Updates int
	Event   bool
	// Check returns a document and its expected value after a number of updates.
	Check func(updates int64) (doc string, want model.Value)
}

// Shapes returns the shapes that are measured.
func Shapes() []Shape {
	return []Shape{chain(50), fan(50), diamond(5), wide(100), counter()}
}

// Result is the cost of a shape.
type Result struct {
	Shape   string        `json:"shape"`
	What    string        `json:"what"`
	Go      time.Duration `json:"go_ns_per_update"`
	Star    time.Duration `json:"star_ns_per_update"`
	GoRun   time.Duration `json:"go_ns_per_run"`
	StarRun time.Duration `json:"star_ns_per_run"`
	// Ratio is Star / Go.
	Ratio float64 `json:"ratio"`
}

// Limit is the ratio below which hosted programs must stay.
const Limit = 20

// Measure drives a shape alternately in both languages, briefly each time, and takes the best result of
// each, which is the least affected by other load on the machine.
func Measure(s Shape, rounds int) (Result, error) {
	r := Result{Shape: s.Name, What: s.What}
	native, err := s.Go()
	if err != nil {
		return r, err
	}
	hosted, err := star.Compile(star.Source{Name: s.Name, Entry: "main.star", Files: map[string]string{"main.star": s.Star}}, star.Options{})
	if err != nil {
		return r, err
	}
	sides := []*side{{p: native, update: &r.Go, run: &r.GoRun}, {p: hosted.Space(), update: &r.Star, run: &r.StarRun}}
	for _, x := range sides {
		if x.d, err = NewDriver(x.p, s.Event); err != nil {
			return r, fmt.Errorf("shape %s: %w", s.Name, err)
		}
	}
	for range rounds + 1 { // the first round is a warm-up
		for _, x := range sides {
			if err := x.measure(s); err != nil {
				return r, fmt.Errorf("shape %s: %w", s.Name, err)
			}
		}
	}
	r.Ratio = float64(r.Star) / float64(r.Go)
	return r, nil
}

// side is one of the languages.
type side struct {
	p           *space.Program
	d           *Driver
	update, run *time.Duration
}

// measure makes the shape's number of updates, and keeps the time if it is the best.
func (x *side) measure(s Shape) error {
	before := x.d.core.Stats()
	began := time.Now()
	for range s.Updates {
		if err := x.d.Update(); err != nil {
			return err
		}
	}
	took := time.Since(began)
	runs := x.d.core.Stats().Runs - before.Runs
	if s.Event {
		runs = uint64(s.Updates)
	}
	if update := took / time.Duration(s.Updates); *x.update == 0 || update < *x.update {
		*x.update, *x.run = update, took/time.Duration(max(runs, 1))
	}
	return x.d.Check(s)
}

// Driver is a space that is driven without a worker.
type Driver struct {
	core  *space.Space
	seq   uint64
	v     int64
	event bool
}

// NewDriver loads a program into a space of its own.
func NewDriver(p *space.Program, event bool) (*Driver, error) {
	r, err := replica.Load("home", model.SpaceState{})
	if err != nil {
		return nil, err
	}
	core, err := space.New(space.Config{Space: "home", Runtime: "bench"}, p, r)
	if err != nil {
		return nil, err
	}
	d := &Driver{core: core, event: event}
	core.TakeOver()
	return d, d.settle()
}

// Update changes the source, or sends an event, and lets the space work.
func (d *Driver) Update() error {
	d.v++
	if d.event {
		d.core.Offer(model.Event{Space: "home", Stream: "add", ID: fmt.Sprint("e", d.v), Lane: uint64(d.v), Payload: payload})
	} else {
		d.core.Mirror("src", "s", model.Int(d.v))
	}
	return d.settle()
}

var payload = model.MustOf(map[string]any{"n": 1})

func (d *Driver) settle() error {
	for {
		r := d.core.Settle(0)
		for _, ref := range r.Follow {
			d.core.Mirror(ref.Space, ref.Doc, model.Int(d.v))
		}
		if r.Append != nil {
			d.seq++
			if err := d.core.Confirm(d.seq); err != nil {
				return err
			}
			continue
		}
		if !r.More && len(r.Follow) == 0 {
			return nil
		}
	}
}

// Check compares the result with the expected one.
func (d *Driver) Check(s Shape) error {
	doc, want := s.Check(d.v)
	var got model.Value
	if _, err := d.core.Transact("check", func(tx *space.Tx) error {
		got = tx.Peek(doc)
		return nil
	}); err != nil {
		return err
	}
	if !model.Equal(got, want) {
		return fmt.Errorf("document %s is %v; %v was to come out", doc, got, want)
	}
	return nil
}

// graph builds a shape's program in both languages.
type graph struct {
	p    *space.Program
	star strings.Builder
	err  error
}

func newGraph(name string) *graph {
	g := &graph{p: space.NewProgram(name)}
	g.star.WriteString("src = doc(\"s\", space = \"src\")\n")
	return g
}

func (g *graph) node(n space.NodeSpec) {
	if err := g.p.Add(n); err != nil && g.err == nil {
		g.err = err
	}
}

// plus derives a document that is an input plus 1; "" is the source.
func (g *graph) plus(out, in string) {
	g.node(space.NodeSpec{ID: out, Kind: space.Computation, Output: out, Volatile: true, Run: func(tx *space.Tx) (model.Value, error) {
		v := model.Value{}
		if in == "" {
			v = tx.GetFrom("src", "s")
		} else {
			v = tx.Get(in)
		}
		n, _ := v.AsInt()
		return model.Int(n + 1), nil
	}})
	from := "src"
	if in != "" {
		from = "out_" + in
	}
	fmt.Fprintf(&g.star, "def f_%s():\n    return %s.get() + 1\nout_%s = compute(%q, f_%s, volatile = True)\n", out, from, out, out, out)
}

// sum derives a document that is the sum of others.
func (g *graph) sum(out string, in ...string) {
	g.node(space.NodeSpec{ID: out, Kind: space.Computation, Output: out, Volatile: true, Run: func(tx *space.Tx) (model.Value, error) {
		total := int64(0)
		for _, doc := range in {
			n, _ := tx.Get(doc).AsInt()
			total += n
		}
		return model.Int(total), nil
	}})
	fmt.Fprintf(&g.star, "ins_%s = [out_%s]\n", out, strings.Join(in, ", out_"))
	fmt.Fprintf(&g.star, "def f_%s():\n    total = 0\n    for x in ins_%s:\n        total += x.get()\n    return total\nout_%s = compute(%q, f_%s, volatile = True)\n", out, out, out, out, out)
}

// watch observes documents.
func (g *graph) watch(docs ...string) {
	for _, doc := range docs {
		g.node(space.NodeSpec{ID: "see-" + doc, Kind: space.Effect, Run: func(tx *space.Tx) (model.Value, error) {
			tx.Get(doc)
			return model.Value{}, nil
		}})
		fmt.Fprintf(&g.star, "def see_%s():\n    out_%s.get()\neffect(\"see-%s\", see_%s)\n", doc, doc, doc, doc)
	}
}

func (g *graph) shape(name, what string, updates int, check func(int64) (string, model.Value)) Shape {
	return Shape{
		Name: name, What: what, Star: g.star.String(), Updates: updates, Check: check,
		Go: func() (*space.Program, error) { return g.p, g.err },
	}
}

func chain(n int64) Shape {
	g := newGraph("chain")
	last := ""
	for i := range n {
		next := fmt.Sprint("c", i)
		g.plus(next, last)
		last = next
	}
	g.watch(last)
	return g.shape("chain", fmt.Sprintf("%d computations, each reads the one before", n), 10, func(v int64) (string, model.Value) {
		return last, model.Int(v + n)
	})
}

func fan(n int64) Shape {
	g := newGraph("fan-out")
	for i := range n {
		doc := fmt.Sprint("c", i)
		g.plus(doc, "")
		g.watch(doc)
	}
	return g.shape("fan-out", fmt.Sprintf("%d computations read one source, and %d effects those", n, n), 5, func(v int64) (string, model.Value) {
		return "c0", model.Int(v + 1)
	})
}

func diamond(n int64) Shape {
	g := newGraph("diamond")
	g.plus("head", "")
	var arms []string
	for i := range n {
		arm := fmt.Sprint("arm", i)
		g.plus(arm, "head")
		arms = append(arms, arm)
	}
	g.sum("sum", arms...)
	g.watch("sum")
	return g.shape("diamond", fmt.Sprintf("one computation, %d that read it, and their sum", n), 50, func(v int64) (string, model.Value) {
		return "sum", model.Int(n * (v + 2))
	})
}

func wide(n int64) Shape {
	g := newGraph("wide sum")
	var docs []string
	for i := range n {
		doc := fmt.Sprint("c", i)
		g.plus(doc, "")
		docs = append(docs, doc)
	}
	g.sum("sum", docs...)
	g.watch("sum")
	return g.shape("wide sum", fmt.Sprintf("%d computations and their sum", n), 5, func(v int64) (string, model.Value) {
		return "sum", model.Int(n * (v + 1))
	})
}

// counter returns an event handler that adds to a field of a document.
func counter() Shape {
	return Shape{
		Name: "counter", What: "a handler adds the payload to a field, and returns it; one commit each", Updates: 100, Event: true,
		Go: func() (*space.Program, error) {
			p := space.NewProgram("counter")
			return p, p.Handle("add", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
				n, _ := ev.Payload.Get("n").AsInt()
				have, _ := tx.Get("stats", "count").AsInt()
				tx.Set("stats", model.Int(have+n), "count")
				return model.Int(have + n), nil
			})
		},
		Star: `stats = cell("stats", {"count": 0})
def add(e):
    stats.count += e.n
    return stats.count
handle("add", add, payload = {"n": int})
`,
		Check: func(v int64) (string, model.Value) {
			return "stats", model.Object(model.F("count", v))
		},
	}
}
