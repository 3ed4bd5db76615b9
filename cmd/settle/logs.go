package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/settlehq/settle/internal/telemetry/export"
)

// flushPatience is the time for sending the last lines of a log by OTLP.
const flushPatience = 3 * time.Second

// logOf returns the log of a command that runs until it is interrupted: warnings to standard error, and by OTLP if the standard variables
// ask for it. flush sends what is left.
func logOf(ctx context.Context, io streams, service string) (log *slog.Logger, flush func(), err error) {
	local := slog.NewTextHandler(io.err, &slog.HandlerOptions{Level: slog.LevelWarn})
	lines, send, err := export.Logs(ctx, export.Logging{Service: service, Local: local, Level: slog.LevelInfo})
	if err != nil {
		return nil, nil, err
	}
	return slog.New(lines), func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushPatience)
		defer cancel()
		send(last)
	}, nil
}
