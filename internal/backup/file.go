package backup

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"os"
	"path/filepath"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/bus/streamcopy"
)

// file is the copy of one stream while it is written.
type file struct {
	File
	out     *os.File
	buffer  *bufio.Writer
	sum     hash.Hash
	archive *streamcopy.ArchiveWriter
	// subjects are the subjects seen so far in a stream that keeps one message for each.
	subjects map[string]bool
}

func create(dir string, a provision.Asset) (*file, error) {
	f := &file{File: File{Name: a.Stream + ".s2", Asset: a}, sum: sha256.New()}
	var err error
	if f.out, err = os.OpenFile(filepath.Join(dir, f.Name), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600); err != nil {
		return nil, err
	}
	f.buffer = bufio.NewWriterSize(writers{f}, 1<<20)
	f.archive = streamcopy.NewArchive(f.buffer)
	return f, nil
}

// writers writes to a file and to its checksum.
type writers struct{ f *file }

func (w writers) Write(p []byte) (int, error) {
	_, _ = w.f.sum.Write(p) // never fails
	n, err := w.f.out.Write(p)
	w.f.Size += int64(n)
	return n, err
}

// add writes a message that is in the stream.
func (f *file) add(s *streamcopy.Stored) error {
	f.Last = max(f.Last, s.Seq)
	if f.subjects == nil || !f.subjects[s.Subject] {
		f.Messages++
		if f.subjects != nil {
			f.subjects[s.Subject] = true
		}
	}
	f.Bytes += uint64(len(s.Subject) + len(s.Header) + len(s.Data) + messageOverhead)
	if f.First == 0 {
		f.First = s.Seq
	}
	return f.archive.Add(s)
}

// messageOverhead is the approximate overhead of a stored message, in bytes.
const messageOverhead = 30

// finish closes the file.
func (f *file) finish() (File, error) {
	if f.First == 0 {
		f.First = f.Last + 1
	}
	err := errors.Join(f.archive.Close(), f.buffer.Flush(), f.out.Sync(), f.out.Close())
	f.SHA256 = hex.EncodeToString(f.sum.Sum(nil))
	return f.File, err
}

// copyExactly copies a stream that keeps one message for each subject as of one moment. The
// copy continues until no message is left: then every message of the stream was read.
func (f *file) copyExactly(ctx context.Context, b *bus.Bus, see func(*streamcopy.Stored) error) error {
	f.subjects = map[string]bool{}
	read, err := streamcopy.Reach(ctx, b, f.Stream)
	if err != nil {
		return err
	}
	f.MaxBytes, f.MaxAge = read.MaxBytes, read.MaxAge
	for range exactTries {
		err := streamcopy.Copy(ctx, b, f.Stream, f.Last, 0, func(s *streamcopy.Stored) error {
			return errors.Join(f.add(s), see(s))
		})
		if err != nil {
			return err
		}
		now, err := streamcopy.Reach(ctx, b, f.Stream)
		switch {
		case err != nil:
			return err
		case now.Messages == 0 || now.Last == f.Last && now.Messages <= f.Messages:
			f.Last = now.Last
			return nil
		case now.Last == f.Last:
			return errMoved
		}
	}
	return nil // it is being written to all the time, and each time everything that was there was read
}

// exactTries is the number of attempts for a stream that is written to during the copy.
const exactTries = 20
