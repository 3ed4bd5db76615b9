package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/settlehq/settle/live"
)

func TestWatch_SaysThatThereIsNoDocumentYetAndWhyOneIsNotUpToDate(t *testing.T) {
	t.Parallel()
	var out, err bytes.Buffer
	p := changePrinter{cmd: &watchCmd{Space: "city", Docs: []string{"sign"}}, io: streams{out: &out, err: &err}, stale: map[string]bool{}}
	p.print("sgn", live.Event{Kind: live.Deleted})
	p.print("sign", live.Event{Kind: live.Current}) // as is to be expected
	p.print("sign", live.Event{Kind: live.Stale, Stale: "sign could not be computed: no light\nnone at all"})
	p.print("sign", live.Event{Kind: live.Current})
	want := "space city has no document sgn yet; waiting\n" +
		"sign is not up to date: sign could not be computed: no light none at all\nsign is up to date again\n"
	if out.Len() > 0 || err.String() != want {
		t.Errorf("printed %q, and %q", out.String(), err.String())
	}
	p.print("sign", live.Event{Kind: live.Deleted, Revision: 7})
	if out.String() != "7\t-\n" {
		t.Errorf("a deletion: %q", out.String())
	}
}

// A hall that gets no events shows its board to the first that watches it, if its program names it. A misspelt one is not stored, and its watcher reads why.
func TestWatch_AHallWithoutEvents(t *testing.T) {
	t.Parallel()
	hosting(t)
	const hall = "lot = cell(\"lot\", 0)\nhandle(\"bid\", lambda e: lot.set(e))\nmade_by_reads(\"hall\")\n" +
		"compute(\"board\", lambda: {name: doc(\"lot\", 0, space = name).get() for name in spaces(\"lot-*\")})\n"
	want(t, 0, "deployed", "deploy", file(t, t.TempDir(), "hall.star", hall), "--space", "*")
	eventually(t, "handled", "send", "lot-1", "bid", "7", "--wait")
	right, wrong := background(t, "watch", "hall", "board"), background(t, "watch", "hal", "board")
	eventually(t, `{"lot-1":7}`, "get", "hall", "board", "--confirmed")
	want(t, 0, "handled", "send", "lot-2", "bid", "8", "--wait")
	eventually(t, `{"lot-1":7,"lot-2":8}`, "get", "hall", "board", "--confirmed")
	want(t, 1, "there is no space hal", "get", "hal", "board", "--confirmed")
	if out := right(); !strings.Contains(out, `{"lot-1":7`) {
		t.Errorf("the watch of the hall has printed %s", out)
	}
	if out := wrong(); strings.Contains(out, `{"lot-1":7`) || !strings.Contains(out, "there is no space hal yet") {
		t.Errorf("the watch of the misspelt name has printed %s", out)
	}
}
