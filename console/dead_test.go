package console

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
)

// Dead letters are grouped by what they have in common, the largest group first; ids and numbers do not divide them.
func TestDead_GroupsByCause(t *testing.T) {
	w := operate(t, settle.Config{Programs: settle.Always(office(nil))})
	w.want("/dead", 200, "No event has failed", "none is dead")
	for i := range 5 {
		w.send(fmt.Sprint("guest-", i%2), "ask", fmt.Sprint("100", i), nil)
	}
	w.send("bank", "pay", "p1", nil)
	w.until("/dead", "6 events failed, for 2 reasons")
	text := w.want("/dead", 200, "guest # is unknown", "bank 7 is closed", "Redrive 5", "Try one", "sent again 0")
	if strings.Index(text, "Redrive 5") > strings.Index(text, "Redrive 1") {
		t.Error("the largest group is not the first")
	}
	w.want("/dead?q=bank", 200, "1 event of pay failed: bank 7 is closed")
	w.want("/dead?space=guest-1", 200, "2 events of ask failed alike")
	w.want("/dead?q=zzz", 200, "No open dead letter matches", "Show all 6")
	group, _, _ := strings.Cut(link(text, "5"), "#")
	w.want(group, 200, "5 of ask", "1000", "guest 1004 is unknown")
}

// A group is redriven as it was when the visitor looked: what fails later is not among them. Each step is done once, and its page shows the progress.
func TestDead_ABulkActionHasTheSetOfItsPreview(t *testing.T) {
	w := operate(t, settle.Config{Programs: settle.Always(office(nil))})
	for i := range 4 {
		w.send(fmt.Sprint("guest-", i), "ask", fmt.Sprint("100", i), nil)
	}
	w.until("/dead", "4 events of ask failed alike")
	text := w.want("/dead", 200)
	link := strings.ReplaceAll(lastBetween(text, `href="`, `">Redrive 4`), "&amp;", "&")
	answer, text := w.get(link)
	if answer.StatusCode != 200 || !strings.Contains(visible(text), "Send 4 events again to 4 spaces") {
		t.Fatalf("%d %s", answer.StatusCode, visible(text))
	}
	form := formOf(text, "dead-redrive")
	w.send("guest-9", "ask", "1009", nil)
	w.until("/dead", "5 events of ask failed alike")
	after := w.submits("dead-redrive", form, "settle redrive --all --stream ask --error 'is unknown' --confirm 4")
	if !strings.Contains(after, "about to begin") || !strings.Contains(after, "Undo") {
		t.Error(after)
	}
	job := lastBetween(w.want("/dead", 200), `<a href="`, `">open</a>`)
	w.until(job, "4 of 4 events sent again")
	w.until("/dead", "sent again 4")
	if answer, text := w.post("/-/do/dead-redrive", form); answer.StatusCode != 400 || !strings.Contains(text, "nothing was done") {
		t.Errorf("the same form again: %d %s", answer.StatusCode, visible(text))
	}
	w.want("/dead/jobs/none", 404, "This console has no such job")
}

// A job can be stopped before it begins: then it has no effect.
func TestDead_AJobCanBeUndoneBeforeItBegins(t *testing.T) {
	w := operate(t, settle.Config{Programs: settle.Always(office(nil))})
	w.c.undo = time.Hour
	w.send("bank", "pay", "p1", nil)
	w.until("/dead", "1 event of pay failed")
	_, after := w.acts("dead-redrive", nil, nil, "settle redrive --all --confirm 1")
	if !strings.Contains(after, "about to begin") {
		t.Fatal(after)
	}
	page := lastBetween(w.want("/dead", 200), `<a href="`, `">open</a>`)
	_, text := w.get(page)
	w.changes(page, func() { w.submits("job-stop", formOf(text, "job-stop"), "stop redrive of 1 event (console)") }, "Stopped by boss")
	w.want(page, 200, "0 of 1 event sent again", "What is left is as it was")
	w.want("/dead", 200, "sent again 0")
}

// Letters are dismissed together, with one reason, of those spaces only that the visitor may operate.
func TestDead_DismissInBulk(t *testing.T) {
	w := operate(t, settle.Config{Programs: settle.Always(office(nil))})
	for i := range 3 {
		w.send("bank", "pay", fmt.Sprint("p", i), nil)
	}
	w.until("/dead", "3 events of pay failed alike")
	w.acts("dead-dismiss", url.Values{"space": {"bank"}}, url.Values{"reason": {"a test"}}, "settle dismiss --all bank --confirm 3 --reason 'a test'")
	w.until("/dead", "dismissed 3")
	if answer, text := w.get("/-/do/dead-dismiss?space=bank", "Authorization", "Bearer reader"); answer.StatusCode != 400 || !strings.Contains(text, "you may not operate their spaces") {
		t.Errorf("%d %s", answer.StatusCode, visible(text))
	}
	w.changes("/dead", func() { w.send("bank", "pay", "p9", nil) }, "1 event of pay failed")
}
