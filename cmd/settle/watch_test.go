package main

import (
	"bytes"
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
