package dev

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle"
)

// console prints what programs log.
func (d *dev) console(i settle.ConsoleInfo) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s %s: %s", now(), i.Space, whose(i.Node, i.Stream), i.Message)
	for n := 0; n+1 < len(i.Args); n += 2 {
		fmt.Fprintf(&b, " %v=%v", i.Args[n], i.Args[n+1])
	}
	fmt.Fprintln(d.cfg.Out, b.String())
}

// wrong prints what goes wrong in them, where and by which calls.
func (d *dev) wrong(i settle.ErrorInfo) {
	event := ""
	if i.Event != "" {
		event = " (event " + i.Event + ")"
	}
	again := ""
	if i.Transient {
		again = "; it is tried again"
	}
	fmt.Fprintf(d.cfg.Out, "%s  %s %s%s: %s%s\n", now(), i.Space, whose(i.Node, i.Stream), event, strings.ReplaceAll(i.Err.Error(), "\n", "\n  "), again)
}

// whose code it was.
func whose(node, stream string) string {
	if stream != "" {
		return "handler of " + stream
	}
	return node
}

// screen is a log for a person at a terminal: warnings and errors, but for what wrong has said.
type screen struct {
	out   io.Writer
	attrs []slog.Attr
}

// Enabled is for warnings and errors.
func (screen) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

// Handle prints a line: when, what, where, and why.
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

// WithAttrs adds to every line.
func (h screen) WithAttrs(attrs []slog.Attr) slog.Handler {
	return screen{h.out, append(slices.Clip(h.attrs), attrs...)}
}

// WithGroup is not needed on a terminal.
func (h screen) WithGroup(string) slog.Handler { return h }
