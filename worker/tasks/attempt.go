package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Ending is how an attempt has ended.
type Ending string

// Endings of attempts: the task is done, it has failed, another attempt follows, or the attempt was cut off.
const (
	Done   Ending = "done"
	Failed Ending = "failed"
	Again  Ending = "retried"
	CutOff Ending = "cut_off"
)

// endingOf returns how an attempt has ended that is reported with c, nil for one that was cut off.
func endingOf(c *space.Completion) Ending {
	switch {
	case c == nil:
		return CutOff
	case c.Attempt > 0:
		return Again
	case c.Err != "":
		return Failed
	}
	return Done
}

// End is how an attempt at a task has ended.
type End struct {
	Action, Key string
	How         Ending
	// Attempts is how many attempts at the task there were, and Error the error of this one, "" if there is none.
	Attempts int
	Error    string
	// Handled reports that the program has a function for the ends of tasks, and Discarded that a workflow decides what follows.
	Handled, Discarded bool
}

func endOf(a *performing, t *task, c *space.Completion) End {
	return End{
		Action: t.action, Key: t.Key, How: endingOf(c), Attempts: t.Attempts + 1, Error: c.Err, Handled: a.spec.Done != nil, Discarded: a.spec.Discard,
	}
}

// observed returns how the next attempt at a task is observed.
func (l *List) observed(t *task) func(context.Context) (context.Context, func(Ending, error)) {
	if l.host.Attempts == nil || t.ended != nil {
		return func(ctx context.Context) (context.Context, func(Ending, error)) { return ctx, func(Ending, error) {} }
	}
	return l.host.Attempts(t.action, t.Key, t.Attempts+1)
}

// nextAttempt returns the attempt that comes next at a task.
func (l *List) nextAttempt(t *task) *Attempt {
	return &Attempt{Deployment: l.host.Deployment, Space: l.host.Space, Action: t.action, Key: t.Key, Number: t.Attempts + 1, Event: t.Event}
}

// attempt makes one attempt at a task and returns the completion to report, none if the
// attempt was cut off. It is called by a goroutine of its own. handled reports that the program decides what a failure means,
// as a workflow does.
func (l *List) attempt(ctx context.Context, how space.Performer, t *task, handled bool, begins func(context.Context) (context.Context, func(Ending, error))) result {
	a := l.nextAttempt(t)
	if !l.host.Slots.enter(ctx, a) {
		return result{}
	}
	ctx, ended := begins(ctx)
	out, err := how.Attempt(WithAttempt(ctx, *a), t.Key, t.In, func(why error) {
		l.host.Warn("a task goes on though its context has ended; the function must return then, it holds up others", l.host.Space+" "+t.action+" "+t.Key,
			"space", l.host.Space, "action", t.action, "key", t.Key, "since", overrun, "error", why)
	})
	l.host.Slots.leave(a)
	if err != nil && ctx.Err() != nil {
		ended(CutOff, err)
		return result{}
	}
	c := how.Completion(&t.Task, out, err)
	ended(endingOf(c), err)
	if err != nil {
		l.logFailed(ctx, t, c, err, handled)
	}
	return result{completion: c, trace: telemetry.Of(ctx)}
}

// logFailed logs that an attempt has failed: as a warning, unless the program handles the failure. A panic is a warning
// always.
func (l *List) logFailed(ctx context.Context, t *task, c *space.Completion, err error, handled bool) {
	args := []any{"space", l.host.Space, "action", t.action, "key", t.Key, "attempt", t.Attempts + 1, "again", c.Attempt > 0, "error", err}
	var p *panicked
	if errors.As(err, &p) {
		args = append(args, "stack", string(p.stack))
	}
	switch {
	case handled && p == nil:
		l.host.Logger.InfoContext(ctx, "task", args...)
	case c.Attempt > 0:
		l.host.Warn("task", l.host.Space+" "+t.action+" "+t.Key, args...)
	default:
		l.host.Logger.WarnContext(ctx, "task", args...)
	}
}

// report sends the event that reports how a task, or an attempt at it, has ended, for the told-th time.
// Finished work is reported even if ctx has ended since, or it would be done again. It returns the reported
// completion, nil if it could not be sent.
func (l *List) report(ctx context.Context, action string, r *result, told int) *space.Completion {
	c := r.completion
	for dry := 0; ; dry++ {
		err := l.host.Send(model.Message{
			Space: l.host.Space, Stream: action, ID: completionID(c, told), Payload: c.Value().AppendJSON(nil), Trace: r.trace,
		})
		switch {
		case err == nil:
			return c
		case errors.Is(err, model.ErrTooLarge):
			c = &space.Completion{Key: c.Key, N: c.N, Err: fmt.Sprintf("it was done, but its result could not be stored: %v", err)}
		case errors.Is(err, model.ErrStopped) || ctx.Err() != nil:
			return nil
		default:
			l.host.Report("report how a task has ended", err)
			_ = pause.For(ctx, pause.Backoff(dry+6))
		}
	}
}

// completionID returns the id of the event that reports a completion: the same for every worker that reports it, and one that no
// client may use.
func completionID(c *space.Completion, told int) string {
	what := "done"
	switch {
	case c.Attempt > 0:
		what = fmt.Sprintf("try%d", c.Attempt)
	case told > 0:
		what = fmt.Sprintf("done%d", told+1)
	}
	return minted(what, c)
}

// minted returns an id about a task, which no client may use.
func minted(what string, c *space.Completion) string {
	key := c.Key
	if model.CheckEventID(key) != nil || len(key) > model.MaxNameLen || strings.HasPrefix(key, hashed) {
		sum := sha256.Sum256([]byte(key))
		key = hashed + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:20])
	}
	return fmt.Sprintf("%s:%d-%s", what, c.N, key) // the key is not behind the ':', where ":r5" would be a redriven event
}

// hashed is the prefix of the hash that replaces a key which cannot be part of an id.
const hashed = "sha256-"
