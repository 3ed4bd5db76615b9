package wire

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// StreamInfo asks the stream's leader; errNoStream if there is no such stream.
func (l *Link) StreamInfo(ctx context.Context, name string, opts ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	return l.AskStream(ctx, l.Timing.Absent, name, opts...)
}

// AskStream asks the stream's leader; errNoStream if there is no such stream. A cluster must report that
// for as long as absent before it is believed: its leader answers for all servers, and a new
// leader, or one that was just restarted, may still have to apply earlier decisions.
func (l *Link) AskStream(ctx context.Context, absent time.Duration, name string, opts ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	if l.NC.ConnectedClusterName() == "" {
		absent = 0
	}
	var info *jetstream.StreamInfo
	believed := time.Now().Add(absent)
	err := l.Persist(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, l.AckTimeout)
		defer cancel()
		stream, err := l.JS.Stream(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) && time.Now().Before(believed) {
			return Transient(ErrNoStream)
		}
		if err != nil {
			return APITransient(err)
		}
		info = stream.CachedInfo()
		if len(opts) > 0 {
			info, err = stream.Info(ctx, opts...)
		}
		return APITransient(err)
	})
	if err != nil {
		return nil, err
	}
	l.Clustered.Store(ClusterOf(info) != "")
	return info, nil
}

// APITransient classifies errors of the client library by whether another try may
// succeed.
func APITransient(err error) error {
	var api *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return ErrNoStream
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount), errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("%w: %w; start the server with -js, or enable JetStream for the account, or, if this account imports the streams, use a user of the role backup, operator or administrator", ErrNoJetStream, err)
	case errors.As(err, &api):
		if errors.Is(APIError(api), ErrTransient) {
			return Transient(err)
		}
		return err
	}
	return Transient(err)
}

// IsCode reports whether err is that error of the JetStream API.
func IsCode(err error, code jetstream.ErrorCode) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == code
}

// ClusterOf returns the name of the stream's cluster, "" on a single server.
func ClusterOf(info *jetstream.StreamInfo) string {
	if info.Cluster == nil {
		return ""
	}
	return info.Cluster.Name
}

// Subjects returns the subjects of a stream that match a pattern, in as many pages as necessary. Pages may be
// of different times, so that a subject that was added in between may be missing.
func (l *Link) Subjects(ctx context.Context, stream, pattern string) (map[string]uint64, error) {
	all := map[string]uint64{}
	for {
		var page struct {
			Error *jetstream.APIError   `json:"error"`
			Total int                   `json:"total"`
			State jetstream.StreamState `json:"state"`
		}
		question := struct {
			Filter string `json:"subjects_filter"`
			Offset int    `json:"offset,omitempty"`
		}{pattern, len(all)}
		err := l.Persist(ctx, func(ctx context.Context) error {
			page.Error, page.Total, page.State = nil, 0, jetstream.StreamState{}
			if err := l.Request(ctx, "STREAM.INFO."+stream, question, &page); err != nil {
				return err
			}
			if page.Error != nil {
				return APIError(page.Error)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("subjects of stream %s: %w", stream, err)
		}
		before := len(all)
		for subject, n := range page.State.Subjects { // any order: into a map
			all[subject] = n
		}
		if len(all) >= page.Total || len(all) == before {
			return all, nil
		}
	}
}

// LastBefore returns the last sequence in [first, end] up to which everything was stored
// before a time; first-1 if there is none.
func (l *Link) LastBefore(ctx context.Context, stream string, first, end uint64, before time.Time) (uint64, error) {
	low, high := first-1, end+1 // old enough up to low, and not from high on
	for low+1 < high {
		mid := low + (high-low)/2
		m, err := l.LeaderGet(ctx, stream, GetRequest{Seq: mid, NextFor: ">"})
		switch {
		case errors.Is(err, ErrNoMessage):
			high = mid // the leader lags behind the one that was asked first
		case err != nil:
			return 0, err
		case m.Time.Before(before):
			low = mid
		default:
			high = mid
		}
	}
	return low, nil
}

func (l *Link) PurgeTo(ctx context.Context, name string, last uint64) error {
	ctx, cancel := context.WithTimeout(ctx, l.AckTimeout)
	defer cancel()
	stream, err := l.JS.Stream(ctx, name)
	if err != nil {
		return APITransient(err)
	}
	return APITransient(stream.Purge(ctx, jetstream.WithPurgeSequence(last+1)))
}

// PurgeSubject makes the server remove messages of one subject.
func (l *Link) PurgeSubject(ctx context.Context, stream string, req *PurgeRequest) error {
	var resp struct {
		Error   *jetstream.APIError `json:"error"`
		Success bool                `json:"success"`
	}
	err := l.Request(ctx, "STREAM.PURGE."+stream, req, &resp)
	switch {
	case err != nil:
		return err
	case resp.Error != nil:
		return APIError(resp.Error)
	case !resp.Success:
		return errors.New("the server reports no success")
	}
	return nil
}

// PurgeRequest asks the JetStream API to remove the messages of a subject below a sequence.
type PurgeRequest struct {
	Sequence uint64 `json:"seq,omitempty"`
	Subject  string `json:"filter,omitempty"`
}
