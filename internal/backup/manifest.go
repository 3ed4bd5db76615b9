// Package backup copies a running deployment, and restores the copy on a server without one.
//
// # Consistency of the copies of many streams
//
// The streams of a deployment refer to each other, and no two of them can be copied at the same
// moment. A state is consistent if it contains the cause of everything in it:
//
//	saved state  comes from the log
//	a commit     comes from the events in the lane of its partition that it handled
//	an event     of a space comes from the commit of that space that sent it, in any partition
//
// So every STATE bucket is copied first, exactly as it was at one moment, and then the dead
// letters. LOG and LANE streams only grow (what is purged, nothing needs), and every message has
// a sequence, so they are copied up to ends that are chosen last: first those of all lanes, then
// those of all logs. The events in the lanes up to there came from commits before the ends of the logs.
// A log may have handled events after the end of its lane: those are added, one by one, and if a
// space sent one of them in a commit after the end of its log, that log is copied up to there,
// and so on (see cut). Everything that was stored before the first end was read is
// in the backup: that moment is AsOf.
//
// # Omissions
//
// Members of the fleet are not copied. Workers and coordinators join the restored deployment as new
// members.
package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/provision"
)

// Version of the format. A program refuses versions that it does not know.
const Version = 1

// manifestName is the file that is written last: a directory without it is not a backup.
const manifestName = "manifest.json"

// Manifest describes a backup and lists its files.
type Manifest struct {
	Version int    `json:"version"`
	ID      string `json:"id"`
	Program string `json:"program"` // the version of Settle that made it
	Schema  int    `json:"schema"`
	// Deployment is the prefix of the deployment.
	Deployment string        `json:"deployment"`
	Partitions int           `json:"partitions"`
	Horizon    time.Duration `json:"horizon"`
	// Began, AsOf and Ended are by the clock of the machine that made the backup. Everything that was
	// acknowledged before AsOf is in the backup.
	Began time.Time `json:"began"`
	AsOf  time.Time `json:"asOf"`
	Ended time.Time `json:"ended"`
	Files []File    `json:"files"`
	// Checksum is the checksum of the manifest without this field.
	Checksum string `json:"checksum"`
}

// File is the copy of one stream.
type File struct {
	Name string `json:"name"`
	provision.Asset
	First    uint64        `json:"first"`
	Last     uint64        `json:"last"`
	Messages uint64        `json:"messages"`
	Bytes    uint64        `json:"bytes"` // that the stream took
	MaxBytes int64         `json:"maxBytes,omitempty"`
	MaxAge   time.Duration `json:"maxAge,omitempty"`
	Size     int64         `json:"size"` // of the file
	SHA256   string        `json:"sha256"`
}

// Messages returns the number of messages in the backup.
func (m *Manifest) Messages() (n uint64) {
	for i := range m.Files {
		n += m.Files[i].Messages
	}
	return n
}

// Size returns the size of the files in bytes.
func (m *Manifest) Size() (n int64) {
	for i := range m.Files {
		n += m.Files[i].Size
	}
	return n
}

// Note returns the record of the backup for the deployment.
func (m *Manifest) Note() *bus.BackupNote {
	n := &bus.BackupNote{ID: m.ID, AsOf: m.AsOf, Ended: m.Ended, Manifest: m.Checksum, Messages: m.Messages(), Bytes: m.Size(), Ends: map[string]uint64{}}
	for i := range m.Files {
		n.Ends[m.Files[i].Stream] = m.Files[i].Last
	}
	return n
}

func (m *Manifest) sum() (string, error) {
	bare := *m
	bare.Checksum = ""
	text, err := json.Marshal(&bare)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// write writes the manifest, which makes the directory a backup.
func (m *Manifest) write(dir string) (err error) {
	if m.Checksum, err = m.sum(); err != nil {
		return err
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	unfinished := filepath.Join(dir, manifestName+".new")
	f, err := os.OpenFile(unfinished, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(unfinished, filepath.Join(dir, manifestName)); err != nil {
		return err
	}
	return syncDir(dir)
}

// syncDir syncs the entries of a directory to disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Read reads the manifest of a backup, without its files: see Verify.
func Read(dir string) (*Manifest, error) {
	text, err := os.ReadFile(filepath.Join(dir, manifestName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s is not a backup, or an interrupted one: it has no %s, which is written last; make another one with `settle backup`", dir, manifestName)
	case err != nil:
		return nil, err
	}
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("%s in %s is damaged: %w; take another backup", manifestName, dir, err)
	}
	if m.Version != Version {
		return nil, fmt.Errorf("the backup in %s has format %d, and this program reads %d; use the version of settle that made it (%s)", dir, m.Version, Version, m.Program)
	}
	if m.Schema != provision.Schema {
		return nil, fmt.Errorf("the backup in %s is of a deployment with schema %d, and this program has %d; use the version of settle that made it (%s)", dir, m.Schema, provision.Schema, m.Program)
	}
	sum, err := m.sum()
	if err != nil {
		return nil, err
	}
	if sum != m.Checksum {
		return nil, fmt.Errorf("%s in %s is damaged: its checksum is %s, and must be %s; take another backup", manifestName, dir, sum, m.Checksum)
	}
	return &m, nil
}

// Verify reads every file and compares it with the manifest. tell is called with the number of bytes read.
func (m *Manifest) Verify(dir string, tell func(n int64)) error {
	for i := range m.Files {
		if err := m.Files[i].verify(dir, tell); err != nil {
			return fmt.Errorf("the backup in %s is damaged: %w; take another backup", dir, err)
		}
	}
	return nil
}

func (f *File) verify(dir string, tell func(int64)) error {
	if filepath.Base(f.Name) != f.Name {
		return fmt.Errorf("file %q is not one of its directory", f.Name)
	}
	in, err := os.Open(filepath.Join(dir, f.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("file %s is missing", f.Name)
	}
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was only read
	sum := sha256.New()
	n, err := io.Copy(sum, &progressReader{in, tell})
	switch {
	case err != nil:
		return fmt.Errorf("read %s: %w", f.Name, err)
	case n != f.Size:
		return fmt.Errorf("file %s has %d bytes, and must have %d", f.Name, n, f.Size)
	case hex.EncodeToString(sum.Sum(nil)) != f.SHA256:
		return fmt.Errorf("file %s is damaged: its checksum is not that of the manifest", f.Name)
	}
	return nil
}

// progressReader calls a function for each read.
type progressReader struct {
	io.Reader
	progress func(int64)
}

func (t *progressReader) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	t.progress(int64(n))
	return n, err
}
