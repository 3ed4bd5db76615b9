package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/settlehq/settle/status"
)

// Actions whose tasks fail are listed for as long as that needs attention: a task that is tried again for as long as it is, those that were given up for an
// hour after the last one.
func TestFailing_IsForgottenAnHourAfterTheLastTaskWasGivenUp(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	f := &Fleet{At: now, Workers: []Member{
		{Figures: &status.Figures{FailingCount: 22, Failing: []status.FailingAction{
			{Space: "a", Action: "charge", Key: "o2", Attempts: 3, GivenUp: 2, Error: "closed\nfor the day", At: now.Add(-59 * time.Minute)},
			{Space: "b", Action: "charge", Key: "o3", Attempts: 1, GivenUp: 1, Error: "no such card", At: now.Add(-61 * time.Minute)},
		}}},
		{Figures: &status.Figures{FailingCount: 1, Failing: []status.FailingAction{{Space: "c", Action: "ship", Key: "o4", Attempts: 7, Error: "no ship", At: now}}}},
		{},
	}}
	list, unnamed := f.Failing()
	var texts []string
	for i := range list {
		texts = append(texts, list[i].Space+": "+FailingText(&list[i]))
	}
	want := "[c: task o4 of action ship is tried again after 7 failed attempts: no ship a: 2 tasks of action charge were given up, the last of them o2 after 3 attempts: closed]"
	if got := fmt.Sprint(texts); got != want || unnamed != 20 {
		t.Errorf("%s, and %d more", got, unnamed)
	}
	one := status.FailingAction{Action: "charge", Key: "o3", Attempts: 1, GivenUp: 1, Error: "no such card"}
	if got := FailingText(&one); got != "task o3 of action charge was given up after 1 attempt: no such card" {
		t.Error(got)
	}
}
