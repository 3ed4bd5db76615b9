package dev

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/space"
)

// console prints the output of programs.
func (d *dev) console(i space.ConsoleInfo) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s %s: %s", now(), i.Space, ownerOf(i.Node, i.Stream), i.Message)
	for n := 0; n+1 < len(i.Args); n += 2 {
		fmt.Fprintf(&b, " %v=%v", i.Args[n], i.Args[n+1])
	}
	fmt.Fprintln(d.cfg.Out, b.String())
	level := slog.LevelInfo
	if i.Warning {
		level = slog.LevelWarn
	}
	d.log.Log(printed, level, i.Message, append([]any{"space", i.Space, "stream", i.Stream, "node", i.Node, "event", i.Event}, i.Args...)...)
}

// wrong prints the errors of programs, with node and event.
func (d *dev) wrong(i space.ErrorInfo) {
	if i.Rejection == space.ByVersion && i.Attempt&(i.Attempt-1) != 0 {
		return // it is tried again without a limit: attempts 1, 2, 4, 8, ... are printed
	}
	event := ""
	if i.Event != "" {
		event = " (event " + i.Event + ")"
	}
	again := ""
	if i.Transient {
		again = "; it is retried"
	}
	fmt.Fprintf(d.cfg.Out, "%s  %s %s%s: %s%s\n", now(), i.Space, ownerOf(i.Node, i.Stream), event, strings.ReplaceAll(i.Err.Error(), "\n", "\n  "), again)
	if i.Event == "" || i.Transient { // an event that has failed has a line of its own
		d.log.WarnContext(printed, "node or handler", "space", i.Space, "node", i.Node, "stream", i.Stream, "event", i.Event, "again", i.Transient, "error", i.Err)
	}
}

// printed is the context of lines that are on the screen already, in a form of their own: they are only sent by OTLP, if lines are.
var printed = context.WithValue(context.Background(), printedKey{}, true)

type printedKey struct{}

// ownerOf returns the code that an output or error comes from.
func ownerOf(node, stream string) string {
	if stream != "" {
		return "handler of " + stream
	}
	return node
}

// screen is a log for a terminal: it prints warnings and errors, except those that wrong has
// printed.
type screen struct {
	out   io.Writer
	attrs []slog.Attr
}

// Enabled enables warnings and errors that were not printed.
func (screen) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && ctx.Value(printedKey{}) == nil
}

// Handle prints one line: time, message, attributes and error.
func (h screen) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "event failed" {
		return nil
	}
	why := ""
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s", r.Time.Format(time.TimeOnly), r.Message)
	add := func(a slog.Attr) bool {
		if a.Key == "error" {
			why = ": " + a.Value.String()
		} else {
			fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		}
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	_, err := fmt.Fprintln(h.out, b.String()+why)
	return err
}

// WithAttrs adds attributes to every line.
func (h screen) WithAttrs(attrs []slog.Attr) slog.Handler {
	return screen{h.out, append(slices.Clip(h.attrs), attrs...)}
}

// WithGroup returns h: a terminal needs no groups.
func (h screen) WithGroup(string) slog.Handler { return h }
