package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// states are the saved documents of all spaces, and the positions of the partitions.
type states struct {
	*wire.Streams
	seen revisions
}

// LoadState returns the documents of a space, sorted by name, and its mark. See port.State.
//
// Any replica may answer, and a lagging one would show a state from before parts of the log were purged. So
// the mark is compared with the leader's, and an answer with an older one is rejected. A single server does not lag.
func (s *states) LoadState(ctx context.Context, space string) (model.SpaceState, error) {
	if err := model.CheckName("space", space); err != nil {
		return model.SpaceState{}, err
	}
	var state model.SpaceState
	err := s.Persist(ctx, func(ctx context.Context) error {
		var atOnce bool
		var err error
		if state, atOnce, err = s.readState(ctx, space); err != nil || atOnce && !s.Clustered.Load() {
			return err
		}
		return s.checkMark(ctx, space, state.Mark)
	})
	if err != nil {
		return model.SpaceState{}, fmt.Errorf("state of space %s: %w", space, err)
	}
	s.noteState(space, &state)
	return state, nil
}

// noteState remembers the revisions of items that were loaded.
func (s *states) noteState(space string, state *model.SpaceState) {
	bucket, newest := s.Names.StateBucket(s.PartitionOf(space)), wire.Anchor{}
	note := func(key string, d *model.StateDoc) {
		s.seen.note(space+"."+key, d.Rev, d.Seq)
		if d.Rev > newest.Seq {
			newest = wire.Anchor{Seq: d.Rev, Subject: wire.BucketSubject(bucket, space+"."+key)}
		}
	}
	for _, items := range [][]model.StateDoc{state.Docs, state.Observations, state.Pieces, state.Later, state.Due} {
		for i := range items {
			note(items[i].Doc, &items[i])
		}
	}
	if state.Mark.Rev > 0 {
		note(wire.MarkKey, &state.Mark)
	}
	s.Past.Note(wire.BucketStream(bucket), newest)
}

// LoadPart returns the mark of a space and one item. See port.State. One request reads both, because two could be
// answered by different replicas, or on both sides of a checkpoint: an old item with a new mark would lack what was
// committed between them.
func (s *states) LoadPart(ctx context.Context, space, key string) (model.SpaceState, error) {
	if err := model.CheckName("space", space); err != nil {
		return model.SpaceState{}, err
	}
	if err := model.CheckStateKey(key); err != nil {
		return model.SpaceState{}, err
	}
	bucket := s.Names.StateBucket(s.PartitionOf(space))
	prefix := wire.BucketSubject(bucket, space+".")
	found, more, err := s.BatchGet(ctx, wire.BucketStream(bucket), wire.GetRequest{MultiLast: []string{prefix + wire.MarkKey, prefix + key}, MaxBytes: wire.StateBytes})
	var state model.SpaceState
	switch {
	case more || errors.Is(err, wire.ErrTooMany): // one of them has headers that cannot be read
		state, _, err = s.readState(ctx, space)
		state = state.Part(key)
	case err == nil:
		state, err = arrange(found, prefix, space)
	}
	if err != nil {
		return model.SpaceState{}, fmt.Errorf("%s and the mark of space %s: %w", key, space, err)
	}
	s.noteState(space, &state)
	return state, nil
}

// Forget drops the remembered revisions of a space's items. See port.State.
func (s *states) Forget(space string) { s.seen.forget(space) }

func (s *states) checkMark(ctx context.Context, space string, mark model.StateDoc) error {
	newest, err := s.readItem(ctx, s.PartitionOf(space), space+"."+wire.MarkKey)
	switch {
	case errors.Is(err, wire.ErrNoMessage):
		return nil
	case err != nil:
		return err
	case mark.Rev < newest.Rev:
		return fmt.Errorf("%w: a replica shows a checkpoint that has been replaced", wire.ErrTransient)
	}
	return nil
}

// readState reads all items of a space, as one replica has them at one moment: in
// one request if they are few, which it reports, else by a consumer.
func (s *states) readState(ctx context.Context, space string) (state model.SpaceState, atOnce bool, err error) {
	bucket := s.Names.StateBucket(s.PartitionOf(space))
	prefix := wire.BucketSubject(bucket, space+".")
	found, more, err := s.BatchGet(ctx, wire.BucketStream(bucket), wire.GetRequest{MultiLast: []string{prefix + ">"}, MaxBytes: wire.StateBytes})
	if atOnce = !more && !errors.Is(err, wire.ErrTooMany); !atOnce {
		found, err = s.Scan(ctx, wire.BucketStream(bucket), prefix+">")
	}
	if err != nil {
		return model.SpaceState{}, atOnce, err
	}
	state, err = arrange(found, prefix, space)
	return state, atOnce, err
}

// arrange sorts the items of a space by kind. An item without the sequence that it reflects was not saved by Settle: what it
// has replaced is not known, so the error is a *model.UnreadableError. One that only saves work counts as deleted, as does one
// that an operator has deleted.
func arrange(found []wire.StoredMsg, prefix, space string) (state model.SpaceState, err error) {
	for _, m := range found {
		name, item := strings.TrimPrefix(m.Subject, prefix), stateDoc(m)
		if _, known := wire.Decimal(m.Header, wire.HeaderSeq); !known && item.Data != nil && (name == wire.MarkKey || model.CheckStateKey(name) == nil) {
			if _, isNode := model.NodeOfStateKey(name); !isNode && name != model.DueKey {
				return model.SpaceState{}, &model.UnreadableError{Space: space, Item: name, Seq: m.Seq, Reason: errNoSequence}
			}
			item.Data = nil
		}
		if name == wire.MarkKey {
			state.Mark = item
			continue
		}
		if model.CheckStateKey(name) != nil {
			continue // a foreign key in the bucket
		}
		item.Doc = name
		list := state.ListOf(name)
		*list = append(*list, item)
	}
	sortByKey(state.Docs)
	sortByKey(state.Observations)
	sortByKey(state.Pieces)
	sortByKey(state.Later)
	return state, nil
}

// errNoSequence is why an item of a state is not believed.
var errNoSequence = errors.New("it does not say which commit it reflects (header " + wire.HeaderSeq + "): it was not saved by Settle")

func sortByKey(items []model.StateDoc) {
	sort.Slice(items, func(i, j int) bool { return items[i].Doc < items[j].Doc })
}

// stateDoc reads an item of a bucket. A delete marker has no data.
func stateDoc(m wire.StoredMsg) model.StateDoc {
	d := model.StateDoc{Seq: wire.Number(m.Header, wire.HeaderSeq), Rev: m.Seq, Data: m.Data}
	if isDeleted(m.Header) {
		d.Data = nil
	}
	kept := model.Kept{Seq: wire.Number(m.Header, wire.HeaderKeptSeq), Rev: wire.Number(m.Header, wire.HeaderKeptRev)}
	if kept.Rev > 0 && kept.Rev < d.Rev && kept.Seq < d.Seq {
		d.Kept = kept
	}
	return d
}

func isDeleted(h nats.Header) bool { return wire.Header(h, wire.HeaderKVOperation) != "" }

// readItem reads one item from the leader; errNoMessage if there is none.
func (s *states) readItem(ctx context.Context, partition int, key string) (model.StateDoc, error) {
	bucket := s.Names.StateBucket(partition)
	m, err := s.LeaderGet(ctx, wire.BucketStream(bucket), wire.GetRequest{LastFor: wire.BucketSubject(bucket, key)})
	if err != nil {
		return model.StateDoc{}, err
	}
	d := stateDoc(m)
	s.seen.note(key, d.Rev, d.Seq)
	s.Past.Note(wire.BucketStream(bucket), wire.AnchorOf(&m))
	return d, nil
}

// LoadMark returns the mark of a space and when it was stored. See port.State.
func (s *states) LoadMark(ctx context.Context, space string) (mark model.StateDoc, stored time.Time, err error) {
	if err := model.CheckName("space", space); err != nil {
		return model.StateDoc{}, time.Time{}, err
	}
	bucket := s.Names.StateBucket(s.PartitionOf(space))
	m, err := s.LeaderGet(ctx, wire.BucketStream(bucket), wire.GetRequest{LastFor: wire.BucketSubject(bucket, space+"."+wire.MarkKey)})
	switch {
	case errors.Is(err, wire.ErrNoMessage):
		return model.StateDoc{}, time.Time{}, nil
	case err != nil:
		return model.StateDoc{}, time.Time{}, fmt.Errorf("mark of space %s: %w", space, err)
	}
	return stateDoc(m), m.Time, nil
}

// PurgeState removes markers of deleted items. See port.State. An item stored later
// under the same key has a higher revision, and stays.
func (s *states) PurgeState(ctx context.Context, space string, markers []model.StateDoc) error {
	items, err := stateItems(space, markers)
	if err != nil {
		return err
	}
	partition := s.PartitionOf(space)
	bucket := s.Names.StateBucket(partition)
	if err := s.Steady(ctx, wire.BucketStream(bucket), port.EpochOf(ctx, s.Past.Now())); err != nil {
		return err
	}
	for _, it := range items {
		there, err := s.readItem(ctx, partition, it.key)
		if errors.Is(err, wire.ErrNoMessage) || err == nil && (there.Data != nil || there.Rev != it.Rev) {
			continue
		}
		if err == nil {
			req := wire.PurgeRequest{Subject: wire.BucketSubject(bucket, it.key), Sequence: it.Rev + 1}
			err = s.Persist(ctx, func(ctx context.Context) error { return s.PurgeSubject(ctx, wire.BucketStream(bucket), &req) })
		}
		if err != nil {
			return fmt.Errorf("purge the marker of %s: %w", it.key, err)
		}
	}
	return nil
}

// SavedSpaces returns the spaces of a partition that have a mark. See port.State.
func (s *states) SavedSpaces(ctx context.Context, partition int) ([]string, error) {
	if err := s.CheckPartition(partition); err != nil {
		return nil, err
	}
	bucket := s.Names.StateBucket(partition)
	info, err := s.StreamInfo(ctx, wire.BucketStream(bucket), jetstream.WithSubjectFilter(wire.BucketSubject(bucket, "*."+wire.MarkKey)))
	if err != nil {
		return nil, fmt.Errorf("list the spaces that are saved in partition %d: %w", partition, err)
	}
	var spaces []string
	for subject := range info.State.Subjects { // any order: sorted below
		space := strings.TrimSuffix(strings.TrimPrefix(subject, wire.BucketSubject(bucket, "")), "."+wire.MarkKey)
		if model.CheckName("space", space) == nil {
			spaces = append(spaces, space)
		}
	}
	slices.Sort(spaces)
	return spaces, nil
}

// LoadItem returns one item of a space, or its mark. See port.State.
func (s *states) LoadItem(ctx context.Context, space, key string) (model.StateDoc, error) {
	if err := model.CheckName("space", space); err != nil {
		return model.StateDoc{}, err
	}
	name := key
	if key == "" {
		name = wire.MarkKey
	} else if err := model.CheckStateKey(key); err != nil {
		return model.StateDoc{}, err
	}
	d, err := s.readItem(ctx, s.PartitionOf(space), space+"."+name)
	if err != nil && !errors.Is(err, wire.ErrNoMessage) {
		return model.StateDoc{}, fmt.Errorf("load %s of space %s: %w", name, space, err)
	}
	d.Doc = key
	return d, nil
}
