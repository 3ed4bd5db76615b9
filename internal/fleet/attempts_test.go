package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// tailed is a bus from which only the tail of a log is requested.
type tailed struct {
	Bus
	entries []model.LogEntry
}

func (b tailed) LogTail(context.Context, int, int) ([]model.LogEntry, error) { return b.entries, nil }

// For each space, the last attempt record without a receipt shows which attempt its worker is making, or
// was making. An attempt that returned, one with a receipt, and the first recorded one while a worker
// serves the partition do not count as lost.
func TestLostAttempts_TheLastRecordOfEachSpaceIsTakenThatDidNotComeBack(t *testing.T) {
	at := func(space, event string, tries int, back bool, ended ...string) model.LogEntry {
		c := &model.Commit{Version: model.CommitVersion, Space: space}
		if event != "" {
			c.Trying = &model.Trying{By: receipts.By("pay"), Event: event, Tries: tries, Back: back}
		}
		for _, event := range ended {
			c.Txs = append(c.Txs, model.Tx{By: receipts.By("pay"), Receipt: &model.Receipt{Event: event, Outcome: model.Handled}})
		}
		return model.LogEntry{Space: space, Data: model.AppendCommit(nil, c, nil)}
	}
	b := tailed{entries: []model.LogEntry{
		at("decided", "e1", 3, false), at("decided", "", 0, false, "e0", "e1"), at("next", "e1", 3, false), at("next", "e2", 1, false, "e1"),
		at("back", "e1", 2, true), at("first", "e1", 1, false),
		at("third", "e1", 2, false), at("third", "e1", 3, false), at("second", "e2", 2, false), at("second", "", 0, false, "e1"),
		{Space: "strange", Data: []byte("{")},
	}}
	for served, want := range map[string]string{
		"w1": "second pay/e2 on w1: attempt 2 has begun, and the one before it never returned: the process ended, or the handler was given up; " +
			"third pay/e1 on w1: attempt 3 has begun, and the 2 before it never returned: the process ended, or the handler was given up",
		"": "first pay/e1 on no worker: attempt 1 has begun, and its worker does not run any more; next pay/e2 on no worker: attempt 1 has begun, and its worker does not run any more; " +
			"second pay/e2 on no worker: attempt 2 has begun, and the one before it never returned: the process ended, or the handler was given up; " +
			"third pay/e1 on no worker: attempt 3 has begun, and the 2 before it never returned: the process ended, or the handler was given up",
	} {
		p := Partition{Owner: served}
		if served != "" {
			p.Served = []string{served}
		}
		var got []string
		for _, s := range p.lostAttempts(t.Context(), b) {
			got = append(got, fmt.Sprintf("%s %s/%s on %s: %s", s.Space, s.Stream, s.Event, s.Worker, s.Reason))
		}
		slices.Sort(got)
		if said := strings.Join(got, "; "); said != want {
			t.Errorf("served by %q: %s\nwant %s", served, said, want)
		}
	}
}

// The log is read for this only if a worker may have ended.
func TestEndedProcess_IsSuspectedOfWorkersThatAreGoneOrYoung(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	old, young := Member{ID: "w1", State: Here, Since: now.Add(-time.Hour)}, Member{ID: "w2", State: Here, Since: now.Add(-time.Minute)}
	gone := Member{ID: "w3", State: Gone, Since: now.Add(-time.Hour)}
	by := func(ids ...string) *Partition { return &Partition{Served: ids} }
	for i, c := range []struct {
		workers []Member
		p       *Partition
		want    bool
	}{
		{[]Member{old}, by("w1"), false},
		{[]Member{old, young}, by("w1"), false},
		{[]Member{old, young}, by("w2"), true},
		{[]Member{old, gone}, by("w1"), true},
		{[]Member{old}, by(), true},
	} {
		if got := (&Fleet{At: now, Workers: c.workers}).endedProcess(c.p); got != c.want {
			t.Errorf("case %d: %v", i, got)
		}
	}
}
