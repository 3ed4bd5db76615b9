package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/examples/flights/audit"
	"github.com/settlehq/settle/internal/demo"
)

const twoFlights = `[{"date":"2001/01/01 00:47","delay":66,"distance":1750,"origin":"DTW","destination":"LAS"},
{"date":"2001/01/01 01:10","delay":-5,"distance":2399,"origin":"HNL","destination":"DTW"}]`

// flightsFile writes an input file.
func flightsFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "flights.json")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// patience is a safety net: no test waits for it unless it fails.
const patience = 2 * time.Minute

// patient are commands whose default timeout is too short for a slow machine.
var patient = []string{"send", "get", "timers", "deploy", "rollback", "pin", "unpin"}

// command runs the program, for the server that the test points at.
func command(ctx context.Context, t *testing.T, args ...string) (code int, stdout, stderr string) {
	if len(args) > 0 && slices.Contains(patient, args[0]) && !slices.Contains(args, "--timeout") {
		args = append(slices.Clone(args), "--timeout", patience.String())
	}
	var out, err bytes.Buffer
	code = runAt(ctx, args, streams{out: &out, err: &err, now: time.Now}, deploymentOf(t))
	return code, out.String(), err.String()
}

func TestBadInputEndsWithCode2BeforeAnythingIsDone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ input, want string }{
		"empty":              {"", "is empty"},
		"not JSON":           {"hello", "is not JSON"},
		"missing field":      {strings.Replace(twoFlights, `"delay":-5,`, "", 1), `flights.json: entry 2: field "delay": is missing; use a whole number of minutes`},
		"code with a dot":    {strings.Replace(twoFlights, "HNL", "H.L", 1), `flights.json: entry 2: field "origin": airport "H.L": character '.' is not allowed`},
		"code with a star":   {strings.Replace(twoFlights, "HNL", "*", 1), `flights.json: entry 2: field "origin": airport "*": character '*' is not allowed`},
		"code with a space":  {strings.Replace(twoFlights, "LAS", "L S", 1), `flights.json: entry 1: field "destination": airport "L S": character ' ' is not allowed`},
		"code with a slash":  {strings.Replace(twoFlights, "LAS", "L/S", 1), `flights.json: entry 1: field "destination": airport "L/S": character '/' is not allowed`},
		"nation as a code":   {strings.Replace(twoFlights, "LAS", "nation", 1), `flights.json: entry 1: field "destination": airport "nation"`},
		"truncated":          {twoFlights[:150], "flights.json: entry 2: the JSON ends in the middle"},
		"more after the end": {twoFlights + "]", "flights.json: has more after the array"},
	} {
		t.Run(name, func(t *testing.T) {
			store, figures := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "out.json")
			code, stdout, stderr := command(t.Context(), t, "demo", "flights", "--input", flightsFile(t, c.input), "--store", store, "--json", figures)
			if code != 2 || !strings.Contains(stderr, c.want) || stdout != "" {
				t.Errorf("code %d, stdout %q, stderr %q; want 2, nothing, %q", code, stdout, stderr, c.want)
			}
			for _, name := range []string{store, figures} {
				if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("%s was made", filepath.Base(name))
				}
			}
		})
	}
}

func TestBadFlagsEndWithCode2(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"--workers 0: at least one worker is needed": {"--workers", "0"},
		"--duplicate 0: every event is sent":         {"--duplicate", "0"},
		"--kill -1: choose how many":                 {"--kill=-1"},
		"--partitions 0: choose 1 to 64":             {"--partitions", "0"},
		"use only one of them":                       {"--nats", "nats://localhost", "--store", "dir"},
		"--keep is about the streams":                {"--keep"},
		"must be one of":                             {"--fsync", "never"},
		"no such file":                               {"--input", filepath.Join(t.TempDir(), "none.json")},
		"--json: open":                               {"--json", filepath.Join(t.TempDir(), "none", "out.json")},
	} {
		code, stdout, stderr := command(t.Context(), t, append([]string{"demo", "flights"}, args...)...)
		if code != 2 || !strings.Contains(stderr, want) || stdout != "" {
			t.Errorf("%v: code %d, stdout %q, stderr %q; want 2, nothing, %q", args, code, stdout, stderr, want)
		}
	}
}

func TestWithJSONToStandardOutputNothingElseIsThere(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := command(t.Context(), t, "demo", "flights", "--input", flightsFile(t, twoFlights), "--fsync", "interval", "--duplicate", "2", "--json", "-")
	if code != 0 {
		t.Fatalf("code %d: %s", code, stderr)
	}
	var got struct {
		Sent     int  `json:"events_sent"`
		Receipts int  `json:"receipts"`
		Verified bool `json:"verified"`
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatalf("standard output is not JSON: %v\n%s", err, stdout)
	}
	if got.Sent != 4 || got.Receipts != 4 || !got.Verified {
		t.Errorf("got %+v, want 4 sent, 4 receipts, verified", got)
	}
	if !strings.Contains(stderr, "Verified by a plain NATS client") {
		t.Errorf("standard error does not tell people that it is verified:\n%s", stderr)
	}
}

func TestJSONToAFileLeavesTheSummaryOnStandardOutput(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "out.json")
	code, stdout, stderr := command(t.Context(), t, "demo", "flights", "--input", flightsFile(t, twoFlights), "--fsync", "interval", "--json", name)
	if code != 0 || stderr != "" || !strings.Contains(stdout, "Verified by a plain NATS client") {
		t.Errorf("code %d, stderr %q, stdout\n%s", code, stderr, stdout)
	}
	if data, err := os.ReadFile(name); err != nil || !json.Valid(data) {
		t.Errorf("the file holds %q, %v", data, err)
	}
}

func TestAnInterruptedDemoEndsWithCode130(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if code, _, stderr := command(ctx, t, "demo", "flights", "--input", flightsFile(t, twoFlights)); code != 130 || !strings.Contains(stderr, "interrupted") {
		t.Errorf("code %d, stderr %q", code, stderr)
	}
}

func TestARunThatIsNotVerifiedEndsWithCode1(t *testing.T) {
	t.Parallel()
	var people, figuresOut, stderr bytes.Buffer
	res := &demo.Result{Flights: 2, Verdict: &audit.Verdict{
		Differences: []audit.Difference{{Promise: audit.SumsAgree, Space: "LAS", Field: "arrivals", Found: "0", Expected: "1"}},
	}}
	err := finish(res, &people, &figures{&figuresOut, func() error { return nil }})
	if code := report(&stderr, err); code != 1 {
		t.Errorf("code %d, want 1: %v", code, err)
	}
	if !strings.Contains(people.String(), "LAS: arrivals: found 0, expected 1") {
		t.Errorf("the difference is not told:\n%s", &people)
	}
	if !strings.Contains(figuresOut.String(), `"verified": false`) {
		t.Errorf("the figures lack it:\n%s", &figuresOut)
	}
}
