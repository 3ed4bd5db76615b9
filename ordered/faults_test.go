package ordered_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/ordered"
)

// lines counts the lines of a log by level, message and what they are about, but for errors and how many were left out.
type lines struct {
	mu sync.Mutex
	of map[string]int
}

func (*lines) Enabled(context.Context, slog.Level) bool { return true }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler     { return l }
func (l *lines) WithGroup(string) slog.Handler          { return l }

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != "error" && a.Key != "left_out" {
			line += " " + a.String()
		}
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of[line]++
	return nil
}

// A server whose store is out of order for an hour says so at first and then ever more rarely. When it is in order, all is handled.
func TestFaults_AnHourWithoutAStoreIsSaidInFewLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		logged := &lines{of: map[string]int{}}
		b := w.server.Connect("o1")
		outage := membus.NewOutage(b)
		p := w.serveOn(outage, b, ordered.Config{Name: "o1", Logger: slog.New(logged)})
		for i := range 6 {
			w.send(fmt.Sprint("k", i), "pay", "e1", `{"cents":1}`)
		}
		for i := range 6 {
			w.eventuallyEnded(fmt.Sprint("k", i), 1)
		}
		outage.Begin()
		for i := range 6 {
			w.send(fmt.Sprint("k", i), "pay", "e2", `{"cents":1}`)
		}
		w.pass(time.Hour)
		var kinds []string
		logged.mu.Lock()
		for line, n := range logged.of { // any order: each on its own
			if n > 9 {
				t.Errorf("%d lines: %s", n, line)
			}
			kinds = append(kinds, line)
		}
		logged.mu.Unlock()
		if len(kinds) < 6 {
			t.Errorf("that is told by:\n%s", strings.Join(kinds, "\n"))
		}
		outage.Over()
		for i := range 6 {
			w.eventuallyEnded(fmt.Sprint("k", i), 2)
		}
		w.stop(p)
	})
}
