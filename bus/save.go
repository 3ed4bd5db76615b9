package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus/faults"
	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// saveWindow is how many documents are in flight at once: enough to hide the latency
// of the server, few enough not to flood it.
const saveWindow = 256

// SaveState writes documents and then, if none of them was refused, the mark. See
// port.State. A document that is too large or outdated does not prevent the others
// from being saved; the error joins those of all of them.
func (s *states) SaveState(ctx context.Context, space string, docs []model.StateDoc, mark *model.StateDoc) error {
	items, err := stateItems(space, docs)
	if err != nil {
		return err
	}
	partition := s.PartitionOf(space)
	epoch := port.EpochOf(ctx, s.Past.Now())
	if err := s.saveItems(ctx, partition, epoch, items); err != nil || mark == nil {
		return err
	}
	return s.saveItems(ctx, partition, epoch, []item{{space + "." + wire.MarkKey, mark}})
}

// item is a document under its key.
type item struct {
	key string
	*model.StateDoc
}

// stateItems checks all names before anything is stored.
func stateItems(space string, docs []model.StateDoc) ([]item, error) {
	if err := model.CheckName("space", space); err != nil {
		return nil, err
	}
	items := make([]item, len(docs))
	for i := range docs {
		if err := model.CheckStateKey(docs[i].Doc); err != nil {
			return nil, err
		}
		items[i] = item{space + "." + docs[i].Doc, &docs[i]}
	}
	return items, nil
}

// put is the result of one attempt to write an item.
type put struct {
	item
	rev uint64
	err error
}

// The item has another revision. In doubt, it may be our own.
var (
	errMoved        = errors.New("another revision is stored")
	errMovedInDoubt = fmt.Errorf("%w, maybe by an earlier attempt", errMoved)
)

// saveItems writes items, a window of them at a time.
func (s *states) saveItems(ctx context.Context, partition int, epoch uint64, items []item) error {
	var refused []error
	for len(items) > 0 {
		window := items[:min(len(items), saveWindow)]
		items = items[len(window):]
		errs, err := s.saveWindow(ctx, partition, epoch, window)
		refused = append(refused, errs...)
		if err != nil {
			return errors.Join(append(refused, err)...)
		}
	}
	return errors.Join(refused...)
}

// saveWindow writes items concurrently and waits for all of them. refused are the errors about single items,
// err is one that ends the save. Items in flight may then still be stored; they name the revision that they
// replace, so that does no harm.
func (s *states) saveWindow(ctx context.Context, partition int, epoch uint64, items []item) (refused []error, err error) {
	answers := make(chan put, len(items))
	requests := make(map[string]*wire.Request, len(items))
	start := func(it item) { requests[it.key] = s.startPut(partition, epoch, it, answers) }
	for _, it := range items {
		start(it)
	}
	for left := len(items); left > 0; {
		select {
		case p := <-answers:
			again, err := s.conclude(ctx, partition, epoch, p)
			switch {
			case again:
				start(p.item)
				continue
			case definite(err):
				refused = append(refused, fmt.Errorf("save %s at %d: %w", p.key, p.Seq, err))
			case err != nil:
				s.withdraw(requests)
				return refused, fmt.Errorf("save %s at %d: %w", p.key, p.Seq, err)
			}
			left--
		case <-ctx.Done():
			s.withdraw(requests)
			return refused, ctx.Err()
		}
	}
	return refused, nil
}

func (s *states) withdraw(requests map[string]*wire.Request) {
	for _, r := range requests { // any order: each on its own
		s.Pub.Withdraw(r)
	}
}

// definite reports whether an error is about one item only; the others can still be saved.
func definite(err error) bool {
	return errors.Is(err, model.ErrOutdated) || errors.Is(err, model.ErrTooLarge)
}

// startPut sends one attempt, over the known revision of the item.
// If the sequence of that revision is not known, the item is read first: the
// server compares revisions, and would let an older state replace a newer one.
func (s *states) startPut(partition int, epoch uint64, it item, answers chan<- put) *wire.Request {
	bucket := s.Names.StateBucket(partition)
	seq, known := s.seen.seq(it.key, it.Rev)
	switch {
	case !known:
		answers <- put{it, 0, errMoved}
		return nil
	case it.Rev != 0 && seq >= it.Seq:
		answers <- put{it, it.Rev, outdated(seq, it.Rev, it.Seq)}
		return nil
	}
	return s.Pub.Start(wire.Task{
		Op: faults.OpSave, Msg: s.putMessage(partition, it), Judge: judgePut,
		Done:   func(seq uint64, err error) { answers <- put{it, seq, err} },
		Stream: wire.BucketStream(bucket), Subject: wire.BucketSubject(bucket, it.key), Bound: true, Epoch: epoch,
	})
}

func (s *states) putMessage(partition int, it item) *nats.Msg {
	h := make(nats.Header, 5)
	wire.SetNumber(h, wire.HeaderExpect, it.Rev)
	wire.SetNumber(h, wire.HeaderSeq, it.Seq)
	if it.Kept.Rev > 0 {
		wire.SetNumber(h, wire.HeaderKeptSeq, it.Kept.Seq)
		wire.SetNumber(h, wire.HeaderKeptRev, it.Kept.Rev)
	}
	if it.Data == nil {
		h[wire.HeaderKVOperation] = []string{"DEL"}
	}
	return &nats.Msg{Subject: s.KV + wire.BucketSubject(s.Names.StateBucket(partition), it.key), Header: h, Data: it.Data}
}

func judgePut(a wire.Answer, doubt bool) wire.Ruling {
	switch {
	case a.Outcome == wire.Stored:
		return wire.Ruling{Seq: a.Seq}
	case a.Outcome == wire.Moved && doubt:
		return wire.Ruling{Err: errMovedInDoubt}
	case a.Outcome == wire.Moved:
		return wire.Ruling{Err: errMoved}
	case a.Outcome == wire.TooLarge:
		return wire.Ruling{Err: fmt.Errorf("%s: %w", a.Reason, model.ErrTooLarge)}
	case a.Outcome == wire.Full:
		return wire.Ruling{Err: errors.New(a.Reason)}
	}
	return wire.Ruling{Again: true}
}

// conclude records the new revision, or finds out which state has replaced the item: an
// older state is replaced by another attempt. Revisions only grow, so a revision
// smaller than the known one belongs to a bucket that has gone back.
func (s *states) conclude(ctx context.Context, partition int, epoch uint64, p put) (again bool, err error) {
	if p.err == nil {
		p.StateDoc.Rev = p.rev
		s.seen.note(p.key, p.rev, p.Seq)
	}
	if !errors.Is(p.err, errMoved) {
		return false, p.err
	}
	there, err := s.readItem(ctx, partition, p.key)
	if (err == nil || errors.Is(err, wire.ErrNoMessage)) && there.Rev < p.Rev {
		if s.Compare(ctx, wire.BucketStream(s.Names.StateBucket(partition))); s.Now() != epoch {
			return false, wire.ErrOtherEpoch
		}
		there, err = s.readItem(ctx, partition, p.key) // a deposed leader has answered, or the item was purged
	}
	switch {
	case errors.Is(err, wire.ErrNoMessage) && p.Kept.Rev > 0:
		return false, outdated(0, 0, p.Seq) // it was deleted
	case errors.Is(err, wire.ErrNoMessage):
		p.StateDoc.Rev = 0
		return true, nil
	case err != nil:
		return false, err
	}
	was := p.StateDoc.Rev
	p.StateDoc.Rev = there.Rev
	switch {
	case errors.Is(p.err, errMovedInDoubt) && there.Seq == p.Seq && bytes.Equal(there.Data, p.Data):
		return false, nil // an earlier attempt was stored and its answer lost
	case there.Seq < p.Seq && (p.Kept.Rev == 0 || there.Rev == was):
		return true, nil
	}
	return false, outdated(there.Seq, there.Rev, p.Seq)
}

func outdated(have, rev, want uint64) error {
	return &model.OutdatedError{Have: have, Rev: rev, Want: want}
}
