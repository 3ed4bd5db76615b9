package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/bus/roles"
	"github.com/settlehq/settle/model"
)

const (
	// keptRewinds is how many rewinds of a stream are kept.
	keptRewinds = 5
	// longestPause is the longest time until it is tried again to note a rewind.
	longestPause = time.Minute
)

// rewindRecord is what is noted of a stream, the oldest first.
type rewindRecord struct {
	Rewinds []model.RewindNote `json:"rewinds"`
	// Acknowledged is when the newest one was noticed that an operator knows of.
	Acknowledged time.Time `json:"acknowledged,omitzero"`
}

// has reports whether another process has noted the same rewind.
func (r *rewindRecord) has(n model.RewindNote) bool {
	return slices.ContainsFunc(r.Rewinds, func(o model.RewindNote) bool { return o.By != n.By && o.IsSame(&n.Rewind) })
}

// rewinds are the notes of streams that have gone back. They are records.
type rewinds struct{ *records }

// noteRewind notes that a stream has gone back, unless another process has. It tries until that is
// stored, or this user may not, or the bus is stopped.
func (w *rewinds) noteRewind(r model.Rewind) {
	n := model.RewindNote{Rewind: r, By: w.Name}
	for try := 1; ; try++ {
		err := w.tryNoteRewind(w.Pub.Ctx, n)
		switch {
		case err == nil || w.Over(w.Pub.Ctx) != nil:
			return
		case errors.Is(err, model.ErrForbidden):
			w.Log.Warn("a stream has gone back, and that could not be recorded in the deployment: only this log reports it", "stream", r.Stream, "error", err)
			return
		}
		w.Faults.Warn("cannot note that a stream has gone back; trying again", r.Stream, "stream", r.Stream, "error", err)
		if w.Sleep(w.Pub.Ctx, min(wire.Pause(try)*time.Duration(try), longestPause)) != nil {
			return
		}
	}
}

func (w *rewinds) tryNoteRewind(ctx context.Context, n model.RewindNote) error {
	key := wire.RewindKey + "." + n.Stream
	var denied error
	err := w.changeRewinds(ctx, key, func(r *rewindRecord) bool {
		if r.has(n) {
			return false
		}
		r.Rewinds = append(r.Rewinds, n)
		r.Rewinds = r.Rewinds[max(0, len(r.Rewinds)-keptRewinds):]
		denied = w.MayPublish(ctx, "noting that a stream has gone back", roles.Client, wire.BucketSubject(w.Names.ProgramsBucket(), key))
		return denied == nil
	})
	return errors.Join(denied, err)
}

// changeRewinds changes a record, unless change returns false.
func (w *rewinds) changeRewinds(ctx context.Context, key string, change func(*rewindRecord) bool) error {
	for try := 1; ; try++ {
		there, err := w.LoadRecord(ctx, key)
		if err != nil {
			return err
		}
		r := readRewinds(there)
		if !change(&r) {
			return nil
		}
		data, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if _, err = w.SaveRecord(ctx, model.Record{Key: key, Data: data, Rev: there.Rev}); !errors.Is(err, model.ErrOutdated) || try == noteTries {
			return err
		}
	}
}

// readRewinds reads a record. One that cannot be read is written over.
func readRewinds(there model.Record) (r rewindRecord) {
	if there.Data == nil || json.Unmarshal(there.Data, &r) != nil {
		return rewindRecord{}
	}
	return r
}

// RewindNotes returns what processes have noted of streams that have gone back, the oldest first.
func (w *rewinds) RewindNotes(ctx context.Context) ([]model.RewindNote, error) {
	records, err := w.ListRecords(ctx, wire.RewindKey)
	if err != nil {
		return nil, fmt.Errorf("list the streams that have gone back: %w", err)
	}
	var all []model.RewindNote
	for _, there := range records {
		r := readRewinds(there)
		for _, n := range r.Rewinds {
			n.Stream = strings.TrimPrefix(there.Key, wire.RewindKey+".")
			n.Acknowledged = !n.At.After(r.Acknowledged)
			all = append(all, n)
		}
	}
	slices.SortStableFunc(all, func(a, b model.RewindNote) int { return a.At.Compare(b.At) })
	return all, nil
}

// AcknowledgeRewinds records that an operator knows of all rewinds that are noted, and returns how many
// of them were not acknowledged before.
func (w *rewinds) AcknowledgeRewinds(ctx context.Context) (n int, err error) {
	records, err := w.ListRecords(ctx, wire.RewindKey)
	if err != nil {
		return 0, fmt.Errorf("list the streams that have gone back: %w", err)
	}
	for _, there := range records {
		fresh := 0
		err := w.changeRewinds(ctx, there.Key, func(r *rewindRecord) bool {
			fresh = 0
			newest := r.Acknowledged
			for _, o := range r.Rewinds {
				if o.At.After(r.Acknowledged) {
					fresh++
				}
				if o.At.After(newest) {
					newest = o.At
				}
			}
			r.Acknowledged = newest
			return fresh > 0
		})
		if err != nil {
			return n, err
		}
		n += fresh
	}
	return n, nil
}
