package host

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/settlehq/settle/internal/serverclock"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// The log is purged of commits that are no longer needed. A commit of a space may go when
//
//   - a checkpoint of the space covers it, and is older than Config.PurgeDelay,
//   - the coordinators are done with it,
//   - and it is older than Config.History, or beyond Config.HistoryBytes.
//
// The commit at which a checkpoint was made stays, and so does the head. All three are facts that
// stay true, so it does not matter which worker purges, on what knowledge, when, or how
// often: a worker that has lost the partition, or another with a longer History, does no
// harm. A concurrent reader detects the gap, and loads the newer checkpoint (see history/gaps.go).
//
// The owner of a partition purges the logs of its spaces. It checks loaded spaces
// each time; to find the others it queries the log for all spaces with more than one
// commit, periodically, and checks some of them at a time. On the way it finds
// spaces whose checkpoint does not reach the end of the log: their owner died
// before it could save. They are loaded, to be saved.
const (
	// retainEvery is how often the partition's log is checked.
	retainEvery = time.Minute
	// sweepEvery is how often the spaces are listed, once the last list has been processed.
	sweepEvery = 10 * time.Minute
	// sweepStep is how many of them are checked each time.
	sweepStep = 256
)

// retention purges the log of one partition. Its fields belong to its goroutine, except
// appended.
type retention struct {
	bus    Bus
	number int
	cfg    *Config
	clock  *serverclock.Clock
	spaces storedSpaces
	// appended is the number of bytes that the spaces in memory have committed since the
	// log was last checked.
	appended atomic.Int64
	missed   missedCommits
	next     time.Time
	listed   time.Time
	sleepers []string // spaces that are still to be checked
}

// storedSpaces are the spaces of a partition, as retention knows them.
type storedSpaces interface {
	// loaded returns those that have a host, hasHost reports whether one of them has, and load starts one.
	loaded() []*storedSpace
	hasHost(space string) bool
	load(space string)
	// purges reports whether the log may be purged.
	purges() bool
}

// run checks the log periodically, and sooner after many appends.
func (r *retention) run(ctx context.Context) {
	t := time.NewTicker(r.cfg.Checkpoint)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if ctx.Err() != nil {
			return // both were ready, and a stopped worker does nothing more
		}
		now := time.Now()
		if !r.spaces.purges() || now.Before(r.next) && r.appended.Load() < r.cfg.HistoryBytes/8 {
			continue
		}
		r.next = now.Add(retainEvery)
		r.appended.Store(0)
		if err := r.look(ctx, now); err != nil && ctx.Err() == nil {
			r.cfg.faults.Warn("purge the log", strconv.Itoa(r.number), "partition", r.number, "error", err)
		}
	}
}

// look purges commits that may go, of the spaces whose turn it is.
func (r *retention) look(ctx context.Context, now time.Time) error {
	bound, end, clock, err := r.bound(ctx)
	if err != nil {
		return err
	}
	spaces := r.spaces.loaded()
	slices.SortFunc(spaces, func(a, b *storedSpace) int { return cmp.Compare(a.space, b.space) }) // in the same order every time
	failed := r.missed.look(ctx, r.bus, spaces, end)
	for _, s := range spaces {
		saved := s.settled(s.durable.Load(), r.cfg.PurgeDelay, now)
		if gone := s.markers.covered(saved, markersStep); len(gone) > 0 {
			failed = errors.Join(failed, r.purgeMarkers(ctx, s, gone))
		}
		below := min(saved, bound+1)
		if below <= s.below {
			continue
		}
		// The bucket may have been replaced without this process having noticed yet.
		if mark, _, err := r.bus.LoadMark(ctx, s.space); err != nil || mark.Seq < below {
			failed = errors.Join(failed, err)
			continue
		}
		if err := r.bus.PurgeLog(ctx, s.space, below); err != nil {
			return errors.Join(failed, err)
		}
		s.below = below
	}
	return errors.Join(failed, r.sweep(ctx, now, bound, clock))
}

// purgeMarkers purges markers of deleted items. Another runtime may have replaced the mark whose floor allows it.
func (r *retention) purgeMarkers(ctx context.Context, s *storedSpace, gone []model.StateDoc) error {
	stored, _, err := r.bus.LoadMark(ctx, s.space)
	if err != nil || len(stored.Data) == 0 {
		return err
	}
	mark, err := model.DecodeMark(stored.Data)
	if err != nil {
		return err
	}
	gone = slices.DeleteFunc(gone, func(d model.StateDoc) bool { return isDocument(d.Doc) && d.Rev > mark.Floor })
	if err := r.bus.PurgeState(ctx, s.space, gone); err != nil {
		return err
	}
	s.markers.forget(gone)
	return nil
}

// bound returns the sequence up to which commits may go if a checkpoint covers them, the end of
// the log, and the server's time.
func (r *retention) bound(ctx context.Context) (seq, end uint64, clock time.Time, err error) {
	released, err := r.bus.LoadPosition(ctx, r.number, port.PositionReleased)
	if err != nil {
		return 0, 0, clock, err
	}
	cfg := r.cfg
	log, err := r.bus.LogState(ctx, r.number, cfg.History)
	if err != nil {
		return 0, 0, clock, err
	}
	r.clock.Set(log.Now)
	old := log.Old
	if limit := uint64(cfg.HistoryBytes); log.Bytes > limit {
		// The newest commits stay: as many as fit the limit if all are of equal size.
		keep := uint64(float64(log.Commits) * float64(limit) / float64(log.Bytes))
		old = max(old, log.Last-min(log.Last, keep))
	}
	return min(old, released), log.Last, log.Now, nil
}

// sweep checks some of the spaces that have no host here.
func (r *retention) sweep(ctx context.Context, now time.Time, bound uint64, clock time.Time) error {
	if len(r.sleepers) == 0 {
		if now.Sub(r.listed) < sweepEvery {
			return nil
		}
		spaces, err := r.bus.LogSpaces(ctx, r.number)
		if err != nil {
			return err
		}
		r.sleepers, r.listed = spaces, now
	}
	step := slices.Clone(r.sleepers[:min(len(r.sleepers), sweepStep)])
	r.sleepers = r.sleepers[len(step):]
	step = slices.DeleteFunc(step, r.spaces.hasHost)
	for _, space := range step {
		if err := r.sleeper(ctx, space, bound, clock); err != nil {
			return err
		}
	}
	return nil
}

// sleeper purges the log of a space that has no host here, or loads the space if its checkpoint
// does not reach the end of its log.
func (r *retention) sleeper(ctx context.Context, space string, bound uint64, clock time.Time) error {
	mark, stored, err := r.bus.LoadMark(ctx, space)
	if err != nil {
		return err
	}
	head, err := r.bus.Head(ctx, space)
	if err != nil {
		return err
	}
	if head > mark.Seq {
		r.spaces.load(space) // if it cannot be served, its events wait as well
		return nil
	}
	if clock.Sub(stored) < r.cfg.PurgeDelay {
		return nil
	}
	return r.bus.PurgeLog(ctx, space, min(mark.Seq, bound+1))
}
