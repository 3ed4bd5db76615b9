package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/bus/survey"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/status"
	"github.com/settlehq/settle/worker/roster"
)

func TestFleet_ShowsMembersPartitionsAndWhereASpaceIs(t *testing.T) {
	t.Parallel()
	url, client := deployed(t, orders())
	if _, err := client.Call(t.Context(), settle.Outgoing{Space: "alice", Stream: "order", ID: settle.ID("o1")}); err != nil {
		t.Fatal(err)
	}
	wantSoon(t, 0, "1 worker, 1 coordinator, 1 partition | w1 | c1 | here", "fleet", "--nats", url)
	wantSoon(t, 0, "partition 0 of 1 | w1 serves it", "fleet", "--nats", url, "--space", "alice")
	out := wantSoon(t, 0, `"state": "here" | "figures": {`, "fleet", "--nats", url, "--json")
	var f fleet.Fleet
	if err := json.Unmarshal([]byte(out), &f); err != nil {
		t.Fatal(err)
	}
	if len(f.Workers) != 1 || f.Workers[0].Figures == nil || f.Partitions[0].Owner != "w1" {
		t.Errorf("the JSON is\n%s", out)
	}
}

func TestFleet_WithNobodyThereItSaysWhatToDo(t *testing.T) {
	t.Parallel()
	server := natstest.StartServer(t, embedded.Config{Listen: ":0"})
	var out strings.Builder
	if code := run(t.Context(), []string{"fleet", "--nats", server.ClientURL()}, io.Discard, &out); code == 0 || !strings.Contains(out.String(), "no deployment") {
		t.Errorf("without a deployment: exit code %d, %q", code, &out)
	}
	b, err := bus.Connect(t.Context(), bus.Config{Server: server, Partitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if code := run(t.Context(), []string{"fleet", "--nats", server.ClientURL()}, &out, io.Discard); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"no worker runs", "Start one: spaceworker", "no coordinator runs"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output does not say %q:\n%s", want, &out)
		}
	}
}

// A fleet of twenty workers, one gone, one hanging and one leaving, fits into 80 columns.
func TestFleet_FitsIntoEightyColumns(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	f := &fleet.Fleet{At: at, Coordinators: []fleet.Member{{ID: "c1", State: fleet.Here, Since: at.Add(-3 * time.Hour)}}}
	for i := range 20 {
		m := fleet.Member{
			ID: fmt.Sprintf("w%d", i+1), State: fleet.Here, Since: at.Add(-time.Duration(i*i) * time.Minute), Weight: 1,
			Host: "a-host-with-a-long-name.example.com", Version: "1.2.3", Holds: []int{i, i + 1, i + 2},
			Figures: &status.Figures{Worker: "w", Receipts: uint64(i) * 123_456, Awake: i * 100},
		}
		switch i {
		case 3:
			m.State, m.Figures = fleet.Gone, nil
		case 7:
			m.State, m.Figures = fleet.Silent, nil
		case 9:
			m.State = fleet.Leaving
		}
		f.Workers = append(f.Workers, m)
		f.Partitions = append(f.Partitions, fleet.Partition{
			Number: i, Owner: m.ID, Served: []string{m.ID}, Events: uint64(i) * 1000, Oldest: at.Add(-time.Duration(i) * time.Second), Took: time.Duration(i) * time.Millisecond,
		})
	}
	f.Partitions[3].Served = nil
	f.Partitions[9].Owner = "w1"
	var out strings.Builder
	printFleet(sheet{out: &out}, f, "settle", 80)
	t.Logf("\n%s", &out)
	for line := range strings.SplitSeq(out.String(), "\n") {
		if n := len([]rune(line)); n > 80 && !strings.HasPrefix(line, "!") {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{"w4 has ended without leaving", "w8 does not answer", "no worker yet, next: w4", "w10, moves to w1"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output does not say %q", want)
		}
	}
	out.Reset()
	printFleet(sheet{out: &out}, f, "settle", 120)
	t.Logf("\n%s", &out)
}

// Workers with different programs are reported; workers that announce no program do not count as
// different.
func TestFleet_WorkersOfDifferentProgramsAreShown(t *testing.T) {
	t.Parallel()
	url, _ := deployed(t, orders())
	b, err := bus.Connect(t.Context(), bus.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, program := range []string{"counter", "flights"} {
		w, err := settle.StartWorker(t.Context(), b, settle.WorkerConfig{ID: program + "-1", Programs: settle.Always(orders()), Program: program})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Kill()
		got := wantSoon(t, 0, "PROGRAM | "+program+"-1  here", "fleet", "--nats", url)
		if program == "counter" && strings.Contains(got, "! workers of different programs") {
			t.Errorf("with %s:\n%s", program, got)
		}
		if program == "counter" {
			saysNot(t, wantSoon(t, 1, "2 workers: ", "doctor", "--nats", url, "--json"), "of different programs")
		}
	}
	wantSoon(t, 1, "of different programs: counter (counter-1), flights (flights-1)", "doctor", "--nats", url, "--json")
	wantSoon(t, 0, "! workers of different programs: counter (counter-1), flights (flights-1). Events", "fleet", "--nats", url)
}

// The ranking shows which worker gets a partition, and agrees with the division.
func TestFleet_TheRankingExplainsTheDivision(t *testing.T) {
	t.Parallel()
	var members []model.Member
	for i := range 5 {
		members = append(members, model.Member{ID: fmt.Sprintf("w%d", i+1), Weight: float64(1 + i%2)})
	}
	const n = 16
	for p, owner := range roster.Divide(n, members) {
		before := 1e9
		for _, s := range roster.Explain(p, n, members) {
			if s.Score > before {
				t.Errorf("partition %d: %s stands behind one with a lower score", p, s.Member)
			}
			before = s.Score
			if s.Owner != (s.Member == owner) {
				t.Errorf("partition %d: %s is said to be the owner: %t, it is %s", p, s.Member, s.Owner, owner)
			}
		}
	}
}

// `nats micro info NAME` must show one answer per process.
func TestFleet_EveryServiceOfAProcessHasANameOfItsOwn(t *testing.T) {
	t.Parallel()
	url, _ := deployed(t, orders())
	all := []string{live.ServiceName, status.ServiceName, history.ServiceName}
	names := map[string]int{}
	seen := func() bool {
		survey, err := survey.New(t.Context(), bus.Config{URL: url}, survey.Config{})
		if err != nil {
			t.Fatal(err)
		}
		clear(names)
		for _, s := range survey.Services {
			names[s.Name]++
		}
		return !slices.ContainsFunc(all, func(name string) bool { return names[name] == 0 })
	}
	for begun := time.Now(); !seen() && time.Since(begun) < patience; { // a worker that is slow to answer is missing
		t.Logf("services: %v", names)
	}
	for _, name := range all {
		if names[name] != 1 {
			t.Errorf("%d answers under the name %s, of one process: %v", names[name], name, names)
		}
	}
}

func TestFleet_WatchEndsWhenItIsInterrupted(t *testing.T) {
	t.Parallel()
	url, _ := deployed(t, orders())
	ctx, cancel := context.WithCancel(t.Context())
	looks := 0
	out := writerFunc(func(p []byte) (int, error) {
		if looks += strings.Count(string(p), "WORKER"); looks >= 2 {
			cancel()
		}
		return len(p), nil
	})
	if code := run(ctx, []string{"fleet", "--nats", url, "--watch", "--every", "1ms"}, out, io.Discard); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if looks < 2 {
		t.Errorf("%d looks", looks)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
