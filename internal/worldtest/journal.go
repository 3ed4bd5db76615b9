package worldtest

import (
	"context"
	"log/slog"
	"strings"
	"sync"
)

// Journal is a slog.Handler that keeps what is logged, a line for each record: its level, message and attributes.
type Journal struct {
	mu    sync.Mutex
	lines []string
}

// Enabled implements slog.Handler: every level is kept.
func (*Journal) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements slog.Handler. The journal leaves the attributes of a logger out.
func (j *Journal) WithAttrs([]slog.Attr) slog.Handler { return j }

// WithGroup implements slog.Handler. The journal leaves groups out.
func (j *Journal) WithGroup(string) slog.Handler { return j }

// Handle implements slog.Handler.
func (j *Journal) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
	return nil
}

// Lines returns the lines so far that contain a text.
func (j *Journal) Lines(text string) (found []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, line := range j.lines {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// Count returns the number of lines that contain a text.
func (j *Journal) Count(text string) int { return len(j.Lines(text)) }

func (j *Journal) String() string { return strings.Join(j.Lines(""), "\n") }
