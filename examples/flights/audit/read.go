package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// Commit is one message of a LOG stream: what one worker appended to the log of
// one space.
type Commit struct {
	Space    string `json:"sp"`
	Runtime  string `json:"rt"`
	Takeover bool   `json:"own"`
	Txs      []Tx   `json:"tx"`

	Seq uint64 `json:"-"` // in its stream
}

// Tx is one transaction of a commit: the run of a handler, which has a receipt, or
// of a computation.
type Tx struct {
	By      string   `json:"by"` // "handle STREAM" or "compute NODE"
	Writes  []Write  `json:"w"`
	Receipt *Receipt `json:"rc"`
}

// Receipt records how an event ended.
type Receipt struct {
	Event   string          `json:"ev"`
	Outcome string          `json:"o"` // "handled", "failed" or "refused"
	Result  json.RawMessage `json:"r"`
	Error   string          `json:"err"`
}

// Stored is everything that a deployment has stored.
type Stored struct {
	// Commits in log order, partition after partition. A space lies in one
	// partition, so its commits are in their order.
	Commits []Commit
	// Docs are the documents of the STATE buckets, by space and name.
	Docs map[string]map[string]json.RawMessage
	// Partitions is the number of partitions.
	Partitions int
}

// Read reads a deployment. prefix is that of its subjects, "settle" by default;
// the names of streams and buckets begin with it in capitals.
func Read(ctx context.Context, js jetstream.JetStream, prefix string) (*Stored, error) {
	prefix = strings.ToUpper(prefix)
	s := &Stored{Docs: map[string]map[string]json.RawMessage{}}
	for ; ; s.Partitions++ {
		log := prefix + "_LOG_" + strconv.Itoa(s.Partitions)
		stream, err := js.Stream(ctx, log)
		if errors.Is(err, jetstream.ErrStreamNotFound) && s.Partitions > 0 {
			return s, nil
		}
		if err != nil {
			return nil, fmt.Errorf("open stream %s: %w", log, err)
		}
		if err := s.readLog(ctx, stream); err != nil {
			return nil, fmt.Errorf("read stream %s: %w", log, err)
		}
		state := prefix + "_STATE_" + strconv.Itoa(s.Partitions)
		if err := s.readState(ctx, js, state); err != nil {
			return nil, fmt.Errorf("read bucket %s: %w", state, err)
		}
	}
}

// readLog reads a LOG stream from its first message to its last.
func (s *Stored) readLog(ctx context.Context, stream jetstream.Stream) error {
	if stream.CachedInfo().State.Msgs == 0 {
		return nil
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer messages.Stop()
	defer context.AfterFunc(ctx, messages.Stop)()
	for {
		m, err := messages.Next()
		if err != nil {
			return errors.Join(ctx.Err(), err)
		}
		at, err := m.Metadata()
		if err != nil {
			return err
		}
		c := Commit{Seq: at.Sequence.Stream}
		if err := json.Unmarshal(m.Data(), &c); err != nil {
			return fmt.Errorf("message %d: %w", c.Seq, err)
		}
		s.Commits = append(s.Commits, c)
		if at.NumPending == 0 {
			return nil
		}
	}
}

// readState reads the documents of a STATE bucket. Its keys are SPACE.DOCUMENT;
// those with a '=' are Settle's own notes.
func (s *Stored) readState(ctx context.Context, js jetstream.JetStream, name string) error {
	bucket, err := js.KeyValue(ctx, name)
	if err != nil {
		return err
	}
	watch, err := bucket.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return err
	}
	defer func() { _ = watch.Stop() }() // it ends with the connection at the latest
	for {
		select {
		case entry, ok := <-watch.Updates():
			if !ok {
				return errors.New("the watch ended before all keys were read")
			}
			if entry == nil { // that was all
				return nil
			}
			if space, doc, ok := strings.Cut(entry.Key(), "."); ok && !strings.Contains(entry.Key(), "=") {
				s.put(space, doc, entry.Value())
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Stored) put(space, doc string, value []byte) {
	if s.Docs[space] == nil {
		s.Docs[space] = map[string]json.RawMessage{}
	}
	s.Docs[space][doc] = value
}
