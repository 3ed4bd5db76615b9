package faultlog

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// atOnce is how many warnings and errors with one message are logged at once, and then one in each interval of perLine.
	atOnce  = 100
	perLine = time.Second
	// messages is how many messages have a limit of their own. Further ones share one.
	messages = 512
)

// Limit returns a handler that leaves out warnings and errors of which too many have the same message: there may be one for each event of a
// sender that sends what cannot be handled. A line after lines that were left out has their number as "left_out". What is less than a
// warning passes.
func Limit(next slog.Handler) slog.Handler {
	return limiting{next, &limits{of: map[string]*limit{}}}
}

type limiting struct {
	next slog.Handler
	*limits
}

type limits struct {
	mu   sync.Mutex
	of   map[string]*limit
	rest *limit
}

type limit struct {
	rate *rate.Limiter
	left int // lines that were left out since the last one
}

func newLimit() *limit { return &limit{rate: rate.NewLimiter(rate.Every(perLine), atOnce)} }

// allow reports whether a line is logged, and how many lines before it were not.
func (l *limits) allow(message string) (left int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.of[message]
	switch {
	case m != nil:
	case len(l.of) < messages:
		m = newLimit()
		l.of[message] = m
	case l.rest == nil:
		l.rest = newLimit()
		m = l.rest
	default:
		m = l.rest
	}
	if !m.rate.Allow() {
		m.left++
		return 0, false
	}
	left, m.left = m.left, 0
	return left, true
}

// Enabled is that of the next handler.
func (h limiting) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

// Handle passes a record on, or leaves it out.
func (h limiting) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return h.next.Handle(ctx, r)
	}
	left, ok := h.allow(r.Message)
	if !ok {
		return nil
	}
	if left > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("left_out", left))
	}
	return h.next.Handle(ctx, r)
}

// WithAttrs is that of the next handler.
func (h limiting) WithAttrs(attrs []slog.Attr) slog.Handler {
	return limiting{h.next.WithAttrs(attrs), h.limits}
}

// WithGroup is that of the next handler.
func (h limiting) WithGroup(name string) slog.Handler {
	return limiting{h.next.WithGroup(name), h.limits}
}
