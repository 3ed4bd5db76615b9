// Package faultlog logs lasting faults: at the first occurrence, and then at growing intervals, with the number of
// occurrences that were not logged. A loop that retries for as long as an operation fails writes
// nine lines in an hour, however often it tries.
package faultlog

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// least is the interval after the first line about a fault. It doubles with each line, up to most.
	least = time.Minute
	most  = 10 * time.Minute
	// quietFor is the time without an occurrence after which a fault is over. Retries are more frequent than that.
	quietFor = 2 * time.Minute
)

// Pace decides when a lasting fault is logged. A fault that has not occurred for two minutes is over. The
// zero value is ready to use. A Pace is not safe for concurrent use.
type Pace struct {
	next, met time.Time
	wait      time.Duration
	left      int
}

// Due records an occurrence of the fault, and reports whether it is to be logged now. left is the number of
// occurrences since the last line that were not logged.
func (p *Pace) Due(now time.Time) (left int, tell bool) {
	if p.isOver(now) {
		*p = Pace{}
	}
	p.met = now
	if now.Before(p.next) {
		p.left++
		return 0, false
	}
	p.wait = min(max(2*p.wait, least), most)
	p.next = now.Add(p.wait)
	left, p.left = p.left, 0
	return left, true
}

func (p *Pace) isOver(now time.Time) bool { return now.Sub(p.met) > quietFor }

// individually is the number of faults of a kind that are paced separately. Further ones are paced
// as one: thousands of spaces may fail for one reason.
const individually = 32

// Log logs faults. It is safe for concurrent use. A nil Log logs nothing.
type Log struct {
	to *slog.Logger

	mu    sync.Mutex
	kinds map[string]*kind
}

// kind holds the faults that are logged with the same message.
type kind struct {
	paces map[string]*Pace
	rest  Pace
}

// New returns a Log that writes to a logger.
func New(to *slog.Logger) *Log { return &Log{to: to, kinds: map[string]*kind{}} }

// Warn logs a fault as a warning, unless its interval has not passed. The message what and the object of
// identify the fault. A line that stands for others has their number as "left_out".
func (l *Log) Warn(what, of string, about ...any) { l.log(slog.LevelWarn, what, of, about) }

// Error is Warn for an error.
func (l *Log) Error(what, of string, about ...any) { l.log(slog.LevelError, what, of, about) }

func (l *Log) log(level slog.Level, what, of string, about []any) {
	if l == nil {
		return
	}
	left, tell := l.due(what, of, time.Now())
	if !tell {
		return
	}
	if left > 0 {
		about = append(about[:len(about):len(about)], "left_out", left)
	}
	l.to.Log(context.Background(), level, what, about...)
}

// Over records that a fault is over: its next occurrence is a new fault. An intermittent fault must not be ended each
// time that it disappears. A fault without an occurrence for two minutes is over in any case.
func (l *Log) Over(what, of string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.kinds[what]; k != nil {
		delete(k.paces, of)
		if len(k.paces) == 0 && k.rest.isOver(time.Now()) {
			delete(l.kinds, what)
		}
	}
}

func (l *Log) due(what, of string, now time.Time) (left int, tell bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.kinds[what]
	if k == nil {
		k = &kind{paces: map[string]*Pace{}}
		l.kinds[what] = k
	}
	return k.paceOf(of, now).Due(now)
}

// paceOf returns the pace of one fault.
func (k *kind) paceOf(of string, now time.Time) *Pace {
	if p := k.paces[of]; p != nil {
		return p
	}
	if len(k.paces) >= individually {
		for of, p := range k.paces { // any order: each on its own
			if p.isOver(now) {
				delete(k.paces, of)
			}
		}
	}
	if len(k.paces) >= individually {
		return &k.rest
	}
	p := &Pace{}
	k.paces[of] = p
	return p
}
