package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/settlehq/settle/internal/parallel"
)

// TestMain runs the program instead of the tests where the demo has started this file as
// one of its processes, and a worker, a coordinator or `settle dev` where a test has.
func TestMain(m *testing.M) {
	if role, id, is := strings.Cut(os.Getenv(roleOfProcess), " "); is {
		serveAsProcess(role, id)
	}
	if len(os.Args) > 2 && os.Args[1] == "demo" && os.Args[2] == "role" || len(os.Args) == 2 && os.Args[1] == "dev" {
		main()
	}
	parallel.Allow()
	os.Exit(m.Run())
}

// manyFlights writes an input file of n flights between four airports.
func manyFlights(t *testing.T, n int) string {
	t.Helper()
	airports := []string{"DTW", "LAS", "HNL", "SLC"}
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"date":"2001/01/01 %02d:%02d","delay":%d,"distance":%d,"origin":%q,"destination":%q}`,
			i/60%24, i%60, i%50-10, 100+i, airports[i%4], airports[(i+1+i/4%3)%4]))
	}
	name := filepath.Join(t.TempDir(), "many.json")
	if err := os.WriteFile(name, []byte("["+strings.Join(list, ",")+"]"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestWorkersThatAreProcessesOfTheirOwnAreKilledAndTheRunIsVerified(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := command(t.Context(), t, "demo", "flights", "--input", manyFlights(t, 600), "--fsync", "interval",
		"--processes", "--workers", "2", "--kill", "2", "--json", "-")
	if code != 0 {
		t.Fatalf("code %d: %s", code, stderr)
	}
	var got struct {
		Receipts int  `json:"receipts"`
		Verified bool `json:"verified"`
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || got.Receipts != 1200 || !got.Verified {
		t.Errorf("got %+v (%v), want 1200 receipts, verified\n%s", got, err, stderr)
	}
	if !strings.Contains(stderr, "2 worker processes") || !strings.Contains(stderr, "2 processes by SIGKILL: w") {
		t.Errorf("it is not told that processes were killed:\n%s", stderr)
	}
}

func TestAProcessOfTheDemoThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	code, _, stderr := command(t.Context(), t, "demo", "role", "worker", "--id", "w1", "--nats", "nats://127.0.0.1:1", "--prefix", "p", "--heartbeat", "1s", "--checkpoint", "1s")
	if code != 1 || !strings.Contains(stderr, "connect to NATS") {
		t.Errorf("code %d, stderr %q", code, stderr)
	}
}
