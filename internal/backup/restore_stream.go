package backup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/bus/streamcopy"
	"github.com/settlehq/settle/bus/survey"
	"github.com/settlehq/settle/internal/doctor"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
)

// RestoreStream creates a missing stream of a deployment again, as of the backup, while the deployment
// keeps running. The stream has then lost its tail, which workers and coordinators repair, or refuse
// until an operator accepts the loss (docs/durability.md): every message keeps its sequence. Nothing can be
// stored in it before it is complete and the doctor has found it healthy. An interrupted restore can be run again.
//
// A STATE bucket is brought up to date from the log, so the log has to exist, and the backup must not be older than
// the horizon: later events wake spaces, and leave their lanes after the horizon.
func RestoreStream(ctx context.Context, cfg bus.Config, dir, stream string, progress Progress) (*Manifest, *File, error) {
	m, err := Check(dir, progress)
	if err != nil {
		return nil, nil, err
	}
	if cfg.Prefix != m.Deployment {
		return nil, nil, fmt.Errorf("this is a backup of deployment %s: use --prefix %s", m.Deployment, m.Deployment)
	}
	cfg.Partitions, cfg.Horizon = m.Partitions, m.Horizon
	r, err := streamcopy.BeginStreamRestore(ctx, cfg, m.ID, stream)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	f, err := m.file(stream)
	if err != nil {
		return nil, nil, err
	}
	if err := m.fits(ctx, r, dir, f, time.Now(), progress); err != nil {
		return nil, nil, err
	}
	if err := m.restoreStream(ctx, cfg, r, dir, f, progress); err != nil {
		return nil, nil, fmt.Errorf("%w (nothing can be stored in the stream yet; the same restore may be run again)", err)
	}
	return m, f, nil
}

// file returns the file of a stream.
func (m *Manifest) file(stream string) (*File, error) {
	for i := range m.Files {
		if m.Files[i].Stream == stream {
			return &m.Files[i], nil
		}
	}
	return nil, fmt.Errorf("the backup has no copy of stream %s", stream)
}

// fits returns an error unless the other streams are later states of those in the backup, and contain the messages that
// the stream depends on.
func (m *Manifest) fits(ctx context.Context, r *streamcopy.Restorer, dir string, f *File, now time.Time, progress Progress) error {
	if age := now.Sub(m.AsOf); f.Component == provision.ComponentState && age > m.Horizon {
		return fmt.Errorf("the backup is %v old, and events are remembered for %v: later events may not be in the lanes any more, and spaces would not be woken for their timers. Restore all streams where there is no deployment, or export the documents (`settle export`) to a new one",
			age.Round(time.Minute), m.Horizon)
	}
	for i := range m.Files {
		other := &m.Files[i]
		if other.Component != provision.ComponentLog && other.Component != provision.ComponentLane || other.Stream == f.Stream {
			continue
		}
		progress.begin(StepCompare, other.Size)
		last, err := lastOf(filepath.Join(dir, other.Name), progress.add)
		if err != nil {
			return err
		}
		may, err := r.MayHold(ctx, other.Stream, other.Last, last)
		switch {
		case errors.Is(err, model.ErrNoStream) && f.Component == provision.ComponentState && other.Partition == f.Partition && other.Component == provision.ComponentLog:
			return fmt.Errorf("stream %s is missing too, and %s depends on it: restore it first", other.Stream, f.Stream)
		case errors.Is(err, model.ErrNoStream): // it may be the next to be restored
		case err != nil:
			return err
		case !may:
			return fmt.Errorf("stream %s differs from the backup up to %d: it belongs to another deployment of that name, or has lost messages as well, so one stream of this backup does not fit. Restore all streams where there is no deployment (docs/backup.md)", other.Stream, other.Last)
		}
	}
	return nil
}

// lastOf returns the last message of a file.
func lastOf(name string, tell func(int64)) (last streamcopy.Place, err error) {
	in, err := os.Open(name)
	if err != nil {
		return last, err
	}
	defer func() { _ = in.Close() }() // it was only read
	err = streamcopy.ReadArchive(bufio.NewReaderSize(&progressReader{in, tell}, 1<<20), func(s *streamcopy.Stored) error {
		last = streamcopy.Place{Seq: s.Seq, Time: s.Time, Subject: s.Subject}
		return nil
	})
	return last, err
}

func (m *Manifest) restoreStream(ctx context.Context, cfg bus.Config, r *streamcopy.Restorer, dir string, f *File, progress Progress) error {
	s := f.restored()
	progress.begin(f.Stream, f.Size)
	if err := restoreFile(ctx, r, filepath.Join(dir, f.Name), &s, progress.add); err != nil {
		return err
	}
	if err := examineStream(ctx, cfg, f.Stream); err != nil {
		return err
	}
	return r.OpenStream(ctx, &s)
}

// examineStream lets the doctor examine a stream that is still sealed.
func examineStream(ctx context.Context, cfg bus.Config, stream string) error {
	ctx, cancel := context.WithTimeout(ctx, examinePatience)
	defer cancel()
	for {
		survey, err := survey.New(ctx, cfg, survey.Config{})
		if err != nil {
			return err
		}
		bad := wrongWith(survey, stream)
		if bad == "" {
			return nil
		}
		if pause.For(ctx, time.Second) != nil {
			return errors.New("the stream is copied, but the doctor reports problems: " + bad)
		}
	}
}

// wrongWith returns the failures that the doctor has found in one stream, "" for none. It ignores
// failures of other streams, and positions known elsewhere that are beyond the end of the stream.
func wrongWith(s *survey.Survey, stream string) string {
	alone := *s
	alone.Streams, alone.Reaches = nil, nil
	for _, f := range s.Streams {
		if f.Name == stream {
			f.Restoring = false // by this very restore
			alone.Streams = append(alone.Streams, f)
		}
	}
	if len(alone.Streams) == 0 {
		return "it cannot be seen"
	}
	return wrong(doctor.Judge(&alone, nil, nil, 0))
}
