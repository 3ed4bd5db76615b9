package demo

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/bus/embedded"
)

func TestPipelineInOneProcessIsVerifiedThoughWorkersAreKilled(t *testing.T) {
	var out bytes.Buffer
	o := Pipeline{Days: 2, Workers: 2, Partitions: 2, Kill: 2, Fsync: embedded.FsyncInterval, Sleep: time.Millisecond, Rejoin: time.Millisecond}
	rep, err := RunPipeline(t.Context(), o, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if !rep.Verified || rep.Days != 2 || rep.Flights != 441 || rep.Actions != 604 || rep.Failures != 20 || rep.Killed != 2 {
		t.Errorf("%+v", rep)
	}
	if rep.Attempts != rep.Actions+rep.Failures+rep.Repeated {
		t.Errorf("%d attempts of %d actions, with %d failures and %d repetitions", rep.Attempts, rep.Actions, rep.Failures, rep.Repeated)
	}
	// A day is followed by a live query, which may skip states, and workers are killed beside that.
	story := out.String()
	at := 0
	for _, want := range []string{"2 days, 441 flights", "started", "still waits; the demo approves it", "done: 2"} {
		i := strings.Index(story[at:], want)
		if i < 0 {
			t.Fatalf("%q is not there, or not after the line before:\n%s", want, story)
		}
		at += i
	}
	for want, n := range map[string]int{"killed, which served": 2, "still waits; the demo approves it": 2, "done: 2": 2} {
		if strings.Count(story, want) != n {
			t.Errorf("%q is not there %d times:\n%s", want, n, story)
		}
	}
	if err := rep.Summary(&out, true); err != nil || !strings.Contains(out.String(), "✓ nothing twice") {
		t.Errorf("%v\n%s", err, &out)
	}
}

func TestPipelineSummaryNamesDifferences(t *testing.T) {
	var out bytes.Buffer
	r := &PipelineReport{Days: 1, Differences: []string{"2001/01/01: LAS is wrong"}}
	if err := r.Summary(&out, true); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "NOT VERIFIED: 1 difference") || !strings.Contains(out.String(), "LAS is wrong") || strings.Contains(out.String(), "✓") {
		t.Error(out.String())
	}
}
