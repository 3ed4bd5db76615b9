package streamcopy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats-server/v2/server/archive"
	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
)

// StreamReach is the extent of a stream, and its limits.
type StreamReach struct {
	First, Last uint64
	Messages    uint64
	Bytes       uint64
	MaxBytes    int64
	MaxAge      time.Duration
}

// Reach asks the stream's leader for the extent of the stream.
func Reach(ctx context.Context, b *bus.Bus, stream string) (StreamReach, error) {
	info, err := b.Streams().StreamInfo(ctx, stream)
	if err != nil {
		return StreamReach{}, fmt.Errorf("state of stream %s: %w", stream, err)
	}
	s := &info.State
	return StreamReach{First: s.FirstSeq, Last: s.LastSeq, Messages: s.Msgs, Bytes: s.Bytes, MaxBytes: info.Config.MaxBytes, MaxAge: info.Config.MaxAge}, nil
}

// Stored is a message with everything that a stream stores of it.
type Stored struct {
	Subject string
	Seq     uint64
	Time    time.Time
	Header  []byte // as it is on the wire; nil if there is none
	Data    []byte
	// Expected is the sequence after which a commit was appended, and Reflects the log
	// sequence of an item in a STATE bucket.
	Expected, Reflects uint64
}

// Copy delivers the messages of a stream after a sequence, in order, up to the sequence
// upTo, or, if that is 0, up to a moment at which no further message existed. A message that was
// replaced during the copy may be delivered in addition to its replacement. An error
// of take ends the copy.
func Copy(ctx context.Context, b *bus.Bus, stream string, after, upTo uint64, take func(*Stored) error) error {
	if upTo > 0 && after >= upTo {
		return nil
	}
	within, end := context.WithCancel(ctx)
	defer end()
	var failed error
	complete := false
	t := wire.Tail{Stream: stream, After: after, Reached: func() { complete = true; end() }}
	err := b.Streams().Follow(within, t, func(d wire.Delivery) {
		switch {
		case complete || failed != nil:
			return
		case upTo > 0 && d.Seq > upTo:
			complete = true
		default:
			failed = take(storedOf(d))
			complete = failed == nil && d.Seq == upTo
		}
		if complete || failed != nil {
			end()
		}
	})
	switch {
	case failed != nil:
		return failed
	case complete:
		return nil
	}
	return fmt.Errorf("copy stream %s: %w", stream, err)
}

func storedOf(d wire.Delivery) *Stored {
	return &Stored{
		Subject: d.Subject, Seq: d.Seq, Time: d.Time, Header: wireHeader(d.Header), Data: d.Data,
		Expected: wire.Number(d.Header, wire.HeaderExpect), Reflects: wire.Number(d.Header, wire.HeaderSeq),
	}
}

// wireHeader returns headers as they are sent and stored.
func wireHeader(h nats.Header) []byte {
	if len(h) == 0 {
		return nil
	}
	var keys []string
	for k := range h { // any order: sorted below
		keys = append(keys, k)
	}
	slices.Sort(keys)
	b := []byte("NATS/1.0\r\n")
	for _, k := range keys {
		for _, v := range h[k] {
			b = append(append(append(append(b, k...), ": "...), v...), "\r\n"...)
		}
	}
	return append(b, "\r\n"...)
}

// SpaceOfCommit returns the space of a message of a LOG stream.
func SpaceOfCommit(s *Stored) string { return wire.LastToken(s.Subject) }

// EventOf returns the event of a message of a LANE stream, and false for a message that is none.
func EventOf(s *Stored) (m model.Message, ok bool) {
	m, _, ok = wire.ParseEvent(s.Subject)
	return m, ok
}

// MarkOf returns the space whose mark a message of a STATE bucket is, "" if it is none.
func MarkOf(b *bus.Bus, partition int, s *Stored) string {
	key := strings.TrimPrefix(s.Subject, wire.BucketSubject(b.Streams().Names.StateBucket(partition), ""))
	space, found := strings.CutSuffix(key, "."+wire.MarkKey)
	if !found {
		return ""
	}
	return space
}

// PositionOf returns the name of the position that a message of a STATE bucket is, "" if it is none.
func PositionOf(b *bus.Bus, partition int, s *Stored) string {
	name, found := strings.CutPrefix(s.Subject, wire.BucketSubject(b.Streams().Names.StateBucket(partition), wire.PositionPrefix))
	if !found {
		return ""
	}
	return name
}

// ArchiveWriter writes messages in the format of the server's own snapshots, compressed, without the state
// of the stream at the beginning and the mark at the end.
type ArchiveWriter struct {
	packed *s2.Writer
	w      *archive.Writer
}

// NewArchive returns a writer onto w.
func NewArchive(w io.Writer) *ArchiveWriter {
	packed := s2.NewWriter(w, s2.WriterConcurrency(1))
	return &ArchiveWriter{packed: packed, w: archive.NewWriter(packed)}
}

// Add writes a message.
func (a *ArchiveWriter) Add(s *Stored) error {
	h := archive.Header{Name: s.Subject, HeaderSize: int64(len(s.Header)), PayloadSize: int64(len(s.Data)), Timestamp: s.Time.UnixNano(), Sequence: s.Seq}
	if err := a.w.WriteHeader(&h); err != nil {
		return err
	}
	if _, err := a.w.Write(s.Header); err != nil {
		return err
	}
	_, err := a.w.Write(s.Data)
	return err
}

// Close writes buffered data.
func (a *ArchiveWriter) Close() error {
	return errors.Join(a.w.Close(), a.packed.Close())
}

// ReadArchive delivers the messages of an archive. The bytes of a message are only valid until
// take returns.
func ReadArchive(r io.Reader, take func(*Stored) error) error {
	in := archive.NewReader(s2.NewReader(r))
	var buf []byte
	for {
		h, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read archive: %w", err)
		case h.HeaderSize < 0 || h.PayloadSize < 0 || h.HeaderSize > maxArchived || h.PayloadSize > maxArchived:
			return fmt.Errorf("read archive: message %d has an impossible size", h.Sequence)
		}
		size := int(h.HeaderSize + h.PayloadSize)
		buf = slices.Grow(buf[:0], size)[:size]
		if _, err := io.ReadFull(in, buf); err != nil {
			return fmt.Errorf("read archive: message %d: %w", h.Sequence, err)
		}
		s := Stored{Subject: h.Name, Seq: h.Sequence, Time: time.Unix(0, h.Timestamp), Header: buf[:h.HeaderSize], Data: buf[h.HeaderSize:]}
		if err := take(&s); err != nil {
			return err
		}
	}
}

// maxArchived is more than the largest message of a server.
const maxArchived = 128 << 20
