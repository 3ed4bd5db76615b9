package membus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle/model"
)

// logClient appends and reads commits.
type logClient struct{ *client }

// Append appends a commit if the space's head is a.Expect.
func (c *logClient) Append(a model.Append, done func(seq uint64, err error)) {
	if err := model.CheckName("space", a.Space); err != nil {
		go done(0, err) // ends when done returns
		return
	}
	r := storing(Op{Label: "append", Space: a.Space}, func(op Op) func() {
		seq, err := c.server.Append(a)
		c.report(Step{Moment: Arrives, Op: op, Append: &a, Seq: seq, Err: err})
		if c.net != nil && errors.Is(err, model.ErrRefused) && c.server.Head(a.Space) > a.Expect {
			return func() { c.askOwner(a, err, done) }
		}
		return func() { done(c.classify(a, seq, err)) } // a log that ends before a.Expect cannot classify the refusal
	}, func() { done(0, model.ErrStopped) })
	r.epoch, r.rewound = a.Epoch, func() { done(0, fmt.Errorf("append %s of space %s: %w", a.ID, a.Space, model.ErrRewound)) }
	c.submit(r)
}

// askOwner is classify for a client that is connected through a network, where it is a request of its own. A
// commit after a.Expect exists, so an answer without one comes from a lagging replica.
func (c *logClient) askOwner(a model.Append, refused error, done func(seq uint64, err error)) {
	c.submit(&request{
		op: Op{Label: "owned", Space: a.Space},
		recall: func(behind int) func() {
			next := c.server.readLogBehind(a.Space, a.Expect, 1, behind)
			return func() {
				switch {
				case len(next) == 0:
					c.askOwner(a, refused, done)
				case next[0].ID == a.ID && next[0].Prev == a.Expect:
					done(next[0].Seq, nil)
				default:
					done(0, fmt.Errorf("append %s of space %s after %d: %w", a.ID, a.Space, a.Expect, refused))
				}
			}
		},
		stopped: func() { done(0, model.ErrStopped) },
	})
}

// classify finds out whose commit a refused append has lost to. It asks after every refusal, not only after a
// retry: the network may have duplicated a first try, so that its copy was refused.
func (c *logClient) classify(a model.Append, seq uint64, err error) (uint64, error) {
	if !errors.Is(err, model.ErrRefused) {
		return seq, err
	}
	if own, stored := c.server.Owned(a); stored {
		return own, nil
	}
	return 0, fmt.Errorf("append %s of space %s after %d: %w", a.ID, a.Space, a.Expect, err)
}

// Head returns the sequence of the space's last commit.
func (c *logClient) Head(ctx context.Context, space string) (uint64, error) {
	if err := model.CheckName("space", space); err != nil {
		return 0, err
	}
	return recall(ctx, c.client, Op{Label: "head", Space: space}, func(behind int) uint64 { return c.server.headBehind(space, behind) })
}

// ReadLog returns up to limit entries of the space after sequence after.
func (c *logClient) ReadLog(ctx context.Context, space string, after uint64, limit int) ([]model.LogEntry, error) {
	if err := model.CheckName("space", space); err != nil {
		return nil, err
	}
	return recall(ctx, c.client, Op{Label: "read-log", Space: space}, func(behind int) []model.LogEntry {
		return c.server.readLogBehind(space, after, limit, behind)
	})
}

// FollowSpace delivers the space's entries after sequence after.
func (c *logClient) FollowSpace(ctx context.Context, space string, after uint64, deliver func(model.LogEntry)) error {
	if err := model.CheckName("space", space); err != nil {
		return err
	}
	look := func(after uint64) ([]model.LogEntry, <-chan struct{}) {
		return c.server.FollowSpace(space, after, batch)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var gap error
	err := follow(ctx, c.client, Op{Label: "follow-space", Space: space}, after, look, entrySeq, func(e model.LogEntry) {
		if gap == nil {
			gap = e.Follows(after)
		}
		if gap != nil {
			cancel()
			return
		}
		after = e.Seq
		deliver(e)
	})
	if gap != nil {
		return gap
	}
	return err
}

// FollowLog delivers the entries of a partition after sequence after.
func (c *logClient) FollowLog(ctx context.Context, partition int, after uint64, deliver func(model.LogEntry)) error {
	if err := c.server.checkPartition(partition); err != nil {
		return err
	}
	look := func(after uint64) ([]model.LogEntry, <-chan struct{}) {
		return c.server.FollowLog(partition, after, batch)
	}
	return follow(ctx, c.client, Op{Label: "follow-log", Key: number(partition)}, after, look, entrySeq, deliver)
}

// FollowReleases is FollowLog without the data of inert entries.
func (c *logClient) FollowReleases(ctx context.Context, partition int, after uint64, deliver func(model.LogEntry)) error {
	return c.FollowLog(ctx, partition, after, func(e model.LogEntry) {
		if e.Inert {
			e.Data = nil
		}
		deliver(e)
	})
}

// LogTail returns the last entries of a partition's log. See port.Log.
func (c *logClient) LogTail(ctx context.Context, partition, n int) ([]model.LogEntry, error) {
	if err := c.server.checkPartition(partition); err != nil {
		return nil, err
	}
	return ask(ctx, c.client, Op{Label: "log-tail", Key: number(partition)}, func(int) []model.LogEntry { return c.server.LogTail(partition, n) })
}

// LogState returns the size of a partition's log.
func (c *logClient) LogState(ctx context.Context, partition int, age time.Duration) (model.LogState, error) {
	if err := c.server.checkPartition(partition); err != nil {
		return model.LogState{}, err
	}
	return recall(ctx, c.client, Op{Label: "log-state", Key: number(partition)}, func(behind int) model.LogState {
		return c.server.logStateBehind(partition, age, behind)
	})
}

// LogSpaces lists the spaces that have more than one commit in the log.
func (c *logClient) LogSpaces(ctx context.Context, partition int) ([]string, error) {
	if err := c.server.checkPartition(partition); err != nil {
		return nil, err
	}
	return ask(ctx, c.client, Op{Label: "log-spaces", Key: number(partition)}, func(int) []string { return c.server.LogSpaces(partition) })
}

// Spaces lists the spaces with a commit in the log.
func (c *logClient) Spaces(ctx context.Context) ([]string, error) {
	return ask(ctx, c.client, Op{Label: "spaces"}, func(int) []string { return c.server.Spaces() })
}

// PurgeLog removes the commits of a space below a sequence.
func (c *logClient) PurgeLog(ctx context.Context, space string, below uint64) error {
	if err := model.CheckName("space", space); err != nil {
		return err
	}
	_, err := ask(ctx, c.client, Op{Label: "purge-log", Space: space}, func(int) bool {
		c.server.PurgeLog(space, below)
		return true
	})
	return err
}
