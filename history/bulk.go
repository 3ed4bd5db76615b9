package history

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// DeadFilter selects dead letters. The zero value selects all.
type DeadFilter struct {
	// Space and Stream are the letters' space and stream, "" for any.
	Space, Stream string
	// Reason is a substring of the letters' error, compared case-insensitively.
	Reason string
	// Since and Before bound the time at which the event ended: Since <= time < Before; zero for no bound.
	Since, Before time.Time
}

// byName reports whether a letter with that name can match.
func (f *DeadFilter) byName(n model.DeadName) bool {
	return (f.Space == "" || n.Space == f.Space) && (f.Stream == "" || n.Stream == f.Stream)
}

// namesSuffice reports whether names alone determine the matching letters.
func (f *DeadFilter) namesSuffice() bool {
	return f.Reason == "" && f.Since.IsZero() && f.Before.IsZero()
}

// Wants reports whether a letter matches.
func (f *DeadFilter) Wants(d *model.DeadLetter) bool {
	switch {
	case !f.byName(d.Name()):
		return false
	case !f.Since.IsZero() && d.Ended.Before(f.Since):
		return false
	case !f.Before.IsZero() && !d.Ended.Before(f.Before):
		return false
	}
	return f.Reason == "" || strings.Contains(strings.ToLower(d.Error), strings.ToLower(f.Reason))
}

// DeadCounts counts dead letters.
type DeadCounts = model.DeadCounts

func readDeadIndex(ctx context.Context, bus port.Client, space string) (model.DeadIndex, error) {
	names, err := bus.ListDead(ctx, space)
	return model.NewDeadIndex(names), err
}

// CountDead counts the dead letters of a space, or of all spaces if space is "". It takes a few requests
// whatever the number of letters: see port.DeadCounter.
func CountDead(ctx context.Context, bus port.Client, space string) (DeadCounts, error) {
	return countDead(ctx, bus, &DeadFilter{Space: space})
}

// countDead counts the letters of the filter's space and stream.
func countDead(ctx context.Context, bus port.Client, f *DeadFilter) (DeadCounts, error) {
	if counter, can := bus.(port.DeadCounter); can {
		return counter.CountDead(ctx, f.Space, f.Stream)
	}
	x, err := readDeadIndex(ctx, bus, f.Space)
	if err != nil {
		return DeadCounts{}, err
	}
	return x.Count(f.byName), nil
}

// CountOpen counts the open letters that match a filter. If the filter needs more than names, CountOpen reads
// all letters of the space; otherwise it costs as much as CountDead.
func CountOpen(ctx context.Context, bus port.Client, f DeadFilter) (int, error) {
	if f.namesSuffice() {
		c, err := countDead(ctx, bus, &f)
		return c.Open, err
	}
	s, err := SelectDead(ctx, bus, f)
	if err != nil {
		return 0, err
	}
	return s.Count, nil
}

// OpenDead holds the dead letters that match a filter and were open at one time; later ones are not included.
type OpenDead struct {
	bus    port.Client
	filter DeadFilter
	index  model.DeadIndex
	// Count is the number of letters, or an upper bound if the filter needs more than names.
	Count int
}

// SelectDead finds the open letters. If the filter needs more than names, it reads all letters of the space.
func SelectDead(ctx context.Context, bus port.Client, f DeadFilter) (*OpenDead, error) {
	x, err := readDeadIndex(ctx, bus, f.Space)
	if err != nil {
		return nil, err
	}
	s := &OpenDead{bus: bus, filter: f, index: x}
	if f.namesSuffice() {
		s.Count = x.Count(f.byName).Open
		return s, nil
	}
	n := 0
	s.Count = len(x) // an upper bound
	err = s.each(ctx, func(*model.DeadLetter) error { n++; return nil })
	s.Count = n
	return s, err
}

// deadPageSize is the number of letters read per request.
const deadPageSize = 512

// each calls f with each letter, oldest first, until f fails. It ends with the last selected letter: the
// notes that f writes follow it.
func (s *OpenDead) each(ctx context.Context, f func(*model.DeadLetter) error) error {
	left := s.Count
	for after := uint64(0); left > 0; {
		page, err := s.bus.ReadDead(ctx, s.filter.Space, after, deadPageSize)
		if err != nil {
			return err
		}
		for i := range page {
			d := &page[i]
			after = d.Seq
			if d.IsNote() || !s.index.Open(d.Name()) || !s.filter.Wants(d) {
				continue
			}
			if err := f(d); err != nil {
				return err
			}
			left--
		}
		if len(page) < deadPageSize {
			return nil
		}
	}
	return nil
}

// List calls f with each letter, oldest first, until f fails.
func (s *OpenDead) List(ctx context.Context, f func(Dead) error) error {
	return s.each(ctx, func(d *model.DeadLetter) error { return f(Dead{DeadLetter: *d}) })
}

// Pace limits and reports a bulk operation.
type Pace struct {
	// Rate is the number of letters per second, 0 for no limit.
	Rate float64
	// Done, if not nil, is called with the result of each letter, one at a time, in the order of completion.
	Done func(DeadDone)
}

// DeadDone is the result of a bulk operation for one letter.
type DeadDone struct {
	Of model.DeadName
	// Sent is the event that was sent again, the zero EventRef for a dismissal; Duplicate is set if it had
	// been sent again before.
	Sent      EventRef
	Duplicate bool
	Err       error
}

// bulkWindow is the number of letters in flight: enough to hide the latency of the server.
const bulkWindow = 128

// Redrive redrives each letter, in order, like the function Redrive. A letter that cannot be sent is reported
// to Pace.Done, and the others are sent. Redrive stops at an error that concerns all letters: the lane is
// full, the user has no permission, or ctx has ended. To continue, select and redrive again: nothing is done
// twice.
func (s *OpenDead) Redrive(ctx context.Context, p Pace) error {
	lanes := map[int]error{} // by partition, why letters cannot be sent to its lane
	return s.do(ctx, p, func(ctx context.Context, d *model.DeadLetter, end func(DeadDone)) error {
		r := EventRef{d.Space, d.Stream, model.RedriveID(d.Event)}
		lane := model.PartitionOf(d.Space, s.bus.Partitions())
		if _, known := lanes[lane]; !known { // a bus waits for a missing lane
			_, _, lanes[lane] = s.bus.FindEvent(ctx, r.Space, r.Stream, r.Event)
		}
		if err := lanes[lane]; err != nil {
			end(DeadDone{Of: d.Name(), Sent: r, Err: err})
			return nil
		}
		m := model.Message{Space: r.Space, Stream: r.Stream, ID: r.Event, Payload: d.Bytes(), Trace: d.Trace}
		if d.Lost != "" {
			var err error
			if m.Payload, err = Payload(ctx, s.bus, EventRef{d.Space, d.Stream, d.Event}); err != nil {
				end(DeadDone{Of: d.Name(), Sent: r, Err: err})
				return nil
			}
		}
		done := DeadDone{Of: d.Name(), Sent: r}
		answered := sending(s.bus, m)
		go func() { // ends when the note is written, or with ctx
			select {
			case a := <-answered:
				if done.Duplicate, done.Err = a.r.Duplicate, a.err; a.err == nil {
					done.Err = note(ctx, s.bus, r, model.Redriven, "")
				}
			case <-ctx.Done():
				done.Err = ctx.Err()
			}
			end(done)
		}()
		return nil
	})
}

// Dismiss dismisses each letter with a reason, like the function Dismiss; otherwise it behaves like Redrive.
func (s *OpenDead) Dismiss(ctx context.Context, reason string, p Pace) error {
	if len(reason) > model.MaxReasonLen {
		return fmt.Errorf("dismiss: the reason has %d bytes, and at most %d are kept; shorten it", len(reason), model.MaxReasonLen)
	}
	return s.do(ctx, p, func(ctx context.Context, d *model.DeadLetter, end func(DeadDone)) error {
		of := d.Name()
		go func() { // ends when the note is written, or with ctx
			end(DeadDone{Of: of, Err: note(ctx, s.bus, EventRef(of), model.Dismissed, reason)})
		}()
		return nil
	})
}

// do calls begin for each letter, in order and at a pace, with a window of letters in flight. It returns when
// all of them have completed.
func (s *OpenDead) do(ctx context.Context, p Pace, begin func(context.Context, *model.DeadLetter, func(DeadDone)) error) error {
	b := &bulk{pace: p, slots: make(chan struct{}, bulkWindow)}
	ctx, b.cancel = context.WithCancel(ctx)
	defer b.cancel()
	if p.Rate > 0 {
		t := time.NewTicker(max(time.Duration(float64(time.Second)/p.Rate), 1))
		defer t.Stop()
		b.tick = t.C
	}
	err := s.each(ctx, func(d *model.DeadLetter) error {
		if err := b.wait(ctx); err != nil {
			return err
		}
		b.under.Add(1)
		return begin(ctx, d, b.end)
	})
	b.under.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fatal != nil {
		return b.fatal
	}
	return err
}

// bulk is a bulk operation in progress.
type bulk struct {
	pace   Pace
	tick   <-chan time.Time // nil without a rate
	slots  chan struct{}
	under  sync.WaitGroup
	cancel context.CancelFunc

	mu    sync.Mutex
	fatal error
}

// wait blocks until the next letter is due and there is room in the window.
func (b *bulk) wait(ctx context.Context) error {
	if b.tick != nil {
		select {
		case <-b.tick:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	select {
	case b.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end records the result of one letter.
func (b *bulk) end(d DeadDone) {
	defer b.under.Done()
	<-b.slots
	b.mu.Lock()
	defer b.mu.Unlock()
	if endsAll(d.Err) {
		if b.fatal == nil {
			b.fatal = fmt.Errorf("dead letter of event %s of %s/%s: %w", d.Of.Event, d.Of.Space, d.Of.Stream, d.Err)
		}
		b.cancel()
		return
	}
	if b.pace.Done != nil {
		b.pace.Done(d)
	}
}

// endsAll reports whether an error would fail the next letter as well.
func endsAll(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, model.ErrStopped) ||
		errors.Is(err, model.ErrLaneFull) || errors.Is(err, model.ErrForbidden)
}
