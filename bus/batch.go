package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/model"
)

// pageBytes limits one batch, so that a page is a few commits of the largest kind
// or thousands of small ones.
const pageBytes = 4 << 20

// pageLimit limits it in messages, and multiLastLimit is the server's own limit of
// the answer to a pattern.
const (
	pageLimit      = 512
	multiLastLimit = 1024
)

// errTooMany is the server's answer when a pattern has more than 1024 subjects.
var errTooMany = errors.New("too many results for one request")

// batchGet reads a batch of messages by a direct get (ADR-31). Any replica may
// answer, so the last message found need not be the end of the stream; the messages are in
// order and without gaps. more reports that the batch ended before the replica's end.
func (l *link) batchGet(ctx context.Context, stream string, req getRequest) (found []storedMsg, more bool, err error) {
	err = l.persist(ctx, func(ctx context.Context) error {
		found, more, err = l.batchOnce(ctx, stream, req)
		if errors.Is(err, errSilentReplicas) {
			if _, info := l.streamInfo(ctx, stream); errors.Is(info, errNoStream) {
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

func (l *link) batchOnce(ctx context.Context, stream string, req getRequest) ([]storedMsg, bool, error) {
	body, err := json.Marshal(req)
	if err != nil {
		return nil, false, err
	}
	// Room for every message that the request allows, so none is ever dropped.
	replies := make(chan *nats.Msg, max(req.Batch, min(len(req.MultiLast), 1)*multiLastLimit)+1)
	inbox := l.nc.NewInbox()
	sub, err := l.nc.ChanSubscribe(inbox, replies)
	if err != nil {
		return nil, false, transient(err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only if the connection is closed
	if err := l.nc.PublishRequest(l.api+"DIRECT.GET."+stream, inbox, body); err != nil {
		return nil, false, transient(err)
	}
	return l.collect(ctx, replies, len(req.MultiLast) > 0)
}

// collect receives a batch. The server numbers each message's predecessor within
// the batch, so a lost one is noticed. multi means that the request was for the last
// messages of all subjects of a pattern.
func (l *link) collect(ctx context.Context, replies <-chan *nats.Msg, multi bool) (found []storedMsg, more bool, err error) {
	patience := time.NewTimer(l.ackTimeout)
	defer patience.Stop()
	var last uint64
	for {
		var m *nats.Msg
		select {
		case m = <-replies:
			patience.Reset(l.ackTimeout)
		case <-patience.C:
			return nil, false, fmt.Errorf("%w: no answer within %v", errTransient, l.ackTimeout)
		case <-ctx.Done():
			return nil, false, ctx.Err()
		case <-l.stopped:
			return nil, false, model.ErrStopped
		}
		seq := addedNumber(m.Header, headerSequence)
		if seq == 0 { // no stored message: only those have a sequence
			return endOfBatch(found, last, m.Header, multi)
		}
		if addedNumber(m.Header, headerLastSequence) != last {
			return nil, false, fmt.Errorf("%w: a part of a batch was lost", errTransient)
		}
		last = seq
		found = append(found, storedMsg{
			Subject: added(m.Header, headerSubject), Seq: seq, Time: addedTime(m.Header), Header: m.Header, Data: m.Data,
		})
	}
}

// errSilentReplicas: no server answers for the stream, which is missing, or has just lost its leader.
var errSilentReplicas = errors.New("no replica of the stream answers")

// noResults describes the 404 for a pattern of which no subject has a message. The other 404,
// "Message Not Found", for a pattern means that a message could not be loaded that existed
// when the server listed them: it may have been replaced since, and the answer is incomplete.
// For a batch after a sequence, that one means that there are no messages.
const noResults = "No Results"

// endOfBatch reads the message that ends a batch.
func endOfBatch(found []storedMsg, last uint64, h nats.Header, multi bool) ([]storedMsg, bool, error) {
	status := header(h, headerStatus)
	switch status {
	case "204":
		if addedNumber(h, headerLastSequence) != last {
			return nil, false, fmt.Errorf("%w: the end of a batch was lost", errTransient)
		}
		return found, addedNumber(h, headerNumPending) > 0, nil
	case "404":
		if why := header(h, headerDescription); len(found) > 0 || multi && why != noResults {
			return nil, false, fmt.Errorf("%w: a batch ended after %d messages: %s", errTransient, len(found), why)
		}
		return nil, false, nil
	case "413":
		return nil, false, errTooMany
	case "503":
		return nil, false, fmt.Errorf("%w: %w", errTransient, errSilentReplicas)
	}
	return nil, false, fmt.Errorf("status %s %s", status, header(h, headerDescription))
}

// readPages reads up to limit messages that match the pattern after a sequence, in
// as many batches as necessary. The pattern "" matches all of them.
func (l *link) readPages(ctx context.Context, stream, pattern string, after uint64, limit int) ([]storedMsg, error) {
	var all []storedMsg
	for len(all) < limit {
		page, more, err := l.batchGet(ctx, stream, getRequest{
			Seq: after + 1, NextFor: pattern, Batch: min(limit-len(all), pageLimit), MaxBytes: pageBytes,
		})
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

// readAll reads the one message of each subject of a pattern, of which there are few.
func (l *link) readAll(ctx context.Context, stream, pattern string) ([]storedMsg, error) {
	found, more, err := l.batchGet(ctx, stream, getRequest{MultiLast: []string{pattern}, MaxBytes: stateBytes})
	if err == nil && more {
		err = errTooMany
	}
	return found, err
}

// readNamed reads the last messages of subjects, in halves if they are too large for one answer.
func (l *link) readNamed(ctx context.Context, stream string, subjects []string) ([]storedMsg, error) {
	if room := l.MaxPayload() / 2; len(strings.Join(subjects, `","`)) > room && len(subjects) > 1 {
		return l.readHalves(ctx, stream, subjects)
	}
	found, more, err := l.batchGet(ctx, stream, getRequest{MultiLast: subjects, MaxBytes: stateBytes})
	if err == nil && more && len(subjects) > 1 {
		return l.readHalves(ctx, stream, subjects)
	}
	return found, err
}

func (l *link) readHalves(ctx context.Context, stream string, subjects []string) ([]storedMsg, error) {
	half := len(subjects) / 2
	first, err := l.readNamed(ctx, stream, subjects[:half])
	if err != nil {
		return nil, err
	}
	rest, err := l.readNamed(ctx, stream, subjects[half:])
	return append(first, rest...), err
}

// stateBytes limits what the server sends at once; it
// disconnects clients with 64 MiB of unread data.
const stateBytes = 16 << 20
