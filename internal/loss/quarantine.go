package loss

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// A commit that no reader can process is in quarantine: its space is set aside (docs/adr/0041). An
// operator makes all readers skip it, or use a copy of it.

// Quarantined is a commit in quarantine.
type Quarantined struct {
	model.LogEntry
	// Reason is the reason, Item the key of an item of the saved state that is in quarantine instead of a commit, with LogEntry.Seq
	// as its revision.
	Reason string
	Item   string
	// Behind is the number of commits of the space after it.
	Behind int
	// Before is the last commit that can be read before it.
	Before uint64
	// Record is its record, nil if no worker has encountered it yet, and rev the revision of the record.
	Record *model.Quarantined
	item   model.StateDoc
	before *replica.Replica
}

// errItem is the advice for an item of the saved state.
var errItem = errors.New("an item of the saved state cannot be skipped: restore the last backup of all streams; or delete the key with `nats kv del`, if the document is to be gone")

// QuarantineOf returns the first commit of a space that its readers cannot process, nil if there is
// none.
func QuarantineOf(ctx context.Context, b Bus, space string) (*Quarantined, error) {
	if err := model.CheckName("space", space); err != nil {
		return nil, err
	}
	var r *replica.Replica
	err := history.OverGaps(ctx, space, func() error {
		st, err := b.LoadState(ctx, space)
		if err != nil {
			return err
		}
		if r, err = replica.Load(space, st); err != nil {
			return err
		}
		return history.Replay(ctx, b, r)
	})
	e, is := errors.AsType[*model.UnreadableError](err)
	if !is {
		return nil, err
	}
	if e.Item != "" {
		return &Quarantined{LogEntry: model.LogEntry{Space: space, Seq: e.Seq}, Item: e.Item, Reason: e.Error()}, nil
	}
	q := &Quarantined{Reason: e.Error(), Before: r.Seq, before: r}
	entries, err := b.ReadLog(ctx, space, e.Seq-1, readPage)
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 || entries[0].Seq != e.Seq {
		return nil, fmt.Errorf("commit %d of space %s is not in the log any more", e.Seq, space)
	}
	q.LogEntry, q.Behind = entries[0], len(entries)-1
	return q, q.load(ctx, b)
}

// load reads the record.
func (q *Quarantined) load(ctx context.Context, b Bus) (err error) {
	if q.item, err = b.LoadItem(ctx, q.Space, model.StateKeyOfQuarantine(q.Seq)); err != nil || len(q.item.Data) == 0 {
		return err
	}
	q.Record, err = model.DecodeQuarantined(q.item.Data)
	return err
}

// Quarantine returns the commits in quarantine of a partition, by space.
func Quarantine(ctx context.Context, b Bus, partition int) (list []*Quarantined, err error) {
	spaces, err := b.LogSpaces(ctx, partition)
	if err != nil {
		return nil, err
	}
	slices.Sort(spaces)
	for _, space := range spaces {
		q, err := QuarantineOf(ctx, b, space)
		if err != nil && !errors.Is(err, model.ErrPurged) { // that is a loss
			return nil, err
		}
		if q != nil {
			list = append(list, q)
		}
	}
	return list, nil
}

// Omit makes all readers treat the commit as empty. The events that it had handled are handled again,
// and its writes and sends are lost.
func (q *Quarantined) Omit(ctx context.Context, b Bus, note string) error {
	if q.Item != "" {
		return errItem
	}
	c := &model.Commit{Version: model.CommitVersion, Space: q.Space, Runtime: "quarantine", Epoch: q.before.Epoch, Cursor: q.before.Cursor}
	return q.decide(ctx, b, model.Skipped, model.AppendCommit(nil, c, nil), note)
}

// Restore makes all readers use a copy of the commit. Its sends are put into the lanes, because
// coordinators may have skipped it.
func (q *Quarantined) Restore(ctx context.Context, b Bus, data []byte, note string) error {
	if q.Item != "" {
		return errItem
	}
	copied := q.LogEntry
	copied.Data = data
	c, err := copied.Commit()
	if err == nil {
		err = q.before.Accepts(&copied, c)
	}
	if err == nil {
		_, err = q.before.Clone().Apply(q.Seq, c)
	}
	if err != nil {
		return fmt.Errorf("the copy is not that commit: %w", err)
	}
	if err := q.decide(ctx, b, model.Restored, data, note); err != nil {
		return err
	}
	for i := range c.Txs {
		for j := range c.Txs[i].Sends {
			if s := &c.Txs[i].Sends[j]; s.To != q.Space {
				if err := release(ctx, b, s); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// release puts a send into its lane. The target recognises duplicates.
func release(ctx context.Context, b Bus, s *model.Send) error {
	m := model.Message{
		Space: s.To, Stream: s.Stream, ID: s.ID, Position: s.Position, Term: s.Term, PrevTerm: s.PrevTerm, ReplayKey: s.ReplayKey,
		Depth: s.Depth, NotBefore: s.NotBefore, Expires: s.Expires, Trace: s.Trace,
	}
	if !s.Payload.IsAbsent() {
		m.Payload = s.Payload.AppendJSON(nil)
	}
	done := make(chan error, 1)
	b.Send(m, func(_ model.SendResult, err error) { done <- err })
	if err := await(ctx, done); err != nil {
		return fmt.Errorf("release event %s to space %s: %w", s.ID, s.To, err)
	}
	return nil
}

// decide saves a decision, over the record that was read.
func (q *Quarantined) decide(ctx context.Context, b Bus, d model.Decision, stand []byte, note string) error {
	record := model.Quarantined{Version: model.QuarantineVersion, Reason: q.Reason, Since: time.Now().UTC()}
	if q.Record != nil {
		record = *q.Record
	}
	record.Seq, record.Sum = q.Seq, model.SumOf(q.Data)
	record.Decision, record.Decided, record.Note, record.Commit = d, time.Now().UTC(), note, stand
	data, err := record.Encode()
	if err != nil {
		return err
	}
	item := model.StateDoc{Doc: model.StateKeyOfQuarantine(q.Seq), Data: data, Seq: q.item.Seq + 1, Rev: q.item.Rev}
	if err := b.SaveState(ctx, q.Space, []model.StateDoc{item}, nil); err != nil {
		return fmt.Errorf("save the decision about commit %d of space %s: %w", q.Seq, q.Space, err)
	}
	q.Record = &record
	return nil
}
