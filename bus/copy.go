package bus

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

	"github.com/settlehq/settle/model"
)

// Components of a deployment: the purpose of each of its streams.
const (
	ComponentLane     = "lane"
	ComponentLog      = "log"
	ComponentState    = "state"
	ComponentWorkers  = "workers"
	ComponentDead     = "dead"
	ComponentPrograms = "programs"
)

// Asset is one stream of a deployment.
type Asset struct {
	Stream    string `json:"stream"`
	Component string `json:"component"`
	// Partition is AllPartitions for a stream that the partitions share.
	Partition int `json:"partition"`
}

// AllPartitions is the partition number of a shared stream.
const AllPartitions = -1

// Assets returns the streams of the deployment.
func (pr *provisioner) Assets() []Asset { return AssetsOf(pr.names.prefix, pr.Partitions()) }

// AssetsOf returns the streams of a deployment, those of one partition next to each other.
func AssetsOf(prefix string, partitions int) []Asset {
	n := newNames(prefix)
	all := []Asset{
		{bucketStream(n.workersBucket()), ComponentWorkers, AllPartitions},
		{n.deadStream(), ComponentDead, AllPartitions},
		{bucketStream(n.programsBucket()), ComponentPrograms, AllPartitions},
	}
	for p := range partitions {
		all = append(all,
			Asset{bucketStream(n.stateBucket(p)), ComponentState, p}, Asset{n.logStream(p), ComponentLog, p}, Asset{n.laneStream(p), ComponentLane, p})
	}
	return all
}

// StreamReach is the extent of a stream, and its limits.
type StreamReach struct {
	First, Last uint64
	Messages    uint64
	Bytes       uint64
	MaxBytes    int64
	MaxAge      time.Duration
}

// copier copies streams as they are stored.
type copier struct{ *streams }

// Reach asks the stream's leader for the extent of the stream.
func (c *copier) Reach(ctx context.Context, stream string) (StreamReach, error) {
	info, err := c.streamInfo(ctx, stream)
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

// CopyStream delivers the messages of a stream after a sequence, in order, up to the sequence
// upTo, or, if that is 0, up to a moment at which no further message existed. A message that was
// replaced during the copy may be delivered in addition to its replacement. An error
// of take ends the copy.
func (c *copier) CopyStream(ctx context.Context, stream string, after, upTo uint64, take func(*Stored) error) error {
	if upTo > 0 && after >= upTo {
		return nil
	}
	within, end := context.WithCancel(ctx)
	defer end()
	var failed error
	complete := false
	t := tail{stream: stream, after: after, reached: func() { complete = true; end() }}
	err := c.follow(within, t, func(d delivery) {
		switch {
		case complete || failed != nil:
			return
		case upTo > 0 && d.seq > upTo:
			complete = true
		default:
			failed = take(storedOf(d))
			complete = failed == nil && d.seq == upTo
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

func storedOf(d delivery) *Stored {
	return &Stored{
		Subject: d.Subject, Seq: d.seq, Time: d.time, Header: wireHeader(d.Header), Data: d.Data,
		Expected: number(d.Header, headerExpect), Reflects: number(d.Header, headerSeq),
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
func SpaceOfCommit(s *Stored) string { return lastToken(s.Subject) }

// EventOf returns the event of a message of a LANE stream, and false for a message that is none.
func EventOf(s *Stored) (m model.Message, ok bool) { return parseEvent(s.Subject) }

// MarkOf returns the space whose mark a message of a STATE bucket is, "" if it is none.
func (c *copier) MarkOf(partition int, s *Stored) string {
	key := strings.TrimPrefix(s.Subject, bucketSubject(c.names.stateBucket(partition), ""))
	space, found := strings.CutSuffix(key, "."+markKey)
	if !found {
		return ""
	}
	return space
}

// PositionOf returns the name of the position that a message of a STATE bucket is, "" if it is none.
func (c *copier) PositionOf(partition int, s *Stored) string {
	name, found := strings.CutPrefix(s.Subject, bucketSubject(c.names.stateBucket(partition), positionPrefix))
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
