package history

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// ReceiptFilter selects receipts of a space.
type ReceiptFilter struct {
	// Stream and Outcome, if not "", select receipts by stream and outcome.
	Stream  string
	Outcome model.Outcome
	// Last, if not 0, is how many of the newest receipts to return.
	Last int
	// Follow also returns future receipts, until the context ends.
	Follow bool
}

// Check returns an error if the space or the filter is invalid.
func (f *ReceiptFilter) Check(space string) error {
	if err := model.CheckName("space", space); err != nil {
		return err
	}
	if f.Stream != "" {
		if err := model.CheckName("stream", f.Stream); err != nil {
			return err
		}
	}
	switch f.Outcome {
	case "", model.Handled, model.Failed, model.Refused, model.Cancelled, model.Expired, model.Rejected:
	default:
		return fmt.Errorf("outcome %q: an event ends as %s, %s, %s, %s, %s or %s", f.Outcome, model.Handled, model.Failed, model.Rejected, model.Refused, model.Cancelled, model.Expired)
	}
	if f.Last < 0 {
		return fmt.Errorf("the last %d receipts: use a positive number, or 0 for all", f.Last)
	}
	return nil
}

func (f *ReceiptFilter) match(h *Handling) bool {
	return (f.Stream == "" || h.Stream() == f.Stream) && (f.Outcome == "" || h.Tx.Receipt.Outcome == f.Outcome)
}

// Receipts iterates over the receipts of a space in log order. It ends after the first error, which may be
// the end of ctx.
func Receipts(ctx context.Context, bus port.Client, space string, f ReceiptFilter) iter.Seq2[*Handling, error] {
	return func(yield func(*Handling, error) bool) {
		if err := f.Check(space); err != nil {
			yield(nil, err)
			return
		}
		going := true // until yield returns false
		each := func(list []*Handling) bool {
			for _, h := range list {
				if going = yield(h, nil); !going {
					return false
				}
			}
			return true
		}
		l, err := readLogOf(ctx, bus, space, 0)
		if err == nil {
			err = l.list(&f, each)
		}
		if err == nil && going && f.Follow {
			err = follow(ctx, bus, space, l.head, func(e *logged) bool { return each(e.handlings(space, f.match)) })
		}
		if err != nil && going {
			yield(nil, fmt.Errorf("receipts of space %s: %w", space, err))
		}
	}
}

// list passes matching receipts to each, until it returns false.
func (l *logReader) list(f *ReceiptFilter, each func([]*Handling) bool) error {
	if f.Last > 0 {
		last, err := l.last(f)
		if err == nil {
			each(last)
		}
		return err
	}
	return l.between(0, l.head, func(e *logged) bool { return each(e.handlings(l.space, f.match)) })
}

// last reads backwards until it has enough receipts.
func (l *logReader) last(f *ReceiptFilter) (found []*Handling, err error) {
	_, err = l.backward(l.head, func(e *logged) bool {
		of := e.handlings(l.space, f.match)
		slices.Reverse(of)
		found = append(found, of...)
		return len(found) < f.Last
	})
	found = found[:min(len(found), f.Last)]
	slices.Reverse(found)
	return found, err
}

// between passes the commits after low, up to high, to each, until each returns false.
func (l *logReader) between(low, high uint64, each func(*logged) bool) error {
	for low < high {
		page, err := l.page(low, int(min(high-low, readPage)))
		if err != nil {
			return err
		}
		for _, e := range page {
			if e.seq > high || !each(e) {
				return nil
			}
			low = e.seq
		}
	}
	return nil
}

// follow passes the commits of a space after a sequence to each, until each returns false or ctx ends. It follows the log on a
// separate goroutine, because each must run on the caller's.
func follow(ctx context.Context, bus port.Client, space string, behind uint64, each func(*logged) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	entries, ended := make(chan model.LogEntry), make(chan error, 1)
	var running sync.WaitGroup
	running.Go(func() { // ends with ctx
		ended <- bus.FollowSpace(ctx, space, behind, func(e model.LogEntry) {
			select {
			case entries <- e:
			case <-ctx.Done():
			}
		})
	})
	for {
		select {
		case e := <-entries:
			page, err := decodeAll(ctx, bus, []model.LogEntry{e})
			if err == nil && each(page[0]) {
				continue
			}
			cancel()
			running.Wait()
			return err
		case err := <-ended:
			return err
		}
	}
}
