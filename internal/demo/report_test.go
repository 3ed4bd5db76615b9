package demo

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/examples/flights"
	"github.com/settlehq/settle/examples/flights/audit"
)

// finished returns a run of two flights that went well.
func finished() *Result {
	tally := flights.Tally{
		"A": {Departures: 2, Arrivals: 0, DelaySum: 30, DistanceSum: 300, OnTime: 1},
		"B": {Arrivals: 1},
		"C": {Arrivals: 1},
	}
	r := &Result{
		Watched: []string{"A", "B"}, Ranking: []flights.Rank{{Airport: "A", OnTimeShare: 0.5}},
		Tally: tally, Flights: 2, Partitions: 4, Elapsed: 1500 * time.Millisecond,
		Notes: []Note{{Kind: Killed, Worker: "w2", Share: 0.5}, {Kind: Joined, Worker: "w3", Share: 0.75}},
		Verdict: &audit.Verdict{
			Departures: 2, Arrivals: 2, Receipts: 4, Takeovers: 1, Commits: 9, Airports: tally,
		},
	}
	r.report(6)
	return r
}

func TestTheReportHasExactlyTheseNames(t *testing.T) {
	data, err := finished().Report.JSON()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "events_sent": 6,
  "departures_handled": 2,
  "arrivals_handled": 2,
  "receipts": 4,
  "lost": 0,
  "duplicates": 0,
  "out_of_order": 0,
  "unobserved_runs": 0,
  "takeovers": 1,
  "commits": 9,
  "seconds": 1.5,
  "events_per_second": 3,
  "verified": true,
  "airports": {
    "A": {
      "departures": 2,
      "arrivals": 0,
      "delay_sum": 30,
      "distance_sum": 300
    },
    "B": {
      "departures": 0,
      "arrivals": 1,
      "delay_sum": 0,
      "distance_sum": 0
    },
    "C": {
      "departures": 0,
      "arrivals": 1,
      "delay_sum": 0,
      "distance_sum": 0
    }
  }
}
`
	if string(data) != want {
		t.Errorf("got %s", data)
	}
}

func summaryOf(t *testing.T, r *Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Summary(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTheSummarySaysWhatWasProven(t *testing.T) {
	const want = `The 2 busiest airports, as the space "nation" ranks them

      airport  departures  arrivals  mean delay  on time
   1  A                 2         0    15.0 min   50.0 %  ██████

  sent      6 events: 2 departures, each 3 times with its same id
  handled   2 departures and 2 arrivals in 1.5 s: 3 a second
  committed 9 commits in 4 logs
  killed    w2 at 50 %
  takeovers 1, each of a space that another worker had served

Verified by a plain NATS client, against one plain pass over the input

  ✓ nothing lost     each of 2 departures and 2 arrivals has a receipt
  ✓ nothing twice    none has a second one
  ✓ in order         every airport handled its departures in input order
  ✓ sums agree       departures, arrivals, delay and distance of 3 airports
  ✓ watches current  the ranking and the 2 watched airports ended up right
  ✓ unwatched idle   punctuality was never computed for the other 1 airport
`
	if got := summaryOf(t, finished()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTheSummaryOfAFailureNamesTwentyDifferencesAndCountsTheRest(t *testing.T) {
	r := finished()
	for i := range 23 {
		r.Verdict.Differences = append(r.Verdict.Differences, audit.Difference{
			Promise: audit.InOrder, Space: "A", Field: fmt.Sprint("departure ", i), Found: "1", Expected: "2",
		})
	}
	r.Stalled = "nothing entered the logs"
	r.report(2)
	if r.Report.Verified {
		t.Error("reported as verified")
	}
	got := summaryOf(t, r)
	for _, want := range []string{
		"\nNOT VERIFIED: 23 differences\n", "\n  ✓ nothing lost ", "\n  ✗ in order ", "\n  nothing entered the logs\n",
		"\n  A: departure 0: found 1, expected 2\n", "\n  A: departure 19: found 1, expected 2\n  and 3 more\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if strings.Contains(got, "departure 20") {
		t.Errorf("more than 20 differences in\n%s", got)
	}
}
