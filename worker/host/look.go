package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/settlehq/settle/model"
)

// ErrAsleep reports that a space is not in memory.
var ErrAsleep = errors.New("asleep: the space is not in memory")

// ErrLoading reports that a space is being loaded, or waits for that.
var ErrLoading = errors.New("the space is being loaded")

// RunningError reports that a space did not answer because it is inside of application code.
type RunningError struct {
	// Stream and Event are those of the handler, Node is the node; since when the code is known to run.
	Stream, Event, Node string
	Since               time.Time
}

func (e *RunningError) Error() string {
	what := "the handler of event " + e.Event + " of stream " + e.Stream
	if e.Event == "" {
		what = "node " + e.Node
	}
	return fmt.Sprintf("the space does not answer: %s has not returned, since %s at least", what, e.Since.UTC().Format(time.TimeOnly))
}

// looks are requests to see a core. Those whose callers have given up make room, however long the loop is busy.
type looks struct {
	mu      sync.Mutex
	waiting []*look
	called  bool // the loop is to make them
}

type look struct {
	ctx  context.Context
	f    func(Core)
	done chan struct{}
}

// add makes the loop call f, unless ctx ends before that. The channel is closed after the call.
func (l *looks) add(ctx context.Context, h *host, f func(Core)) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = slices.DeleteFunc(l.waiting, func(k *look) bool { return k.ctx.Err() != nil })
	k := &look{ctx, f, make(chan struct{})}
	l.waiting = append(l.waiting, k)
	if !l.called {
		l.called = true
		h.call(func() { l.make(h.core) })
	}
	return k.done
}

func (l *looks) make(core Core) {
	l.mu.Lock()
	all := l.waiting
	l.waiting, l.called = nil, false
	l.mu.Unlock()
	for _, k := range all {
		if k.ctx.Err() == nil {
			k.f(core)
		}
		close(k.done)
	}
}

// Look calls f with the core of a space, in the loop of the space: f must be short, and must not keep the core. A space that is not in memory
// is loaded if load is set, which does not create one, but has the same effect as a read of it.
//
// The error is model.ErrElsewhere, model.ErrNoProgram, ErrAsleep, ErrLoading, a *RunningError if the space did not answer before the end of
// ctx, or that of ctx, or a *model.ServiceError of a space that is set aside (model.CodeConflict).
func (w *Worker) Look(ctx context.Context, space string, load bool, f func(Core)) error {
	p := w.partitionOf(space)
	if p == nil {
		return model.ErrElsewhere
	}
	if err := p.losses.refusal(space); err != nil {
		return err
	}
	found := make(chan *host, 1)
	ask := p.askAwake
	if load {
		ask = func(space string, f func(*host)) error { return p.ask(space, true, f) }
	}
	if err := ask(space, func(h *host) { found <- h }); err != nil {
		return err
	}
	var h *host
	select {
	case h = <-found:
	case <-p.ctx.Done():
		return model.ErrElsewhere
	case <-ctx.Done():
		return ErrLoading
	}
	if h == nil {
		return model.ErrElsewhere
	}
	return h.look(ctx, f)
}

func (h *host) look(ctx context.Context, f func(Core)) error {
	select {
	case <-h.looks.add(ctx, h, f):
		return ctx.Err()
	case <-h.done:
		return model.ErrElsewhere
	case <-ctx.Done():
	}
	stream, event, node, since := h.code.since(time.Now())
	switch {
	case event != "" || node != "":
		return &RunningError{stream, event, node, since}
	case !h.loaded.Load():
		return ErrLoading
	}
	return ctx.Err()
}

// askAwake calls f with the host of a space that is in memory, or is being loaded.
func (p *servedPartition) askAwake(space string, f func(*host)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.hosts[space]; h != nil {
		f(h)
		return nil
	}
	if p.closed || p.ctx.Err() != nil {
		return model.ErrElsewhere
	}
	if _, waits := p.waiting[space]; waits {
		return ErrLoading
	}
	if program, err := p.cfg.Programs(space); err == nil && program == nil {
		return model.ErrNoProgram
	}
	return ErrAsleep
}
