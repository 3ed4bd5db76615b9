package daily

import (
	"fmt"
	"reflect"
)

// Verdict is what a comparison of a report with the plain one and with the ledger of the performers has found.
type Verdict struct {
	// Actions is the number of actions that were performed, Attempts that of all attempts. Failures are attempts that failed, as
	// planned; Repeated are those that a worker had begun when it was killed, or whose end was not stored yet, and that another one has begun again.
	Actions, Attempts, Failures, Repeated int
	// Differences are empty if everything is as it must be.
	Differences []string
}

func (v *Verdict) differ(format string, args ...any) {
	v.Differences = append(v.Differences, fmt.Sprintf(format, args...))
}

// Add adds the verdict about another run.
func (v *Verdict) Add(w Verdict) {
	v.Actions, v.Attempts, v.Failures, v.Repeated = v.Actions+w.Actions, v.Attempts+w.Attempts, v.Failures+w.Failures, v.Repeated+w.Repeated
	v.Differences = append(v.Differences, w.Differences...)
}

// Judge compares the report of a run with the plain one, and its receipts with the entries of the ledger about this run: each
// action that was performed must have its receipt in the report, once, and the report no other.
func Judge(got, want *Report, ledger []Entry) (v Verdict) {
	v.equal(got, want)
	a := account(ledger, &v)
	receipts := map[string]int{}
	for _, key := range got.Receipts {
		receipts[key]++
		if receipts[key] == 2 {
			v.differ("%s: the action %s counts twice in the report", want.Day, key)
		}
		if !a.ended[key] {
			v.differ("%s: the report has the receipt %s of an action that has not ended", want.Day, key)
		}
	}
	for key := range a.ended { // any order: the number of differences matters
		if receipts[key] == 0 {
			v.differ("%s: the action %s was performed, and is not in the report", want.Day, key)
		}
	}
	if v.Actions = len(a.ended); v.Actions != want.Actions() {
		v.differ("%s: %d actions were performed, want %d", want.Day, v.Actions, want.Actions())
	}
	if len(a.failed) != want.Failures() {
		v.differ("%s: %d actions failed at first, want %d", want.Day, len(a.failed), want.Failures())
	}
	return v
}

func (v *Verdict) equal(got, want *Report) {
	plain := *got
	plain.Receipts = nil
	if len(plain.Airports) == len(want.Airports) {
		for i := range want.Airports {
			if plain.Airports[i] != want.Airports[i] {
				v.differ("%s: %s is %+v, want %+v", want.Day, want.Airports[i].Airport, plain.Airports[i], want.Airports[i])
			}
		}
		plain.Airports = want.Airports
	}
	if !reflect.DeepEqual(&plain, want) {
		v.differ("%s: the report is %+v, want %+v", want.Day, plain, *want)
	}
}

// accounts are what a ledger says, by keys of actions.
type accounts struct{ ended, failed map[string]bool }

// account counts attempts.
func account(ledger []Entry, v *Verdict) accounts {
	a := accounts{map[string]bool{}, map[string]bool{}}
	type attempt struct {
		key    string
		number int
	}
	begun, failures := map[attempt]bool{}, map[attempt]bool{}
	for _, e := range ledger {
		at := attempt{e.Key, e.Attempt}
		switch e.What {
		case Begun:
			if v.Attempts++; begun[at] {
				v.Repeated++
			}
			begun[at] = true
		case Ended:
			a.ended[e.Key] = true
		case Failed:
			a.failed[e.Key], failures[at] = true, true
		}
	}
	v.Failures = len(failures)
	return a
}
