package history

import (
	"context"
	"fmt"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/receipts"
)

const (
	// readPage is the number of log or lane entries read per request.
	readPage = 512
	// dryReads is how many empty reads a reader that expects an entry accepts before it asks the leader
	// whether the log still reaches that far.
	dryReads = 5
)

// logReader searches the log of one space, up to its head at the creation of the reader.
type logReader struct {
	ctx   context.Context
	bus   port.Client
	space string
	head  uint64
	// owners caches results of owned.
	owners map[uint64]bool
	// gap is set once a page began behind commits that are purged.
	gap bool
	// shared, if not nil, has what other searches have read.
	shared *sharedLogs
}

// logged is a commit in the log.
type logged struct {
	seq    uint64
	prev   uint64 // model.LogEntry.Prev
	stored time.Time
	c      *model.Commit
	size   int // of the encoded commit
}

// readLogOf returns a reader. Its head is the leader's, and at least seen unless the store goes back.
func readLogOf(ctx context.Context, bus port.Client, space string, seen uint64) (*logReader, error) {
	head := func() (uint64, error) { return headOf(ctx, bus, space, seen) }
	shared, is := bus.(*sharedLogs)
	if is {
		read := head
		head = func() (uint64, error) { return shared.of(space).headOf(ctx, seen, read) }
	}
	at, err := head()
	if err != nil {
		return nil, err
	}
	return &logReader{ctx: ctx, bus: bus, space: space, head: at, owners: map[uint64]bool{}, shared: shared}, nil
}

// headOf returns the head of a log as the leader knows it, at least seen unless the store goes back.
func headOf(ctx context.Context, bus port.Client, space string, seen uint64) (uint64, error) {
	for began, dry := bus.Epoch(), 0; ; dry++ {
		_ = pause.For(ctx, pause.Backoff(dry))
		epoch := bus.Epoch()
		head, err := bus.Head(ctx, space)
		switch {
		case err != nil:
			return 0, err
		case head >= seen || epoch != began:
			return head, nil
		case ctx.Err() != nil:
			return 0, ctx.Err()
		}
	}
}

// entry returns the first commit at or after a sequence, which must exist.
func (l *logReader) entry(seq uint64) (*logged, error) {
	page, err := l.page(seq-1, 1)
	if err != nil {
		return nil, err
	}
	return page[0], nil
}

// page returns at least one and up to n commits after a sequence that is below the head. A replica that
// returns none lags, and is read again; after several tries the leader is asked whether the log still reaches
// that far.
func (l *logReader) page(behind uint64, n int) (page []*logged, err error) {
	if l.shared == nil {
		page, err = l.read(behind, n)
	} else {
		page, err = l.shared.page(l.ctx, l.space, behind, n, func() ([]*logged, error) { return l.read(behind, n) })
	}
	l.gap = l.gap || err == nil && page[0].prev > behind
	return page, err
}

// read is page from the log itself.
func (l *logReader) read(behind uint64, n int) ([]*logged, error) {
	for dry := 0; ; dry++ {
		_ = pause.For(l.ctx, pause.Backoff(dry))
		entries, err := l.bus.ReadLog(l.ctx, l.space, behind, n)
		switch {
		case err != nil:
			return nil, err
		case len(entries) > 0:
			return decodeAll(l.ctx, l.bus, entries)
		case l.ctx.Err() != nil:
			return nil, l.ctx.Err()
		}
		if dry%dryReads == dryReads-1 {
			if err := l.checkHead(); err != nil {
				return nil, err
			}
		}
	}
}

func (l *logReader) checkHead() error {
	head, err := l.bus.Head(l.ctx, l.space)
	if err == nil && head < l.head {
		err = fmt.Errorf("the log of space %s ends at %d, and was seen to reach %d: the stream has lost messages (a power cut without fsync, or an old backup): %w", l.space, head, l.head, model.ErrRewound)
	}
	return err
}

func decodeAll(ctx context.Context, bus port.Client, entries []model.LogEntry) ([]*logged, error) {
	out := make([]*logged, len(entries))
	for i, e := range entries {
		c, err := ReadCommit(ctx, bus, &e)
		if err != nil {
			return nil, err
		}
		out[i] = &logged{e.Seq, e.Prev, e.Stored, c, len(e.Data)}
	}
	return out, nil
}

// verdict is the position of a commit relative to the one that is searched for.
type verdict int

const (
	unknown verdict = iota
	before          // the searched commit is later
	after           // this is the searched commit, or the searched one is earlier
)

func beforeOrAfter(isBefore bool) verdict {
	if isBefore {
		return before
	}
	return after
}

// bisect returns the first commit after a sequence for which judge returns after, nil if there is none, and
// an earlier one for which it returned before, 0 if there is none. The verdicts, except unknown ones, must be
// ordered: before never follows after.
func (l *logReader) bisect(behind uint64, judge func(*logged) (verdict, error)) (found *logged, preceded uint64, err error) {
	low, high := behind, l.head+1 // the result lies between the two, both excluded
	for low+1 < high {
		mid := low + (high-low)/2
		e, v, err := l.witness(mid, high, judge)
		switch {
		case err != nil:
			return nil, 0, err
		case v == before:
			low, preceded = e.seq, e.seq
		case v == after:
			found, high = e, mid
		default:
			high = mid
		}
	}
	return found, preceded, nil
}

// holds reports whether a commit that was read is still in the log. If it was purged since, so may be the
// searched commit.
func (l *logReader) holds(seq uint64) (bool, error) {
	page, err := l.read(seq-1, 1)
	return err == nil && page[0].seq == seq, err
}

// witness returns the first commit in [from, bound) for which judge returns a verdict other than unknown.
func (l *logReader) witness(from, bound uint64, judge func(*logged) (verdict, error)) (*logged, verdict, error) {
	for n := 1; from < bound; n = min(8*n, readPage) {
		page, err := l.page(from-1, n)
		if err != nil {
			return nil, unknown, err
		}
		for _, e := range page {
			if e.seq >= bound {
				return nil, unknown, nil
			}
			if v, err := judge(e); v != unknown || err != nil {
				return e, v, err
			}
			from = e.seq + 1
		}
	}
	return nil, unknown, nil
}

// scan reads forward from a sequence until it finds the handling of an event, or reaches the head. Pages
// grow, because a follow-up is usually handled at once. If commits on the way were purged, and none of the
// others contains the handling, the error is ErrForgotten.
func (l *logReader) scan(behind uint64, key receipts.Key) (*Handling, error) {
	whole := true
	for n := 4; behind < l.head; n = min(4*n, readPage) {
		page, err := l.page(behind, n)
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			if h := e.handling(l.space, key); h != nil {
				return h, nil
			}
			whole = whole && e.prev <= behind
			behind = e.seq
		}
	}
	if !whole {
		return nil, ErrForgotten
	}
	return nil, nil
}

// owned reports whether the runtime of an epoch owned the space, so that the next takeover deposed it. A
// runtime that joined is not deposed; if the beginning of the epoch was purged, this is unknown.
func (l *logReader) owned(epoch uint64) (bool, error) {
	if owned, known := l.owners[epoch]; known {
		return owned, nil
	}
	if epoch == 0 || epoch > l.head {
		return false, nil
	}
	e, err := l.entry(epoch)
	if err != nil {
		return false, err
	}
	l.owners[epoch] = e.seq == epoch && e.c.Takeover
	return l.owners[epoch], nil
}

// handling returns the transaction of the commit that handled an event, or nil.
func (e *logged) handling(space string, key receipts.Key) *Handling {
	tx := receipts.Find(e.c, key)
	if tx == nil {
		return nil
	}
	return e.handlingOf(space, tx)
}

func (e *logged) handlingOf(space string, tx *model.Tx) *Handling {
	return &Handling{
		Space: space, Seq: e.seq, Stored: e.stored, Runtime: e.c.Runtime,
		ID: model.TxID{Space: space, Epoch: e.c.Epoch, N: tx.N}, Tx: *tx,
	}
}

// handlings returns all handlings of the commit that match, in order.
func (e *logged) handlings(space string, match func(*Handling) bool) (list []*Handling) {
	for i := range e.c.Txs {
		if e.c.Txs[i].Receipt == nil {
			continue
		}
		if h := e.handlingOf(space, &e.c.Txs[i]); match(h) {
			list = append(list, h)
		}
	}
	return list
}

// sends reports whether a transaction of the commit sent an event to its own space.
func (e *logged) sends(key receipts.Key) bool {
	for i := range e.c.Txs {
		for _, s := range e.c.Txs[i].Sends {
			if s.ID == key.ID && s.Stream == key.Stream && s.To == e.c.Space {
				return true
			}
		}
	}
	return false
}
