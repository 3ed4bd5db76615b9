package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
)

// The last line compares the events of this run with the log; a payload may have their numbers, and other events do not count.
func TestLoad_CountsWhatTheLogHas(t *testing.T) {
	d := counting(t, 1)
	want(t, 0, "handled", "send", "busy", "add", "--id", "before", "--wait")
	out := want(t, 0, `"sent":`, "load", "busy", "add", `{"n": {n}}`, "--rate", "200", "--for", "300ms", "--json")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var r loadResult
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &r); err != nil {
		t.Fatal(err)
	}
	if r.Sent < 2 || r.Stored != r.Sent || r.Handled != r.Sent || r.Commits == 0 || r.Twice+r.Lost+r.Disorder+r.Failed != 0 || len(r.Workers) != 1 {
		t.Errorf("counted %+v", r)
	}
	n := 0
	for _, err := range d.Client().Space("busy").Receipts(t.Context(), history.ReceiptFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != r.Sent+1 {
		t.Errorf("the space has %d receipts, and %d events were sent", n, r.Sent+1)
	}
}

// An event that was stored and has no receipt is lost, one with two is a duplicate: each is an error.
func TestLoad_WhatTheLogDoesNotHaveIsAnError(t *testing.T) {
	d := counting(t, 1)
	want(t, 0, "handled", "send", "busy", "add", "--id", "run-1", "--wait")
	l := &loading{cmd: &loadCmd{Space: "busy", Stream: "add"}, run: "run", sent: 2, stored: []string{"run-1", "run-2"}, outcomes: map[model.Outcome]int{}}
	var out strings.Builder
	l.io.out = &out
	r, err := l.compare(t.Context(), d.Client().Space("busy"))
	if err != nil || r.Handled != 1 || r.Lost != 1 {
		t.Fatalf("%+v, %v; want one handled and one lost", r, err)
	}
	if err := l.report(r); err == nil || !strings.Contains(out.String(), "lost 1") {
		t.Errorf("%v, %s", err, &out)
	}
	for _, r := range []loadResult{{Twice: 1}, {Disorder: 1}} {
		if l.report(&r) == nil {
			t.Errorf("%+v is no error", r)
		}
	}
	l.failed, l.lastErr = 1, model.ErrLaneFull
	if err := l.report(&loadResult{}); err == nil || !strings.Contains(err.Error(), "lane is full") {
		t.Errorf("an event that is perhaps not stored: %v", err)
	}
}

func TestLoadAndChaos_BadOptionsEndWithCode2(t *testing.T) {
	for _, args := range [][]string{
		{"load", "space"},
		{"load", "--rate", "0"},
		{"load", "--rate", "NaN"},
		{"load", "--rate", "1e9"},
		{"load", "--for", "-1s"},
		{"load", "a", "b", "{"},
		{"chaos", "kill"},
		{"chaos", "kill", "--owner", "a", "--worker", "w1"},
	} {
		want(t, 2, "", args...)
	}
}

// Workers of a fleet are processes of their own: there is nothing to ask.
func TestChaos_KillsOnlyWorkersOfSettleDev(t *testing.T) {
	started(t, settle.Config{Programs: settle.Always(counter())})
	want(t, 1, "no settle dev runs here | kill the process", "chaos", "kill", "--owner", "a")
}
