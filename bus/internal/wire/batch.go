package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/model"
)

// PageBytes limits one batch, so that a page is a few commits of the largest kind
// or thousands of small ones.
const PageBytes = 4 << 20

// pageLimit limits it in messages, and multiLastLimit is the server's own limit of
// the answer to a pattern.
const (
	PageLimit      = 512
	multiLastLimit = 1024
)

// ErrTooMany is the server's answer when a pattern has more than 1024 subjects.
var ErrTooMany = errors.New("too many results for one request")

// BatchGet reads a batch of messages by a direct get (ADR-31). Any replica may
// answer, so the last message found need not be the end of the stream; the messages are in
// order and without gaps. more reports that the batch ended before the replica's end.
func (l *Link) BatchGet(ctx context.Context, stream string, req GetRequest) (found []StoredMsg, more bool, err error) {
	err = l.Persist(ctx, func(ctx context.Context) error {
		var pending uint64
		found, pending, err = l.batchOnce(ctx, stream, req)
		more = pending > 0
		if errors.Is(err, errSilentReplicas) {
			if _, info := l.StreamInfo(ctx, stream); errors.Is(info, ErrNoStream) {
				return info
			}
		}
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("read stream %s: %w", stream, err)
	}
	return found, more, nil
}

// batchOnce returns the messages of a batch, and how many more there were.
func (l *Link) batchOnce(ctx context.Context, stream string, req GetRequest) ([]StoredMsg, uint64, error) {
	body, err := json.Marshal(req)
	if err != nil {
		return nil, 0, err
	}
	inbox, replies, end, err := l.batches.open(l.NC, req.most()+1)
	if err != nil {
		return nil, 0, Transient(err)
	}
	defer end()
	if err := l.NC.PublishRequest(l.API+"DIRECT.GET."+stream, inbox, body); err != nil {
		return nil, 0, Transient(err)
	}
	return l.collect(ctx, replies, len(req.MultiLast) > 0)
}

// most returns how many messages may answer the request, besides the one that ends the batch.
func (r *GetRequest) most() int {
	if slices.ContainsFunc(r.MultiLast, func(subject string) bool { return strings.ContainsAny(subject, "*>") }) {
		return multiLastLimit
	}
	return max(r.Batch, len(r.MultiLast))
}

// collect receives a batch. The server numbers each message's predecessor within
// the batch, so a lost one is noticed. multi means that the request was for the last
// messages of all subjects of a pattern.
func (l *Link) collect(ctx context.Context, replies <-chan *nats.Msg, multi bool) (found []StoredMsg, pending uint64, err error) {
	patience := time.NewTimer(l.AckTimeout)
	defer patience.Stop()
	var last uint64
	for {
		var m *nats.Msg
		select {
		case m = <-replies:
			patience.Reset(l.AckTimeout)
		case <-patience.C:
			return nil, 0, fmt.Errorf("%w: no answer within %v", ErrTransient, l.AckTimeout)
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		case <-l.Stopped:
			return nil, 0, model.ErrStopped
		}
		seq := AddedNumber(m.Header, HeaderSequence)
		if seq == 0 { // no stored message: only those have a sequence
			return endOfBatch(found, last, m.Header, multi)
		}
		if AddedNumber(m.Header, HeaderLastSequence) != last {
			return nil, 0, fmt.Errorf("%w: a part of a batch was lost", ErrTransient)
		}
		last = seq
		found = append(found, StoredMsg{
			Subject: added(m.Header, headerSubject), Seq: seq, Time: AddedTime(m.Header), Header: m.Header, Data: m.Data,
		})
	}
}

// errNoHeaders: the headers of a stored message are malformed, and with them those that the server adds to it.
var errNoHeaders = errors.New("a message has no headers that can be read")

// errSilentReplicas: no server answers for the stream, which is missing, or has just lost its leader.
var errSilentReplicas = errors.New("no replica of the stream answers")

// NoResults describes the 404 for a pattern that matches no subject with a message. The other 404, "Message
// Not Found", for a pattern means that a message could not be loaded that existed when the server listed
// them: it may have been replaced since, and the answer is incomplete. For a batch after a sequence, that one
// means that there are no messages.
const NoResults = "No Results"

// endOfBatch reads the message that ends a batch.
func endOfBatch(found []StoredMsg, last uint64, h nats.Header, multi bool) ([]StoredMsg, uint64, error) {
	status := Header(h, HeaderStatus)
	switch status {
	case "":
		return nil, 0, fmt.Errorf("%w: %w", ErrTooMany, errNoHeaders)
	case "204":
		if AddedNumber(h, HeaderLastSequence) != last {
			return nil, 0, fmt.Errorf("%w: the end of a batch was lost", ErrTransient)
		}
		return found, AddedNumber(h, headerNumPending), nil
	case "404":
		if why := Header(h, HeaderDescription); len(found) > 0 || multi && why != NoResults {
			return nil, 0, fmt.Errorf("%w: a batch ended after %d messages: %s", ErrTransient, len(found), why)
		}
		return nil, 0, nil
	case "413":
		return nil, 0, ErrTooMany
	case "503":
		return nil, 0, fmt.Errorf("%w: %w", ErrTransient, errSilentReplicas)
	}
	return nil, 0, fmt.Errorf("status %s %s", status, Header(h, HeaderDescription))
}

// ReadPages reads up to limit messages that match the pattern after a sequence, in
// as many batches as necessary. The pattern "" matches all of them.
func (l *Link) ReadPages(ctx context.Context, stream, pattern string, after uint64, limit int) ([]StoredMsg, error) {
	var all []StoredMsg
	for len(all) < limit {
		page, more, err := l.BatchGet(ctx, stream, GetRequest{
			Seq: after + 1, NextFor: pattern, Batch: min(limit-len(all), PageLimit), MaxBytes: PageBytes,
		})
		if errors.Is(err, errNoHeaders) {
			page, more, err = l.readOneByOne(ctx, stream, pattern, after, min(limit-len(all), oneByOne))
		}
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if !more || len(page) == 0 {
			return all, nil
		}
		after = page[len(page)-1].Seq
	}
	return all, nil
}

// CountFrom counts the messages that match the pattern from a sequence on. It reads one of them: with that, the server says how many more
// there are. Any replica may answer.
func (l *Link) CountFrom(ctx context.Context, stream, pattern string, from uint64) (n int, err error) {
	err = l.Persist(ctx, func(ctx context.Context) error {
		found, pending, err := l.batchOnce(ctx, stream, GetRequest{Seq: from, NextFor: pattern, Batch: 1})
		n = len(found) + int(pending)
		return err
	})
	if errors.Is(err, errNoHeaders) { // of the first one
		m, err := l.LeaderGet(ctx, stream, GetRequest{Seq: from, NextFor: pattern})
		if err != nil {
			return 0, err
		}
		n, err = l.CountFrom(ctx, stream, pattern, m.Seq+1)
		return n + 1, err
	}
	if err != nil {
		return 0, fmt.Errorf("count messages of stream %s: %w", stream, err)
	}
	return n, nil
}

// oneByOne is how many messages are read one by one before a batch is tried again.
const oneByOne = 8

// readOneByOne is ReadPages for messages among which is one with malformed headers: only the leader's answer to a request
// for a single message does not depend on them.
func (l *Link) readOneByOne(ctx context.Context, stream, pattern string, after uint64, limit int) (found []StoredMsg, more bool, err error) {
	for len(found) < limit {
		m, err := l.LeaderGet(ctx, stream, GetRequest{Seq: after + 1, NextFor: cmp.Or(pattern, ">")})
		switch {
		case errors.Is(err, ErrNoMessage):
			return found, false, nil
		case err != nil:
			return nil, false, err
		}
		found, after = append(found, m), m.Seq
	}
	return found, true, nil
}

// ReadAll reads the one message of each subject of a pattern that matches few.
func (l *Link) ReadAll(ctx context.Context, stream, pattern string) ([]StoredMsg, error) {
	found, more, err := l.BatchGet(ctx, stream, GetRequest{MultiLast: []string{pattern}, MaxBytes: StateBytes})
	if errors.Is(err, errNoHeaders) {
		found, more, err = l.readOneByOne(ctx, stream, pattern, 0, multiLastLimit)
		found = Latest(found)
	}
	if err == nil && more {
		err = ErrTooMany
	}
	return found, err
}

// ReadNamed reads the last messages of subjects, in halves if they are too large for one answer.
func (l *Link) ReadNamed(ctx context.Context, stream string, subjects []string) ([]StoredMsg, error) {
	if room := l.MaxPayload() / 2; len(strings.Join(subjects, `","`)) > room && len(subjects) > 1 {
		return l.readHalves(ctx, stream, subjects)
	}
	found, more, err := l.BatchGet(ctx, stream, GetRequest{MultiLast: subjects, MaxBytes: StateBytes})
	if (err == nil && more || errors.Is(err, errNoHeaders)) && len(subjects) > 1 {
		return l.readHalves(ctx, stream, subjects)
	}
	if errors.Is(err, errNoHeaders) {
		found, _, err = l.readOneByOne(ctx, stream, subjects[0], 0, multiLastLimit)
		found = Latest(found)
	}
	return found, err
}

func (l *Link) readHalves(ctx context.Context, stream string, subjects []string) ([]StoredMsg, error) {
	half := len(subjects) / 2
	first, err := l.ReadNamed(ctx, stream, subjects[:half])
	if err != nil {
		return nil, err
	}
	rest, err := l.ReadNamed(ctx, stream, subjects[half:])
	return append(first, rest...), err
}

// StateBytes limits what the server sends at once; it
// disconnects clients with 64 MiB of unread data.
const StateBytes = 16 << 20
