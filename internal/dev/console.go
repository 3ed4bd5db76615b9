package dev

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

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

// told is a log without what wrong has said already.
type told struct{ slog.Handler }

func (h told) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "event failed" {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h told) WithAttrs(attrs []slog.Attr) slog.Handler { return told{h.Handler.WithAttrs(attrs)} }
