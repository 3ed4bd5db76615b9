package provision

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle/bus/internal/wire"
)

// Defect is why one stream of a deployment cannot be relied on: it is missing, a setting on which a guarantee
// rests was altered, or it does not answer.
type Defect struct {
	Asset
	Err error
}

// Missing reports whether the stream does not exist.
func (d *Defect) Missing() bool { return errors.Is(d.Err, wire.ErrNoStream) }

// ErrSilent is the error of a stream that did not answer.
var ErrSilent = errors.New("it may have no leader, or this user may not ask; `settle doctor` says which")

// Silent reports whether the stream has not answered, for example while it elects a leader: it may answer soon.
func (d *Defect) Silent() bool { return errors.Is(d.Err, ErrSilent) }

// Defects checks every stream as Check does, and returns their defects, in the order of Assets; nil if
// there are none. A stream that has not answered after a while has a defect. The error is ErrNoDeployment if
// every stream is missing, or that of ctx.
func (pr *Provisioner) Defects(ctx context.Context) ([]Defect, error) {
	return pr.defects(ctx, pr.Timing.Silent)
}

// checkers is how many streams are checked at a time.
const checkers = 16

// defects is Defects with a limit on how long a stream may take to answer; 0 waits until ctx ends.
func (pr *Provisioner) defects(ctx context.Context, silent time.Duration) ([]Defect, error) {
	assets := pr.Specs(pr.Partitions())
	errs := make([]error, len(assets))
	var asked atomic.Bool // the leader has reported a missing stream for long enough
	var g errgroup.Group
	g.SetLimit(checkers)
	for i := range assets {
		g.Go(func() error { // ends when the stream has answered, or with ctx
			absent := pr.Timing.Absent
			if asked.Load() {
				absent = 0
			}
			errs[i] = pr.checkWithin(ctx, &assets[i], absent, silent)
			if errors.Is(errs[i], wire.ErrNoStream) {
				asked.Store(true)
			}
			return nil
		})
	}
	_ = g.Wait() // the functions return no errors
	if ctx.Err() != nil {
		return nil, errors.Join(append([]error{ctx.Err()}, errs...)...)
	}
	var found []Defect
	missing := 0
	for i, err := range errs {
		if err == nil {
			continue
		}
		a := &assets[i]
		d := Defect{Asset: Asset{Stream: a.Config.Name, Component: a.Component, Partition: a.Partition}, Err: err}
		if d.Missing() {
			missing++
		}
		found = append(found, d)
	}
	if missing == len(assets) {
		return nil, ErrNoDeployment
	}
	return found, nil
}

// checkWithin checks a stream that may be silent for so long, or until ctx ends if silent is 0.
func (pr *Provisioner) checkWithin(ctx context.Context, a *Spec, absent, silent time.Duration) error {
	if silent == 0 {
		return pr.CheckStream(ctx, *a, absent)
	}
	within, end := context.WithTimeout(ctx, silent)
	defer end()
	err := pr.CheckStream(within, *a, absent)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("stream %s (%s) has not answered within %v: %w", a.Config.Name, a.Component, silent, ErrSilent)
	}
	return err
}
