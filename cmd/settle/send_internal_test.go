package main

import (
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
)

// An event on a stream of which the worker knows that only spaces send on it is refused before it is stored, in a space without an event as well.
func TestSend_RefusesAnInternalStreamAtOnce(t *testing.T) {
	t.Parallel()
	url := ownServer(t, t.TempDir())
	p := passing()
	settle.NewStream[int]("credit").Internal().Handle(p, func(*settle.Tx, int) error { return nil })
	begun(t, settle.Config{Programs: settle.Always(p), Bus: bus.Config{URL: url, Partitions: 2}})
	wantSoon(t, 1, "stream credit of space ann is internal: only handlers and timers of the deployment's spaces send on it; nothing was stored", "send", "ann", "credit", "5", "--id", "e1")
	want(t, 1, "stream credit of space ann is internal", "send", "ann", "credit", "5", "--wait")
	want(t, 1, "there is no space ann", "lane", "ann")
	want(t, 0, "handled", "send", "ann", "add", "--wait")
}
