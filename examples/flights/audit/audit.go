package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/settlehq/settle/examples/flights"
)

// Run is the information about a run besides its stored data.
type Run struct {
	// Flights is the input.
	Flights []flights.Flight
	// Watched are the airports that were watched and ranked.
	Watched []string
	// Punctuality and Ranking are the values that the watches delivered last, as
	// JSON; "absent" for a document that does not exist.
	Punctuality map[string]string
	Ranking     string
	// UnobservedRuns is how often workers report that they computed the punctuality of
	// an airport without a watch.
	UnobservedRuns int
}

// Verdict is the result of the audit.
type Verdict struct {
	// Departures and Arrivals were handled; Receipts are those of both.
	Departures, Arrivals, Receipts int
	// Lost departures and arrivals have no receipt with the outcome handled.
	Lost int
	// Duplicates are receipts beyond the first of a departure or arrival.
	Duplicates int
	// OutOfOrder departures were handled after a later one of their airport, and
	// arrivals after a later one from the same origin.
	OutOfOrder int
	// UnobservedRuns is Run's count or that of the log, whichever is larger.
	UnobservedRuns int
	// Takeovers of a space by another worker than its first.
	Takeovers int
	Commits   int
	// Airports are the statistics of all airports, as the STATE buckets have them.
	Airports map[string]flights.Stats
	// Differences are the violations of promises.
	Differences []Difference
}

// Verified reports whether no promise is violated.
func (v *Verdict) Verified() bool { return len(v.Differences) == 0 }

// Difference is one violation of a promise.
type Difference struct {
	// Promise is the one that it breaks.
	Promise         Promise
	Space           string
	Field           string // of a document, or what else it is about
	Found, Expected string
}

func (d Difference) String() string {
	return fmt.Sprintf("%s: %s: found %s, expected %s", d.Space, d.Field, d.Found, d.Expected)
}

// Promise is a property that an audit proves.
type Promise string

// The promises.
const (
	// NothingLost requires a receipt of every departure and arrival, at its airport.
	NothingLost Promise = "nothing lost"
	// NothingTwice requires that none has a second one, and that there are no others.
	NothingTwice Promise = "nothing twice"
	// InOrder requires that departures and arrivals were handled in order.
	InOrder Promise = "in order"
	// SumsAgree requires that the documents match the input and the log.
	SumsAgree Promise = "sums agree"
	// WatchesCurrent requires that watched documents follow from the sums.
	WatchesCurrent Promise = "watches current"
	// UnwatchedIdle requires that nothing was computed without an observer.
	UnwatchedIdle Promise = "unwatched idle"
)

// Holds reports whether no difference breaks a promise.
func (v *Verdict) Holds(p Promise) bool {
	return !slices.ContainsFunc(v.Differences, func(d Difference) bool { return d.Promise == p })
}

// Judge compares the stored data with the plain pass over the input. The error is
// about stored data that cannot be read at all.
func Judge(run Run, stored *Stored) (*Verdict, error) {
	a := &auditor{
		run: run, stored: stored, tally: flights.Plain(run.Flights),
		watched: map[string]bool{}, verdict: &Verdict{Airports: map[string]flights.Stats{}},
	}
	for _, code := range run.Watched {
		a.watched[code] = true
	}
	a.checkHandlings()
	a.checkStats()
	a.checkWatches()
	a.checkUnwatched()
	return a.verdict, a.checkBuckets()
}

// auditor is one audit in progress.
type auditor struct {
	run     Run
	stored  *Stored
	tally   flights.Tally
	watched map[string]bool
	verdict *Verdict
}

func (a *auditor) differ(p Promise, space, field string, found, expected any) {
	a.verdict.Differences = append(a.verdict.Differences, Difference{p, space, field, fmt.Sprint(found), fmt.Sprint(expected)})
}

// check records a difference if there is one.
func (a *auditor) check(p Promise, space, field string, found, expected any) {
	if found != expected {
		a.differ(p, space, field, found, expected)
	}
}

// checkUnwatched counts computations without an observer: transactions in the log, and
// runs that workers report, since a run that changed nothing leaves no transaction.
func (a *auditor) checkUnwatched() {
	logged := 0
	for _, c := range a.stored.Commits {
		if a.watched[c.Space] || c.Space == flights.Nation {
			continue
		}
		for _, tx := range c.Txs {
			if strings.HasPrefix(tx.By, "compute ") {
				logged++
				a.differ(UnwatchedIdle, c.Space, fmt.Sprintf("log sequence %d", c.Seq), tx.By, "nothing computed without a watch")
			}
		}
	}
	a.verdict.UnobservedRuns = max(logged, a.run.UnobservedRuns)
	if logged == 0 {
		a.check(UnwatchedIdle, "all unwatched airports", "runs of "+flights.DocPunctuality, a.run.UnobservedRuns, 0)
	}
}
