package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Performer defines how the tasks of an action are performed, or an input is fetched: it is the Performer of
// a space.ActionSpec. It must not be changed once a space runs the program.
type Performer struct {
	// Do does the work. It is called when the task is in the log, in the process of the
	// worker that serves the space, and again if it fails or the worker dies: at least once,
	// with the same key and in each time. It must return when ctx ends, which happens when the
	// space moves to another worker, or the task is cancelled. An error is retried unless
	// Permanent marks it.
	Do func(ctx context.Context, key string, in model.Value) (model.Value, error)
	// Attempts is the number of attempts after which the task has failed; default without limit.
	Attempts int
	// Backoff is the pause after the first failed attempt, doubled after each further one up
	// to MaxBackoff; default 1 s and 1 minute.
	Backoff, MaxBackoff time.Duration
	// Timeout limits one attempt; default 1 minute, negative for none. It ends the context;
	// a Do that ignores its context is not stopped.
	Timeout time.Duration
	// AtATime limits the concurrent tasks of the action in one space; default 16.
	AtATime int
}

// Options are what the options of an action set, wherever it is performed.
type Options struct {
	Performer
	// Keep is that of space.ActionSpec.
	Keep time.Duration
	// Remote has what only counts where performers elsewhere get the tasks; Watched reports that none do.
	Remote  space.Remote
	Watched bool
	// Fleet and Deadline are those of space.ActionSpec.
	Fleet    space.Fleet
	Deadline time.Duration
}

// Terms returns how performers get the tasks of an external action, nil if they do not. A timeout has no default there.
func (o *Options) Terms() *space.Remote {
	if o.Watched {
		return nil
	}
	r := o.Remote
	r.Attempts, r.Backoff, r.MaxBackoff, r.Timeout, r.AtATime = o.Attempts, o.Backoff, o.MaxBackoff, max(o.Timeout, 0), o.AtATime
	return &r
}

// Check returns an error for invalid settings.
func (p *Performer) Check() error {
	switch {
	case p.Do == nil:
		return errors.New("the function is nil")
	case p.Attempts < 0 || p.AtATime < 0 || min(p.Backoff, p.MaxBackoff) < 0:
		return fmt.Errorf("attempts %d, tasks at a time %d and backoff %s to %s must not be negative; 0 is the default", p.Attempts, p.AtATime, p.Backoff, p.MaxBackoff)
	}
	return nil
}

// Defaults of a Performer.
const (
	defaultAtATime = 16
	defaultTimeout = time.Minute
)

// Concurrency returns how many tasks are performed at a time. See space.Performer.
func (p *Performer) Concurrency() int { return cmp.Or(p.AtATime, defaultAtATime) }

// Pause returns how long to wait after n failed attempts.
func (p *Performer) Pause(n int) time.Duration {
	return space.PauseAfter(n, p.Backoff, p.MaxBackoff)
}

// last reports whether an error of the n-th attempt ends the task.
func (p *Performer) last(n int, err error) bool {
	var permanent *permanentError
	return errors.As(err, &permanent) || p.Attempts > 0 && n >= p.Attempts
}

// permanentError marks an error that another attempt would repeat.
type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

// Permanent marks an error of a Performer as one that no further attempt will change.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// panicked is the error of a function that has panicked.
type panicked struct {
	with  any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panicked: %v", p.with) }

// Completion returns the completion to report after an attempt at a task: it succeeded, it is given up, or
// there will be another attempt.
func (p *Performer) Completion(t *space.Task, out model.Value, err error) *space.Completion {
	c := &space.Completion{Key: t.Key, N: t.N, Out: out}
	if err == nil {
		return c
	}
	c.Out, c.Err = model.Value{}, err.Error()
	if c.Err == "" {
		c.Err = "failed"
	}
	if n := t.Attempts + 1; !p.last(n, err) {
		c.Attempt = n
	}
	return c
}

// overrun is how long an attempt may continue after its context has ended until that is reported.
const overrun = 10 * time.Second

// Attempt makes one attempt at a task. See space.Performer.
func (p *Performer) Attempt(of space.Context, key string, in model.Value, late func(why error)) (model.Value, error) {
	ctx, cancel := p.within(of)
	defer cancel()
	returned := make(chan struct{})
	defer close(returned)
	stop := context.AfterFunc(ctx, func() { // ends with the attempt, or before
		select {
		case <-returned:
		case <-time.After(overrun):
			late(context.Cause(ctx))
		}
	})
	defer stop()
	return p.try(ctx, key, in)
}

// within returns the context of one attempt.
func (p *Performer) within(ctx context.Context) (context.Context, context.CancelFunc) {
	timeout := cmp.Or(p.Timeout, defaultTimeout)
	if timeout < 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, tookLonger(timeout))
}

// tookLonger is the error of an attempt that has reached its timeout. It is made for each attempt, and rarely printed.
type tookLonger time.Duration

func (d tookLonger) Error() string {
	return "the attempt took longer than " + time.Duration(d).String()
}

// try makes an attempt, and turns a panic into an error.
func (p *Performer) try(ctx context.Context, key string, in model.Value) (out model.Value, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &panicked{r, debug.Stack()}
		} else if err != nil && errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
			err = fmt.Errorf("%w (%w)", err, context.Cause(ctx))
		}
	}()
	return p.Do(ctx, key, in)
}
