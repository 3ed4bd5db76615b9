package settletest

import (
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/space"
)

// Two weeks of heartbeats take longer than the timeout of go test, which would end the test without a cause.
func TestFleetAdvance_RefusesWhatWouldTakeTooLong(t *testing.T) {
	t.Parallel()
	err := checkAdvance(14 * 24 * time.Hour)
	if err == nil || !strings.Contains(err.Error(), "at most 24h0m0s at once, not by 336h0m0s") || !strings.Contains(err.Error(), "World") {
		t.Errorf("two weeks: %v", err)
	}
	if err := checkAdvance(24 * time.Hour); err != nil {
		t.Errorf("a day: %v", err)
	}
}

// An event to a space without a program is never handled: a fleet reports it once, unless the test allows it.
func TestFleetUndelivered_IsReportedOnce(t *testing.T) {
	t.Parallel()
	f := &Fleet{undelivered: map[posted]bool{}, programs: func(string) (*space.Program, error) { return nil, nil }}
	o := &outcome{sends: []posted{{"silent", receipts.Key{Stream: "bump", ID: "a:1:0:0"}, 0}}}
	f.noteUndelivered(o)
	f.noteUndelivered(o)
	if len(f.problems) != 1 {
		t.Fatalf("%d problems", len(f.problems))
	}
	if got := f.problems[0].String(); got != "space silent: event a:1:0:0 on bump: the space has no program, so the event waits in its lane" {
		t.Error(got)
	}
	AllowUndelivered("bump")(&f.opts)
	if !f.opts.expected(f.problems[0]) {
		t.Error("AllowUndelivered does not allow it")
	}
}
