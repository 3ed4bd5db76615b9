package embedded

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// keptLines is how many of a server's errors are kept to explain why it did not start.
const keptLines = 3

// serverLog passes the server's log on, and records how the start proceeds.
type serverLog struct {
	out *slog.Logger

	mu     sync.Mutex
	errors []string // the last ones
	fatal  bool     // the server has given up
	last   time.Time
}

func newServerLog(out *slog.Logger) *serverLog {
	if out == nil {
		out = slog.New(slog.DiscardHandler)
	}
	return &serverLog{out: out, last: time.Now()}
}

func (l *serverLog) Noticef(format string, v ...any) { l.out.Info(l.note(false, format, v)) }
func (l *serverLog) Warnf(format string, v ...any)   { l.out.Warn(l.note(false, format, v)) }
func (l *serverLog) Errorf(format string, v ...any)  { l.out.Error(l.note(true, format, v)) }
func (l *serverLog) Debugf(format string, v ...any)  { l.out.Debug(l.note(false, format, v)) }
func (l *serverLog) Tracef(format string, v ...any)  { l.out.Debug(l.note(false, format, v)) }
func (l *serverLog) Fatalf(format string, v ...any) {
	l.out.Error(l.note(true, format, v))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fatal = true
}

// note keeps a line if it is an error.
func (l *serverLog) note(bad bool, format string, v []any) string {
	line := fmt.Sprintf(format, v...)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = time.Now()
	if bad {
		l.errors = append(l.errors[max(0, len(l.errors)-keptLines+1):], line)
	}
	return line
}

// failed reports whether the server has given up.
func (l *serverLog) failed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fatal
}

// quiet returns how long the server has logged nothing.
func (l *serverLog) quiet() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.last)
}

// because adds the server's last errors to an error.
func (l *serverLog) because(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.errors) == 0 {
		return err
	}
	return fmt.Errorf("%w; the server says: %s", err, strings.Join(l.errors, "; "))
}
