package demo

import (
	"slices"
	"strings"
	"testing"
	"time"
)

var midway = Snapshot{
	Phase: Running, Sent: 20_000, ToSend: 20_000, Handled: 20_000, Total: 40_000, Commits: 12_345, Takeovers: 1,
	Workers: []string{"w1", "w3"}, Elapsed: 4 * time.Second,
	Airports: []Airport{
		{Code: "ORD", Rank: 2, Known: true, Departures: 1_095, MeanDelay: 7.53, OnTime: 0.5, Revision: 4_321, Owner: "w1"},
		{Code: "SLC", Rank: 1, Known: true, Departures: 7, MeanDelay: -2, OnTime: 1, Revision: 12, Owner: "w2"},
		{Code: "XNA"},
	},
}

func newFrame(s style) *frame {
	f := &frame{style: s}
	f.begin(midway.Total)
	return f
}

func TestAFrameShowsTheWatchedAirportsAndHowFarTheRunIs(t *testing.T) {
	f := newFrame(false)
	f.notes = []Note{{Kind: Killed, Worker: "w2", Share: 0.25}, {Kind: Joined, Worker: "w3", Share: 0.3}}
	want := []string{
		"      airport  departures  mean delay  on time                revision  owner",
		"   2  ORD           1,095     7.5 min   50.0 %  ██████            4,321  w1",
		"   1  SLC               7    -2.0 min  100.0 %  ████████████         12  w2 ✗",
		"      XNA               -",
		"",
		"  handled   ███████████████░░░░░░░░░░░░░░░   50%  20,000 of 40,000  5,000/s",
		"  workers   w1 w3                                 12,345 commits, 1 takeover",
		"  events    w3 joined at 30 % · w2 killed at 25 %",
	}
	if got := f.render(midway, 79, 24); !slices.Equal(got, want) {
		t.Errorf("frame\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAFrameFitsIntoASmallTerminal(t *testing.T) {
	lines := newFrame(true).render(midway, 40, 3)
	if len(lines) != 3 || !strings.Contains(lines[0], "handled") {
		t.Errorf("of a frame cut to 3 lines, these are left: %q", lines)
	}
	for _, line := range lines {
		if n := columns(line); n > 40 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
}

// columns returns the width of a line without its colours.
func columns(line string) int {
	for {
		before, after, ok := strings.Cut(line, "\x1b[")
		if !ok {
			return len([]rune(line))
		}
		_, after, _ = strings.Cut(after, "m")
		line = before + after
	}
}

func TestAFrameHasNoColoursUnlessTheyAreWanted(t *testing.T) {
	for _, line := range newFrame(false).render(midway, 100, 24) {
		if strings.Contains(line, "\x1b") {
			t.Errorf("colour without being asked: %q", line)
		}
	}
}

func TestNumbersReadWell(t *testing.T) {
	if got := count(1, "worker") + ", " + count(2000, "worker"); got != "1 worker, 2,000 workers" {
		t.Error(got)
	}
}
