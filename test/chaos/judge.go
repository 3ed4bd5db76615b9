//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/test/chaos/history"
)

// reading is the input of a checker: the streams of a deployment, and the records of clients.
type reading struct {
	c   *chaos
	bus *bus.Bus
	mon *monitor
	// before bounds the records of clients, to judge a past state; zero for no bound. With a bound,
	// deliveries of watches are ignored.
	before time.Time
	check  *history.Checker
	left   uint64 // commits in the streams
}

// judge passes everything to the checker.
func (c *chaos) judge(ctx context.Context) (err error) {
	r := reading{c: c, bus: c.bus, mon: c.mon}
	if c.check, err = r.judge(ctx); err == nil {
		c.left = r.left
	}
	return err
}

func (r *reading) judge(ctx context.Context) (*history.Checker, error) {
	c, w := r.c, r.c.o.workload()
	r.check = history.New(w, c.o.Partitions)
	r.check.Skew = 2 * c.o.Skew // two different clocks are involved
	for _, o := range c.watch.list {
		if o.way != inGo {
			r.check.ShowsNewest(o.number)
		}
	}
	r.check.Killed(c.nem.kills)
	r.check.Losses = c.nem.losses
	if err := c.rec.tell(r.check, w, r.before); err != nil {
		return nil, fmt.Errorf("read the clients' records: %w", err)
	}
	for p := range c.o.Partitions {
		err := r.stream(ctx, laneName(p), func(m jetstream.Msg, seq uint64, _ time.Time) {
			at := strings.Split(m.Subject(), ".")
			r.check.Lane(history.LaneMessage{
				Seq: seq, Space: at[len(at)-3], Stream: at[len(at)-2], ID: at[len(at)-1],
				Invalid: m.Headers().Get("Settle-Invalid") != "",
			})
		})
		if err != nil {
			return nil, err
		}
	}
	saved := r.check.Saved
	if c.o.Purge > 0 {
		saved = r.check.SavedAlone
	} else if err := r.logs(ctx); err != nil {
		return nil, err
	}
	if err := r.letters(ctx); err != nil {
		return nil, err
	}
	for i := range w.Spaces {
		st, err := r.bus.LoadState(ctx, w.Space(i))
		if err != nil {
			return nil, err
		}
		saved(w.Space(i), st)
	}
	if c.o.Purge > 0 {
		r.check.FinishWithoutLog()
	} else {
		r.check.Finish()
	}
	for p := range c.o.Partitions {
		stream, err := r.bus.JetStream().Stream(ctx, logName(p))
		if err != nil {
			return nil, err
		}
		r.left += stream.CachedInfo().State.Msgs
	}
	return r.check, nil
}

func laneName(p int) string { return fmt.Sprintf("%s_LANE_%d", strings.ToUpper(bus.DefaultPrefix), p) }

func logName(p int) string { return fmt.Sprintf("%s_LOG_%d", strings.ToUpper(bus.DefaultPrefix), p) }

// logs passes the logs to the checker.
func (r *reading) logs(ctx context.Context) error {
	take := r.c.o.sabotage(r.check)
	for p := range r.c.o.Partitions {
		err := r.stream(ctx, logName(p), func(m jetstream.Msg, seq uint64, stored time.Time) {
			subject := m.Subject()
			prev, _ := strconv.ParseUint(m.Headers().Get("Nats-Expected-Last-Subject-Sequence"), 10, 64) // 0 is judged
			take(p, model.LogEntry{Space: subject[strings.LastIndexByte(subject, '.')+1:], Seq: seq, Data: m.Data(), Stored: stored, Prev: prev})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// stream reads a stream from its first message to its last.
func (r *reading) stream(ctx context.Context, name string, do func(m jetstream.Msg, seq uint64, stored time.Time)) error {
	stream, err := r.bus.JetStream().Stream(ctx, name)
	if err != nil {
		return fmt.Errorf("read stream %s: %w", name, err)
	}
	state := stream.CachedInfo().State
	if state.Msgs == 0 {
		return nil
	}
	if state.FirstSeq != 1 {
		r.check.Fail(history.Broken, "stream %s begins at %d: what was before cannot be checked", name, state.FirstSeq)
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return fmt.Errorf("read stream %s: %w", name, err)
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(2000))
	if err != nil {
		return fmt.Errorf("read stream %s: %w", name, err)
	}
	defer messages.Stop()
	defer context.AfterFunc(ctx, messages.Stop)()
	for {
		m, err := messages.Next()
		if err != nil {
			return errors.Join(ctx.Err(), fmt.Errorf("read stream %s: %w", name, err))
		}
		at, err := m.Metadata()
		if err != nil {
			return err
		}
		do(m, at.Sequence.Stream, at.Timestamp)
		if at.Sequence.Stream >= state.LastSeq {
			return nil
		}
	}
}

// letters passes the dead letters to the checker, once their number is the expected one; the
// coordinators write them a moment later.
func (r *reading) letters(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	want, _ := r.mon.now()
	for {
		list, err := r.bus.ReadDead(ctx, "", 0, want.letters+1000)
		if err != nil {
			return err
		}
		if len(list) < want.letters && pause.For(bounded, 200*time.Millisecond) == nil {
			continue
		}
		for i := range list {
			if r.c.o.Purge > 0 {
				r.check.LetterAlone(list[i].Space, list[i].Stream, list[i].Event)
				continue
			}
			r.check.Letter(list[i].Space, list[i].Stream, list[i].Event)
		}
		return nil
	}
}
