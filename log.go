package settle

import (
	"context"
	"log/slog"
)

// defaultLog is the logger of a deployment whose Config has none.
func defaultLog() *slog.Logger { return slog.New(warnings{slog.Default().Handler()}) }

// warnings drops records below the level Warn.
type warnings struct{ slog.Handler }

func (h warnings) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}

func (h warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{h.Handler.WithAttrs(attrs)}
}

func (h warnings) WithGroup(name string) slog.Handler { return warnings{h.Handler.WithGroup(name)} }
