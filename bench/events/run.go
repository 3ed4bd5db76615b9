package events

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle/bench/harness"
)

// Part names these figures in a record.
const Part = "events"

// placed is implemented by engines whose durability is that of some sites only.
type placed interface {
	At(s *harness.Site) bool
}

// Run measures all engines at all shapes at a site, in turns: within a round, every engine does a case before any
// does the next one, and rounds begin with different engines.
func Run(ctx context.Context, at *harness.Site, o harness.Options) error {
	for _, shape := range Shapes() {
		for _, c := range shape.Cases(o.Full) {
			if !o.Wants(Part, shape.Name()+" "+c.Name) || !at.First && !everywhere[shape.Name()+" "+c.Name] {
				continue
			}
			if err := o.InTurns(ctx, at, names(at, o, c), func(ctx context.Context, name string, round int) error {
				f := o.Record.Find(harness.Figure{Part: Part, Site: at.Name, Shape: shape.Name(), Case: c.Name, Engine: name, Unit: shape.Unit()})
				if f.NotRun != "" {
					return nil
				}
				b := &Budget{Time: o.Time, Run: o.NewRun()}
				r, err := measure(ctx, engineNamed(name), at, shape, c, b)
				return o.Note(f, r, err, ErrNotRun)
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// everywhere are the cases that are measured at every site; the others only at the first.
var everywhere = map[string]bool{
	"W1 100 entities, 1 in flight each": true, "W1 100 entities, 16 in flight each": true, "W1 alone one at a time": true,
	"W2 100 in flight": true, "W4 100 entities, 1 in flight each": true,
}

func names(at *harness.Site, o harness.Options, c Case) (list []string) {
	for _, e := range Engines() {
		p, is := e.(placed)
		if o.WantsEngine(e.Name()) && !(is && (!p.At(at) || c.OnlyBrokers)) {
			list = append(list, e.Name())
		}
	}
	return list
}

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
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	s, err := e.Start(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	b.Meter = &harness.Meter{Site: at, Parts: s.Parts(), CountFsyncs: true}
	return shape.Run(ctx, s, c, b)
}
