package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// GetRequest requests messages of a stream (ADR-31).
type GetRequest struct {
	Seq       uint64   `json:"seq,omitempty"`          // from here on
	LastFor   string   `json:"last_by_subj,omitempty"` // the last one of a subject
	NextFor   string   `json:"next_by_subj,omitempty"` // those of a subject or pattern
	MultiLast []string `json:"multi_last,omitempty"`   // the last ones of all subjects of a pattern
	Batch     int      `json:"batch,omitempty"`
	MaxBytes  int      `json:"max_bytes,omitempty"`
}

// StoredMsg is a message as a stream holds it.
type StoredMsg struct {
	Subject string
	Seq     uint64
	Time    time.Time // when it was stored, by the server's clock
	Header  nats.Header
	Data    []byte
}

// LeaderGet asks the stream's leader for one message. The leader may not
// know yet that it is deposed, so an answer may be out of date; but
// every message in it has been committed. errNoMessage means that it has none.
func (l *Link) LeaderGet(ctx context.Context, stream string, req GetRequest) (StoredMsg, error) {
	var found StoredMsg
	err := l.Persist(ctx, func(ctx context.Context) error {
		var resp struct {
			Error   *jetstream.APIError `json:"error"`
			Message *storedMessage      `json:"message"`
		}
		if err := l.Request(ctx, "STREAM.MSG.GET."+stream, req, &resp); err != nil {
			return err
		}
		if resp.Error != nil {
			return APIError(resp.Error)
		}
		if resp.Message == nil {
			return fmt.Errorf("%w: answer without a message", ErrTransient)
		}
		found = decodeStored(resp.Message)
		return nil
	})
	if err != nil {
		return StoredMsg{}, fmt.Errorf("read stream %s: %w", stream, err)
	}
	return found, nil
}

func decodeStored(m *storedMessage) StoredMsg {
	found := StoredMsg{Subject: m.Subject, Seq: m.Sequence, Time: m.Time.UTC(), Data: m.Data}
	if len(m.Header) == 0 {
		return found
	}
	// No program of Settle writes malformed headers. The message is read as one without headers, and does not
	// keep others from being read.
	if h, err := nats.DecodeHeadersMsg(m.Header); err == nil {
		found.Header = h
	}
	return found
}

// Request makes one request to the JetStream API.
func (l *Link) Request(ctx context.Context, subject string, req, resp any) error {
	body, err := json.Marshal(req)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, l.AckTimeout)
	defer cancel()
	m, err := l.NC.RequestWithContext(ctx, l.API+subject, body)
	if err != nil {
		return Transient(err)
	}
	if err := json.Unmarshal(m.Data, resp); err != nil {
		return fmt.Errorf("answer to %s: %w", subject, err)
	}
	return nil
}
