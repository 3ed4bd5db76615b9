package backup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/bus/streamcopy"
	"github.com/settlehq/settle/bus/survey"
	"github.com/settlehq/settle/internal/doctor"
	"github.com/settlehq/settle/internal/pause"
)

// Restore creates the deployment of a backup where none exists. It creates nothing unless every
// file matches the manifest. Workers and clients are refused until the doctor has found the
// restored deployment to be complete. An interrupted restore can be run again.
func Restore(ctx context.Context, cfg bus.Config, dir string, progress Progress) (*Manifest, error) {
	m, err := Check(dir, progress)
	if err != nil {
		return nil, err
	}
	if cfg.Prefix != m.Deployment {
		return nil, fmt.Errorf("this is a backup of deployment %s, which is restored under its own name: use --prefix %s; for another name or another number of partitions there are `settle export` and `settle import`", m.Deployment, m.Deployment)
	}
	cfg.Partitions, cfg.Horizon = m.Partitions, m.Horizon
	r, err := streamcopy.BeginRestore(ctx, cfg, m.ID)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if err := m.restore(ctx, r, dir, progress); err != nil {
		return nil, fmt.Errorf("%w (nothing can use the deployment yet; `settle restore` with the same backup may be run again)", err)
	}
	if err := examine(ctx, cfg); err != nil {
		return nil, err
	}
	if err := r.Finish(ctx); err != nil {
		return nil, err
	}
	return m, noteRestored(ctx, cfg, m)
}

// noteRestored records in the deployment the backup that it was restored from: the record cannot have
// existed when the backup was made.
func noteRestored(ctx context.Context, cfg bus.Config, m *Manifest) error {
	b, err := bus.Connect(ctx, cfg)
	if err != nil {
		return fmt.Errorf("the deployment is restored, and cannot be connected to: %w", err)
	}
	defer b.Close()
	if err := b.NoteBackup(ctx, m.Note()); err != nil {
		return fmt.Errorf("the deployment is restored, but its backup could not be recorded for the doctor: %w", err)
	}
	return nil
}

// Check reads a backup, and all of its files.
func Check(dir string, progress Progress) (*Manifest, error) {
	m, err := Read(dir)
	if err != nil {
		return nil, err
	}
	progress.begin(StepChecksums, m.Size())
	if err := m.Verify(dir, progress.add); err != nil {
		return nil, err
	}
	return m, m.complete(dir)
}

// complete returns an error unless the backup has a file for every stream of the deployment.
func (m *Manifest) complete(dir string) error {
	for _, a := range provision.AssetsOf(m.Deployment, m.Partitions) {
		there := a.Component == provision.ComponentWorkers
		for i := range m.Files {
			there = there || m.Files[i].Asset == a
		}
		if !there {
			return fmt.Errorf("the backup in %s is not complete: it has no copy of stream %s; take another backup", dir, a.Stream)
		}
	}
	return nil
}

func (m *Manifest) restore(ctx context.Context, r *streamcopy.Restorer, dir string, progress Progress) error {
	var streams []streamcopy.Restored
	for i := range m.Files {
		streams = append(streams, m.Files[i].restored())
	}
	if !r.Resumed {
		for i := range streams {
			progress.begin(m.Files[i].Stream, m.Files[i].Size)
			if err := restoreFile(ctx, r, filepath.Join(dir, m.Files[i].Name), &streams[i], progress.add); err != nil {
				return err
			}
		}
	}
	return r.Open(ctx, streams)
}

// restored returns the stream that a file is restored to.
func (f *File) restored() streamcopy.Restored {
	return streamcopy.Restored{
		Asset: f.Asset, First: f.First, Last: f.Last, Messages: f.Messages, Bytes: f.Bytes, MaxBytes: f.MaxBytes, MaxAge: f.MaxAge,
	}
}

func restoreFile(ctx context.Context, r *streamcopy.Restorer, name string, s *streamcopy.Restored, tell func(int64)) error {
	in, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was only read
	return r.Copy(ctx, s, bufio.NewReaderSize(&progressReader{in, tell}, 1<<20))
}

// examinePatience is the time limit until the restored streams are healthy: the
// replicas of a cluster catch up.
const examinePatience = time.Minute

// examine lets the doctor examine the streams of the deployment.
func examine(ctx context.Context, cfg bus.Config) error {
	ctx, cancel := context.WithTimeout(ctx, examinePatience)
	defer cancel()
	for {
		survey, err := survey.New(ctx, cfg, survey.Config{Restoring: true})
		if err != nil {
			return err
		}
		bad := wrong(doctor.Judge(survey, nil, nil, 0))
		if bad == "" {
			return nil
		}
		if pause.For(ctx, time.Second) != nil {
			return errors.New("everything is copied, but the doctor reports problems: " + bad + "; workers are still refused; see `settle doctor`, and run `settle restore` again")
		}
	}
}

// wrong returns the failures that the doctor has found in the deployment itself, "" for none.
func wrong(r *doctor.Report) string {
	var bad []string
	for _, f := range r.Findings {
		switch f.Check {
		case doctor.CheckDeployment, doctor.CheckStreams, doctor.CheckReplicas, doctor.CheckReach:
			if f.Level == doctor.Failure {
				bad = append(bad, f.Found)
			}
		}
	}
	return strings.Join(bad, "; ")
}
