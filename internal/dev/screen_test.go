package dev

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/settlehq/settle/space"
)

// An event that meets a document of a later version is tried again every second until a newer program is there: its attempts 1, 2, 4 and 8 are printed.
func TestScreen_AttemptsWithoutALimitArePrintedLessOften(t *testing.T) {
	t.Parallel()
	for kind, lines := range map[space.Rejection]int{space.ByVersion: 4, space.ByTransientError: 10} {
		var out bytes.Buffer
		d := &dev{log: slog.New(slog.DiscardHandler)}
		d.cfg.Out = &out
		for attempt := 1; attempt <= 10; attempt++ {
			d.wrong(space.ErrorInfo{Space: "s", Stream: "add", Event: "e1", Attempt: attempt, Transient: true, Rejection: kind, Err: errors.New("it has version 2")})
		}
		if n := strings.Count(out.String(), "it has version 2; it is retried"); n != lines {
			t.Errorf("%v: %d lines of 10 attempts, want %d:\n%s", kind, n, lines, &out)
		}
	}
}
