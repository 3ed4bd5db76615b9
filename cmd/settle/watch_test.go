package main

import (
	"bytes"
	"testing"

	"github.com/settlehq/settle/live"
)

func TestWatch_SaysThatThereIsNoDocumentYetAndWhyOneIsNotUpToDate(t *testing.T) {
	var out, err bytes.Buffer
	p := changePrinter{cmd: &watchCmd{Space: "city", Docs: []string{"sign"}}, io: streams{&out, &err}}
	p.print("sgn", live.Event{Kind: live.Deleted})
	p.stale("sign", "sign could not be computed: no light")
	want := "space city has no document sgn yet; waiting\nsign is not up to date: sign could not be computed: no light\n"
	if out.Len() > 0 || err.String() != want {
		t.Errorf("printed %q, and %q", out.String(), err.String())
	}
	p.print("sign", live.Event{Kind: live.Deleted, Revision: 7})
	if out.String() != "7\t-\n" {
		t.Errorf("a deletion: %q", out.String())
	}
}
