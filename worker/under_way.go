package worker

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// codeLate is the time after which a handler or a node that has not returned is logged:
// its space makes no progress until it does.
const codeLate = 10 * time.Second

// underWay is the application code that a host's loop is in: a handler, or a node, or
// nodes nested in either, when a run computes its inputs. The loop records begin and end, and
// other goroutines check it periodically, so that no run has to read the clock.
type underWay struct {
	mu            sync.Mutex
	stream, event string   // of the handler, "" if there is none
	recorded      bool     // the log has a record of the handler's attempt
	nodes         []string // the innermost last
	begun         uint64   // runs that were not nested
	handled       eventName
	limiter
	// base is the log sequence that the present or last handler is based on.
	base atomic.Uint64

	// seen is the value of begun at the last check, first at seenAt; told reports that it was logged.
	seen   uint64
	seenAt time.Time
	told   bool
}

// eventName identifies an event of a space.
type eventName struct{ stream, event string }

func (u *underWay) handles(stream, event string, recorded bool, limit time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stream, u.event, u.recorded = stream, event, recorded
	u.handled = eventName{stream, event}
	u.begun++
	u.moves(limit)
}

func (u *underWay) runs(node string, limit time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.idle() {
		u.begun++
	}
	u.nodes = append(u.nodes, node)
	u.moves(limit)
}

func (u *underWay) idle() bool { return u.event == "" && len(u.nodes) == 0 }

// late returns, once, code that has not returned since it was first seen, codeLate ago.
func (u *underWay) late(now time.Time) (what []any) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.idle() {
		return nil
	}
	u.look(now)
	if u.told || now.Sub(u.seenAt) < codeLate {
		return nil
	}
	u.told = true
	return u.what()
}

// look records that the present code has been seen. u.mu is held.
func (u *underWay) look(now time.Time) {
	if u.seen != u.begun {
		u.seen, u.seenAt, u.told = u.begun, now, false
	}
}

// last returns the event of the last handler call, whether or not it has returned, and the
// node that the loop is in, "" if it is in none.
func (u *underWay) last() (event eventName, node string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if n := len(u.nodes); n > 0 {
		node = u.nodes[n-1]
	}
	return u.handled, node
}

// now describes the code that the loop is in, nil if it is in none.
func (u *underWay) now() []any {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.what()
}

// running returns the event whose handler the loop is in, "" if it is in none.
func (u *underWay) running() (stream, event string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.stream, u.event
}

func (u *underWay) what() (names []any) {
	if u.event != "" {
		names = append(names, "stream", u.stream, "event", u.event)
	}
	if n := len(u.nodes); n > 0 {
		names = append(names, "node", u.nodes[n-1])
	}
	return names
}

// tellLate logs code that has not returned.
func (h *host) tellLate() {
	if what := h.code.late(time.Now()); what != nil {
		h.env.cfg.faults.Warn("a handler or node has not returned; nothing else of its space goes on until it does, and what takes long belongs in an action", h.space,
			slices.Concat([]any{"space", h.space}, what, []any{"for", codeLate})...)
	}
}
