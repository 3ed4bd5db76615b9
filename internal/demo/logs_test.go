package demo

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/examples/flights"
	"github.com/settlehq/settle/model"
)

// entry returns a log entry with the given rest of a commit.
func entry(space, runtime, rest string) model.LogEntry {
	return model.LogEntry{Space: space, Data: fmt.Appendf(nil, `{"v":1,"sp":%q,"rt":%q%s,"cur":{}}`, space, runtime, rest)}
}

func handling(stream, event, flight string) string {
	return fmt.Sprintf(`,"tx":[{"n":1,"by":"handle %s","rc":{"ev":%q,"o":"handled","r":{"flight":%q}}}]`, stream, event, flight)
}

func TestARunIsDoneWhenEveryFlightHasDepartedAndArrived(t *testing.T) {
	l := newLogs([]flights.Flight{{ID: "f1"}, {ID: "f2"}}, time.Time{})
	for i, e := range []model.LogEntry{
		entry("A", "w1", handling("departure", "f1", "f1")),
		entry("B", "w1", handling("arrival", "A:1:1:0", "f1")),
		entry("A", "w1", handling("departure", "f2", "f2")),
		entry("A", "w1", handling("departure", "f2", "f2")), // twice: the audit's business
		entry("A", "w1", handling("departure", "f9", "f9")), // of no flight
		entry("nation", "w1", handling("configure", "f1", "")),
		entry("B", "w1", `,"tx":[{"n":1,"by":"compute punctuality"}]`),
	} {
		if err := l.take(e, time.Time{}); err != nil {
			t.Fatal(err)
		}
		if l.done() {
			t.Fatalf("done after entry %d", i)
		}
	}
	failed := strings.Replace(handling("arrival", "A:1:2:0", "f2"), `"handled"`, `"handled","err":""`, 1)
	if err := l.take(entry("B", "w1", failed), time.Time{}); err != nil {
		t.Fatal(err)
	}
	if !l.done() {
		t.Errorf("not done: %+v are open", l.open)
	}
}

func TestMarksAreReachedByWhatIsHandled(t *testing.T) {
	l := newLogs([]flights.Flight{{ID: "f1"}, {ID: "f2"}}, time.Time{})
	reached := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	one, two, none := l.at(1), l.at(2), l.at(0)
	if reached(one) || !reached(none) {
		t.Error("before the first event only mark 0 is reached")
	}
	_ = l.take(entry("A", "w1", handling("departure", "f1", "f1")), time.Time{})
	if !reached(one) || reached(two) {
		t.Error("one event reaches mark 1 and not mark 2")
	}
	if late := l.at(1); !reached(late) {
		t.Error("a mark that lies behind is reached at once")
	}
}

func TestTakeoversCountFromTheSecondOwnerOn(t *testing.T) {
	l := newLogs(nil, time.Time{})
	for _, e := range []model.LogEntry{
		entry("A", "w1", `,"own":true`), entry("B", "w1", `,"own":true`), entry("A", "w2", `,"own":true`), entry("A", "w3", `,"own":true`),
	} {
		_ = l.take(e, time.Time{})
	}
	s := Snapshot{Airports: []Airport{{Code: "A"}, {Code: "B"}, {Code: "C"}}}
	l.snapshot(&s)
	if s.Takeovers != 2 || s.Commits != 4 {
		t.Errorf("%d takeovers in %d commits, want 2 in 4", s.Takeovers, s.Commits)
	}
	if s.Airports[0].Owner != "w3" || s.Airports[1].Owner != "w1" || s.Airports[2].Owner != "" {
		t.Errorf("owners are %+v", s.Airports)
	}
}

// brokenLog delivers entries that cannot be decoded.
type brokenLog struct{}

func (brokenLog) FollowLog(ctx context.Context, _ int, _ uint64, deliver func(model.LogEntry)) error {
	deliver(model.LogEntry{Space: "A", Data: []byte("?")})
	<-ctx.Done()
	return ctx.Err()
}

func TestACommitThatCannotBeReadEndsTheRun(t *testing.T) {
	l := newLogs(nil, time.Time{})
	if err := l.follow(t.Context(), brokenLog{}, 0); err == nil || !strings.Contains(err.Error(), "decode commit") {
		t.Errorf("got %v", err)
	}
}
