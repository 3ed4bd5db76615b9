package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

// quick makes the pipeline as short as it can be.
var quick = []string{"demo", "pipeline", "--days", "1", "--pace", "0s", "--sleep", "1ms", "--approve-after", "0s", "--fsync", "interval"}

func TestPipelineInThisProcessIsVerified(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := command(t.Context(), t, append(quick, "--in-process", "--verify")...)
	for _, want := range []string{"1 day, 222 flights", "2 workers, 4 partitions", "waits for the signal approve", "299 actions", "309 attempts: 10 failed and were tried again", "Verified by a plain NATS client", "✓ nothing twice"} {
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("code %d, %q is missing: %s\n%s", code, want, stderr, stdout)
		}
	}
}

func TestPipelineIsVerifiedAfterItsWorkersWereKilledAsProcesses(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := command(t.Context(), t, append(quick, "--verify", "--kill", "2", "--json", "-")...)
	var got struct {
		Actions  int  `json:"actions"`
		Killed   int  `json:"killed"`
		Verified bool `json:"verified"`
	}
	if err := json.Unmarshal([]byte(stdout), &got); code != 0 || err != nil || got.Actions != 299 || got.Killed != 2 || !got.Verified {
		t.Errorf("code %d, %v: %+v\n%s", code, err, got, stderr)
	}
	for _, want := range []string{"2 worker processes", "killed by SIGKILL, which served 2001/01/01", "joined", "still waits", "2 workers;"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("%q is missing:\n%s", want, stderr)
		}
	}
}

func TestPipelineRefusesOptionsBeforeItStarts(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"--days 0: choose 1 to 30":                   {"--days", "0"},
		"--workers 0: at least one worker is needed": {"--workers", "0"},
		"--kill -1: choose how many":                 {"--kill=-1"},
		"--partitions 65: choose 1 to 64":            {"--partitions", "65"},
		"--pace -1s: choose 0 or more":               {"--pace=-1s"},
		"must be one of":                             {"--fsync", "never"},
	} {
		code, stdout, stderr := command(t.Context(), t, append([]string{"demo", "pipeline"}, args...)...)
		if code != 2 || !strings.Contains(stderr, want) || stdout != "" {
			t.Errorf("%v: code %d, stdout %q, stderr %q; want 2, nothing, %q", args, code, stdout, stderr, want)
		}
	}
}

func TestAnInterruptedPipelineEndsWithCode130(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if code, _, stderr := command(ctx, t, quick...); code != 130 || !strings.Contains(stderr, "interrupted") {
		t.Errorf("code %d, stderr %q", code, stderr)
	}
}
