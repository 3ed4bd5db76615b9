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

// judge hands everything to the checker.
func (c *chaos) judge(ctx context.Context) error {
	w := c.o.workload()
	c.check = history.New(w, c.o.Partitions)
	c.check.Killed(c.nem.kills)
	if err := c.rec.tell(c.check, w); err != nil {
		return fmt.Errorf("read the clients' records: %w", err)
	}
	prefix := strings.ToUpper(bus.DefaultPrefix)
	for p := range c.o.Partitions {
		err := c.read(ctx, fmt.Sprintf("%s_LANE_%d", prefix, p), func(m jetstream.Msg, seq uint64, _ time.Time) {
			at := strings.Split(m.Subject(), ".")
			c.check.Lane(history.LaneMessage{
				Seq: seq, Space: at[len(at)-3], Stream: at[len(at)-2], ID: at[len(at)-1],
				Invalid: m.Headers().Get("Settle-Invalid") != "",
			})
		})
		if err != nil {
			return err
		}
	}
	saved := c.check.Saved
	if c.o.Purge > 0 {
		saved = c.check.SavedAlone
	} else if err := c.logs(ctx, prefix); err != nil {
		return err
	}
	if err := c.letters(ctx); err != nil {
		return err
	}
	for i := range w.Spaces {
		st, err := c.bus.LoadState(ctx, w.Space(i))
		if err != nil {
			return err
		}
		saved(w.Space(i), st)
	}
	if c.o.Purge > 0 {
		c.check.FinishWithoutLog()
	} else {
		c.check.Finish()
	}
	for p := range c.o.Partitions {
		stream, err := c.bus.JetStream().Stream(ctx, fmt.Sprintf("%s_LOG_%d", prefix, p))
		if err != nil {
			return err
		}
		c.left += stream.CachedInfo().State.Msgs
	}
	return nil
}

// logs hands over the logs.
func (c *chaos) logs(ctx context.Context, prefix string) error {
	take := c.o.sabotage(c.check)
	for p := range c.o.Partitions {
		err := c.read(ctx, fmt.Sprintf("%s_LOG_%d", prefix, p), func(m jetstream.Msg, seq uint64, stored time.Time) {
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

// read reads a stream from its first message to its last.
func (c *chaos) read(ctx context.Context, name string, do func(m jetstream.Msg, seq uint64, stored time.Time)) error {
	stream, err := c.bus.JetStream().Stream(ctx, name)
	if err != nil {
		return fmt.Errorf("read stream %s: %w", name, err)
	}
	state := stream.CachedInfo().State
	if state.Msgs == 0 {
		return nil
	}
	if state.FirstSeq != 1 {
		c.check.Fail(history.Broken, "stream %s begins at %d: what was before cannot be checked", name, state.FirstSeq)
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

// letters hands over the dead letters, once there are as many as there should be; the
// coordinators write them a moment later.
func (c *chaos) letters(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	want, _ := c.mon.now()
	for {
		list, err := c.bus.ReadDead(ctx, "", 0, want.letters+1000)
		if err != nil {
			return err
		}
		if len(list) < want.letters && pause.For(bounded, 200*time.Millisecond) == nil {
			continue
		}
		for i := range list {
			if c.o.Purge > 0 {
				c.check.LetterAlone(list[i].Space, list[i].Stream, list[i].Event)
				continue
			}
			c.check.Letter(list[i].Space, list[i].Stream, list[i].Event)
		}
		return nil
	}
}
