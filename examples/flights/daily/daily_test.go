package daily

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/examples/flights"
	"github.com/settlehq/settle/settletest"
)

// inMemory runs the workflow of a day in memory, and returns its report and its ledger.
func inMemory(t *testing.T, day string) (Report, []Entry) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger")
	p, err := Program(Config{Flights: flights.BuiltIn, Ledger: &Ledger{Path: path, Worker: "w1"}})
	if err != nil {
		t.Fatal(err)
	}
	s := settletest.New(t, p).Space("day")
	s.Call("workflow-start", map[string]any{"workflow": Workflow, "run": "r", "args": map[string]any{"day": day, "pause": "1h"}})
	settle := func() {
		for s.Perform() > 0 {
			s.Advance(time.Second) // the pause before the next attempt
		}
	}
	settle()
	s.Expect("run_r", "running", "state")
	s.World().Restart()
	s.Advance(time.Hour)
	settle()
	s.Call("workflow-signal", map[string]any{"run": "r", "signal": Approve, "value": "ann"})
	settle()
	s.Expect("run_r", "done", "state")
	ledger, _, err := ReadLedger(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	var r Report
	if err := json.Unmarshal([]byte(s.Get("run_r", "result").String()), &r); err != nil {
		t.Fatal(err)
	}
	return r, ledger
}

func TestDaily_TheReportIsThatOfThePlainLoop(t *testing.T) {
	t.Parallel()
	all, err := flights.BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	day := Days(all, 1)[0]
	want := Plain(all, day, "ann")
	got, ledger := inMemory(t, day)
	v := Judge(&got, &want, ledger)
	for _, d := range v.Differences {
		t.Error(d)
	}
	if v.Actions != 299 || v.Failures != 10 || v.Attempts != v.Actions+v.Failures || v.Repeated != 0 || want.SetAside != 1 {
		t.Errorf("%+v, %d set aside", v, want.SetAside)
	}
	if got.Title != "2001/01/01: 221 flights from 70 airports, approved by ann" {
		t.Error(got.Title)
	}
	broken(t, &got, &want, ledger)
}

// broken checks that each thing that may go wrong is a difference.
func broken(t *testing.T, got, want *Report, ledger []Entry) {
	t.Helper()
	last := got.Receipts[len(got.Receipts)-1]
	for text, change := range map[string]func(r *Report, l []Entry) []Entry{
		"LAS is {": func(r *Report, l []Entry) []Entry {
			i := slices.IndexFunc(r.Airports, func(a Airport) bool { return a.Airport == "LAS" })
			r.Airports[i].Late++
			return l
		},
		"the report is {": func(r *Report, l []Entry) []Entry { r.Flights--; return l },
		"counts twice":    func(r *Report, l []Entry) []Entry { r.Receipts = append(r.Receipts, last); return l },
		"and is not in the report": func(r *Report, l []Entry) []Entry {
			r.Receipts = r.Receipts[1:]
			return l
		},
		"of an action that has not ended": func(_ *Report, l []Entry) []Entry {
			return slices.DeleteFunc(l, func(e Entry) bool { return e.Key == last })
		},
		"300 actions were performed, want 299": func(_ *Report, l []Entry) []Entry {
			return append(l, Entry{Key: "day/r/9", What: Ended})
		},
		"11 actions failed at first, want 10": func(_ *Report, l []Entry) []Entry {
			return append(l, Entry{Key: last, Attempt: 1, What: Failed})
		},
	} {
		r := *got
		r.Airports, r.Receipts = slices.Clone(got.Airports), slices.Clone(got.Receipts)
		v := Judge(&r, want, change(&r, slices.Clone(ledger)))
		if !strings.Contains(strings.Join(v.Differences, "\n"), text) {
			t.Errorf("%q is not found: %v", text, v.Differences)
		}
	}
}

func TestDaily_AnAttemptThatIsBegunAgainIsCounted(t *testing.T) {
	t.Parallel()
	v := Verdict{}
	account([]Entry{{Key: "a", Attempt: 1, What: Begun}, {Key: "a", Attempt: 1, What: Begun}, {Key: "a", Attempt: 1, What: Ended}, {Key: "a", Attempt: 1, What: Ended}}, &v)
	if v.Attempts != 2 || v.Repeated != 1 || v.Failures != 0 {
		t.Errorf("%+v", v)
	}
}

func TestLedger_ALineThatIsBeingWrittenIsLeftForTheNextTime(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger")
	if list, next, err := ReadLedger(path, 0); err != nil || list != nil || next != 0 {
		t.Fatalf("%v, %d, %v", list, next, err)
	}
	l := &Ledger{Path: path, Worker: "w"}
	if err := l.write(Entry{Key: "a", What: Begun}); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(`{"key":`); err != nil {
		t.Fatal(err)
	}
	list, next, err := ReadLedger(path, 0)
	if err != nil || len(list) != 1 || list[0].Worker != "w" {
		t.Fatalf("%v, %v", list, err)
	}
	if _, err := f.WriteString("\"b\"}\n"); err != nil {
		t.Fatal(err)
	}
	if list, _, err = ReadLedger(path, next); err != nil || len(list) != 1 || list[0].Key != "b" {
		t.Errorf("%v, %v", list, err)
	}
}
