package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Options are what a run measures.
type Options struct {
	// Time is how long each measurement sends, Rounds how often it is repeated.
	Time   time.Duration
	Rounds int
	Full   bool
	// Shapes, Engines and Sites select; nil selects all.
	Shapes, Engines, Sites *regexp.Regexp
	Record                 *Record
	// File is where the record is stored after each measurement.
	File string
	Log  io.Writer

	runs *atomic.Int64
}

// Wants reports whether a case is selected, by its part, shape and name.
func (o *Options) Wants(part, name string) bool {
	return o.Shapes == nil || o.Shapes.MatchString(part+" "+name)
}

// WantsEngine reports whether an engine is selected.
func (o *Options) WantsEngine(name string) bool {
	return o.Engines == nil || o.Engines.MatchString(name)
}

// Begin makes names of runs unique.
func (o *Options) Begin() {
	o.runs = &atomic.Int64{}
	o.runs.Store(time.Now().Unix() % 1_000_000 * 1000)
}

// NewRun returns a name that no run had before.
func (o *Options) NewRun() string { return "r" + strconv.FormatInt(o.runs.Add(1), 36) }

// InTurns calls measure for each engine in each round. Rounds begin with different engines, so that none always
// follows the same one.
func (o *Options) InTurns(ctx context.Context, _ *Site, engines []string, measure func(ctx context.Context, engine string, round int) error) error {
	for round := range o.Rounds {
		for i := range engines {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := measure(ctx, engines[(i+round)%len(engines)], round); err != nil {
				return err
			}
		}
	}
	return nil
}

// Note adds a round to a figure, or why there is none, and stores the record. An engine that fails is not run again at
// this case: a figure that was not verified is none.
func (o *Options) Note(f *Figure, r *Round, err, notRun error) error {
	switch {
	case errors.Is(err, notRun):
		_, f.NotRun, _ = strings.Cut(err.Error(), notRun.Error()+": ")
	case errors.Is(err, context.Canceled):
		return err
	case err != nil:
		f.NotRun, f.Rounds = "FAILED: "+err.Error(), nil
	default:
		f.Rounds = append(f.Rounds, r)
	}
	if f.NotRun != "" {
		fmt.Fprintf(o.Log, "%s: %s\n", f.Key(), f.NotRun)
	} else {
		fmt.Fprintf(o.Log, "%s: %.4g %s/s, p50 %.4g us, CPU %.4g us, messages %.3g in %.3g out\n", f.Key(), r.PerSecond, f.Unit, r.P50, r.CPU, r.MsgsIn, r.MsgsOut)
	}
	o.Record.Machine.Load[1] = Load()
	return o.Record.Write(o.File)
}
