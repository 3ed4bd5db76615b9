// Package faultlog logs faults that last: the first time that one is met, and then ever more rarely, with how many
// times it was met and not logged. A loop that tries something again for as long as it fails writes
// nine lines in an hour by it, however often it tries.
package faultlog

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// least is the pause behind the first line about a fault. It doubles with each line, up to most.
	least = time.Minute
	most  = 10 * time.Minute
	// calm is for how long a fault has not been met that is over. What is tried at all is tried more often.
	calm = 2 * time.Minute
)

// Pace says when a fault that lasts is to be logged. A fault that has not been met for two minutes is over. The
// zero value is ready. A Pace must not be used by several goroutines at a time.
type Pace struct {
	next, met time.Time
	wait      time.Duration
	left      int
}

// Due takes in that the fault is met, and reports whether that is to be logged now. left is how many times
// it was met and not logged since the last line.
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

func (p *Pace) isOver(now time.Time) bool { return now.Sub(p.met) > calm }

// individually is how many faults of a kind are paced each by itself. What further ones there are at the time is paced
// as if it were one: thousands of spaces may fail for one reason.
const individually = 32

// Log logs faults. It may be used by several goroutines at a time. A nil Log logs nothing.
type Log struct {
	to *slog.Logger

	mu    sync.Mutex
	kinds map[string]*kind
}

// kind is the faults that are logged with one message.
type kind struct {
	paces map[string]*Pace
	rest  Pace
}

// New is a log of faults that writes to a logger.
func New(to *slog.Logger) *Log { return &Log{to: to, kinds: map[string]*kind{}} }

// Warn logs a fault as a warning, unless it is too soon to. what is the message, and tells with of, which names what is
// concerned, the fault from others. A line that stands for others has "left_out", which is how many.
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

// Over notes that a fault is over: should it be met again, it is a new one. A fault that comes and goes must not be noted so each
// time that it goes. One that is not met for two minutes is over in any case.
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

// paceOf is the pace of one fault.
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
