package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
)

// BackupNote is a deployment's record of a backup of it. The files of the backup are elsewhere,
// and the note does not show that they still exist.
type BackupNote struct {
	ID string `json:"id"`
	// AsOf is the time before which all acknowledged data is in the backup, by the clock
	// of the machine that made it.
	AsOf  time.Time `json:"asOf"`
	Ended time.Time `json:"ended"`
	// Manifest is the checksum of its manifest.
	Manifest string `json:"manifest"`
	Messages uint64 `json:"messages"`
	Bytes    int64  `json:"bytes"`
	// Ends are the last sequences of its streams, by stream.
	Ends map[string]uint64 `json:"ends"`
	// Noted is when the note was stored, by the server's clock. It is not in the record itself.
	Noted time.Time `json:"-"`
}

// Made returns when the backup was made, or the time of its note if the backup's clock was ahead of that.
func (n *BackupNote) Made() time.Time {
	if n.AsOf.After(n.Noted) {
		return n.Noted
	}
	return n.AsOf
}

// backups keeps the note of the newest backup, which is a record.
type backups struct{ *records }

// NoteBackup stores that a backup was made, unless a newer one is recorded already. It returns
// model.ErrForbidden for a user without that permission.
func (b *backups) NoteBackup(ctx context.Context, n *BackupNote) error {
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		there, rev, err := b.lastBackup(ctx)
		if err == nil && there != nil && there.Made().After(n.AsOf) {
			return nil
		}
		if _, unreadable := errors.AsType[*noteError](err); err != nil && !unreadable {
			return err
		}
		_, err = b.SaveRecord(ctx, model.Record{Key: wire.BackupKey, Data: data, Rev: rev})
		if !errors.Is(err, model.ErrOutdated) || try == noteTries {
			return err
		}
	}
}

// LastBackup returns the record of the newest backup, nil if there is none.
func (b *backups) LastBackup(ctx context.Context) (*BackupNote, error) {
	n, _, err := b.lastBackup(ctx)
	return n, err
}

// noteError reports that a note cannot be read.
type noteError struct{ why error }

func (e *noteError) Error() string { return fmt.Sprintf("the note of the newest backup: %v", e.why) }
func (e *noteError) Unwrap() error { return e.why }

func (b *backups) lastBackup(ctx context.Context) (n *BackupNote, rev uint64, err error) {
	r, err := b.LoadRecord(ctx, wire.BackupKey)
	switch {
	case err != nil:
		return nil, 0, err
	case r.Data == nil:
		return nil, r.Rev, nil
	}
	n = &BackupNote{Noted: r.Stored}
	if err := json.Unmarshal(r.Data, n); err != nil {
		return nil, r.Rev, &noteError{err}
	}
	if n.AsOf.IsZero() || n.ID == "" {
		return nil, r.Rev, &noteError{errors.New("it has no id, or no time")}
	}
	return n, r.Rev, nil
}
