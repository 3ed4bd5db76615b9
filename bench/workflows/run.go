package workflows

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle/bench/harness"
)

// Part names these figures in a record.
const Part = "workflows"

// Run measures all engines at all shapes at a site, in turns.
func Run(ctx context.Context, at *harness.Site, o harness.Options) error {
	for _, shape := range Shapes() {
		for _, c := range shape.Cases(o.Full) {
			if !o.Wants(Part, shape.Name()+" "+c.Name) || at.Servers.Size() > 1 && !clustered[c.Program] {
				continue
			}
			var names []string
			for _, e := range Engines() {
				if _, ours := e.(settleEngine); o.WantsEngine(e.Name()) && (ours || !c.OnlySettle && at.Servers.Size() == 1 && at.Always) {
					names = append(names, e.Name())
				}
			}
			if err := o.InTurns(ctx, at, names, func(ctx context.Context, name string, _ int) error {
				f := o.Record.Find(harness.Figure{Part: Part, Site: at.Name, Shape: shape.Name(), Case: c.Name, Engine: name, Unit: c.Unit})
				if f.NotRun != "" {
					return nil
				}
				b := &Budget{Time: o.Time, Run: o.NewRun(), Actions: &Actions{}}
				r, err := measure(ctx, engineNamed(name), at, shape, c, b)
				return o.Note(f, r, err, ErrNotRun)
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// clustered are the programs that are measured on three servers, too.
var clustered = map[string]bool{"sequence": true, "fan": true, "stress": true}

func engineNamed(name string) Engine {
	for _, e := range Engines() {
		if e.Name() == name {
			return e
		}
	}
	return nil
}

// measure starts an engine, measures one case, and stops it.
func measure(ctx context.Context, e Engine, at *harness.Site, shape Shape, c Case, b *Budget) (r *harness.Round, err error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	s, err := e.Start(ctx, at, b.Actions)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	b.Meter = &harness.Meter{Site: at, Parts: s.Parts(), CountFsyncs: true}
	return shape.Run(ctx, s, c, b)
}
