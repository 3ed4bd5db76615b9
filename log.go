package settle

import (
	"context"
	"log/slog"
)

// defaultLog is where a deployment logs for which nobody has said where.
func defaultLog() *slog.Logger { return slog.New(warnings{slog.Default().Handler()}) }

// warnings passes on only what somebody should look at.
type warnings struct{ slog.Handler }

func (h warnings) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}

func (h warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{h.Handler.WithAttrs(attrs)}
}

func (h warnings) WithGroup(name string) slog.Handler { return warnings{h.Handler.WithGroup(name)} }
