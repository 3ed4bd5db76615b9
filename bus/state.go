package bus

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/model"
)

// LoadState returns the documents of a space, sorted by name, and its mark. See
// port.State.
//
// Any replica may answer, and one that is behind would show a state from before
// parts of the log were purged. So the mark is compared with the leader's, and an
// answer with an older one is not accepted.
func (b *Bus) LoadState(ctx context.Context, space string) (model.SpaceState, error) {
	if err := model.CheckName("space", space); err != nil {
		return model.SpaceState{}, err
	}
	var state model.SpaceState
	err := b.persist(ctx, func(ctx context.Context) error {
		var err error
		if state, err = b.readState(ctx, space); err != nil {
			return err
		}
		return b.checkMark(ctx, space, state.Mark)
	})
	if err != nil {
		return model.SpaceState{}, fmt.Errorf("state of space %s: %w", space, err)
	}
	bucket, newest := b.names.stateBucket(b.partitionOf(space)), anchor{}
	for _, items := range [][]model.StateDoc{state.Docs, state.Observations, state.Pieces, state.Later, state.Due} {
		for _, d := range items {
			b.seen.note(space+"."+d.Doc, d.Rev, d.Seq)
			if d.Rev > newest.seq {
				newest = anchor{seq: d.Rev, subject: bucketSubject(bucket, space+"."+d.Doc)}
			}
		}
	}
	b.past.note(bucketStream(bucket), newest)
	return state, nil
}

// Forget drops the remembered revisions of a space's items. See port.State.
func (b *Bus) Forget(space string) { b.seen.forget(space) }

func (b *Bus) checkMark(ctx context.Context, space string, mark model.StateDoc) error {
	newest, err := b.readItem(ctx, b.partitionOf(space), space+"."+markKey)
	switch {
	case errors.Is(err, errNoMessage):
		return nil
	case err != nil:
		return err
	case mark.Rev < newest.Rev:
		return fmt.Errorf("%w: a replica shows a checkpoint that has been replaced", errTransient)
	}
	return nil
}

// readState reads all items of a space, as one replica has them at one moment: in
// one request if they are few, else by a consumer.
func (b *Bus) readState(ctx context.Context, space string) (model.SpaceState, error) {
	bucket := b.names.stateBucket(b.partitionOf(space))
	prefix := bucketSubject(bucket, space+".")
	found, more, err := b.batchGet(ctx, bucketStream(bucket), getRequest{MultiLast: []string{prefix + ">"}, MaxBytes: stateBytes})
	if more || errors.Is(err, errTooMany) {
		found, err = b.scan(ctx, bucketStream(bucket), prefix+">")
	}
	if err != nil {
		return model.SpaceState{}, err
	}
	return arrange(found, prefix), nil
}

// stateBytes limits what the server sends at once; it
// disconnects clients with 64 MiB of unread data.
const stateBytes = 16 << 20

// arrange sorts the items of a space by kind.
func arrange(found []storedMsg, prefix string) model.SpaceState {
	var state model.SpaceState
	for _, m := range found {
		name, item := strings.TrimPrefix(m.Subject, prefix), stateDoc(m)
		if name == markKey {
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
	return state
}

func sortByKey(items []model.StateDoc) {
	sort.Slice(items, func(i, j int) bool { return items[i].Doc < items[j].Doc })
}

// stateDoc reads an item of a bucket. A delete marker has no data.
func stateDoc(m storedMsg) model.StateDoc {
	d := model.StateDoc{Seq: number(m.Header, headerSeq), Rev: m.Seq, Data: m.Data}
	if isDeleted(m.Header) {
		d.Data = nil
	}
	return d
}

func isDeleted(h nats.Header) bool { return header(h, headerKVOperation) != "" }

// readItem reads one item from the leader; errNoMessage if there is none.
func (b *Bus) readItem(ctx context.Context, partition int, key string) (model.StateDoc, error) {
	bucket := b.names.stateBucket(partition)
	m, err := b.leaderGet(ctx, bucketStream(bucket), getRequest{LastFor: bucketSubject(bucket, key)})
	if err != nil {
		return model.StateDoc{}, err
	}
	d := stateDoc(m)
	b.seen.note(key, d.Rev, d.Seq)
	b.past.note(bucketStream(bucket), anchorOf(&m))
	return d, nil
}

// scan reads the last message of every subject of a pattern by a consumer, which
// has flow control and no limit on their number.
func (b *Bus) scan(ctx context.Context, stream, pattern string) ([]storedMsg, error) {
	within, end := context.WithCancel(ctx)
	defer end()
	var found []storedMsg
	complete := false
	t := tail{stream: stream, pattern: pattern, latest: true, reached: func() { complete = true; end() }}
	err := b.follow(within, t, func(d delivery) {
		found = append(found, storedMsg{Subject: d.Subject, Seq: d.seq, Header: d.Header, Data: d.Data})
	})
	if !complete {
		return nil, err
	}
	found = latest(found)
	return found, b.checkComplete(ctx, stream, pattern, found)
}

// checkComplete compares the result with the subjects that the leader lists. A
// document that was being replaced while it was read could be missing.
func (b *Bus) checkComplete(ctx context.Context, stream, pattern string, found []storedMsg) error {
	there := make(map[string]bool, len(found))
	for _, m := range found {
		there[m.Subject] = true
	}
	info, err := b.streamInfo(ctx, stream, jetstream.WithSubjectFilter(pattern))
	if err != nil {
		return err
	}
	for subject := range info.State.Subjects { // any order: one that is missing is enough
		if !there[subject] {
			return fmt.Errorf("%w: %s was not among what was read", errTransient, subject)
		}
	}
	return nil
}

// latest drops items that were replaced while the scan ran.
func latest(found []storedMsg) []storedMsg {
	at := make(map[string]int, len(found))
	kept := found[:0]
	for _, m := range found {
		if i, ok := at[m.Subject]; ok {
			kept[i] = m
			continue
		}
		at[m.Subject] = len(kept)
		kept = append(kept, m)
	}
	return kept
}
