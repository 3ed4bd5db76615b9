package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/gateway"
)

// does does an action as a visitor does: the link of a page to its preview, and the button of that. The page that follows has a notice with a text.
func (b *tab) does(page, action, says string) {
	b.Helper()
	b.to(page)
	link := fmt.Sprintf(`main a[href^="/-/do/%s?"]`, action)
	b.until(fmt.Sprintf(`document.querySelector(%q)`, link))
	b.submit(link)
	form := fmt.Sprintf(`main form[action="/-/do/%s"]`, action)
	if command := b.text("main > #page > .hint code, #page .hint code"); !strings.HasPrefix(command, "settle ") {
		b.Errorf("the preview of %s names no command: %q", action, b.text("main"))
	}
	b.submit(form + " .primary, " + form + " .grave")
	b.untilText(".notice", says)
	if at := b.path(); strings.HasPrefix(at, "/-/") {
		b.Errorf("after %s the browser is at %s", action, at)
	}
}

// Actions on events, dead letters, runs, schedules, programs and workers are done in a browser: from the page that offers them, over a preview, to a page with
// what has happened.
func TestOperations_AreDoneInTheBrowser(t *testing.T) {
	w := start(t, 2, gateway.Config{})
	w.fill()
	for i := range 3 {
		w.send("rome", "refuse", fmt.Sprint("y", i), nil)
	}
	if _, err := flow.SchedulesIn(w.d.Client().Space("berlin")).Set(t.Context(), "nightly", flow.Schedule{Workflow: "finish", Cron: "0 4 * * *"}, map[string]any{"items": []string{}}); err != nil {
		t.Fatal(err)
	}
	b := w.open()

	b.does("/spaces/rome/events/refuse/x1", "redrive", "x1 is sent again")
	b.does("/spaces/rome/events/refuse/y0", "dismiss", "y0 is dismissed")
	b.does("/dead", "dead-redrive", "")
	b.to("/dead")
	b.untilText("#tally", "open 3") // they fail again
	b.does("/dead", "dead-dismiss", "")
	b.to("/dead")
	b.untilText("main", "No dead letter is open")

	b.does("/spaces/oslo/events/wait/w1", "skip", "")
	b.untilText("main", "Cancelled")
	b.does("/spaces/rome/events/remind/r1", "cancel-tree", "1 event cancelled")

	b.does("/spaces/berlin/runs/f1", "run-cancel", "f1 is cancelled")
	b.does("/schedules", "schedule-pause", "nightly")
	b.does("/schedules", "schedule-resume", "nightly")
	b.does("/schedules", "schedule-trigger", "nightly")

	leaves := b.drains()
	b.to("/fleet")
	b.until(fmt.Sprintf(`!document.querySelector("#workers").innerText.includes(%q)`, leaves))
}

// drains drains the first worker, and returns its id.
func (b *tab) drains() string {
	b.Helper()
	b.to("/fleet")
	b.until(`document.querySelector("#workers tbody a")`)
	id := b.text("#workers tbody a")
	b.does("/fleet?worker="+id, "drain", "Worker "+id+" hands over its")
	return id
}

// Actions on runs are done in a browser: a signal, and a run that goes on from a step, is cancelled and is tried again.
func TestOperations_OnRunsAreDoneInTheBrowser(t *testing.T) {
	w := start(t, 1, gateway.Config{})
	if _, err := flow.In(w.d.Client().Space("berlin")).Start(t.Context(), "finish", "f2", map[string]any{"items": []string{}}); err != nil {
		t.Fatal(err)
	}
	b := w.open()
	const run = "/spaces/berlin/runs/f2"
	b.to(run)
	b.untilText("h1", "f2 waits for signal approve")
	b.does(run, "run-signal", "f2 has received signal approve")
	b.untilText("h1", "f2 is done")
	b.does(run, "run-reset", "f2 goes on from step 1")
	b.untilText("h1", "f2 waits for signal approve")
	b.does(run, "run-cancel", "f2 is cancelled")
	b.untilText("h1", "f2 was cancelled")
	b.does(run, "run-retry", "f2 goes on")
	b.untilText("h1", "f2 waits for signal approve")
}

// An event that waits is cancelled, all that has failed of a tree is sent again, a job is stopped, and a program is rolled back, in a browser.
func TestOperations_OnTreesJobsAndProgramsAreDoneInTheBrowser(t *testing.T) {
	w := start(t, 1, gateway.Config{})
	w.send("rome", "remind", "r1", map[string]any{"item": "lamp", "after": "2h"})
	w.send("rome", "recall", "c1", nil)
	b := w.open()

	b.to("/spaces/rome/events/remind/r1")
	const waiting = `document.querySelector('main a[href*="/events/deliver/"]')`
	b.until(waiting)
	b.does(strings.TrimPrefix(eval[string](b, waiting+".href"), w.base), "cancel", "is cancelled")
	b.untilText("main", "Cancelled, in commit")

	b.to("/spaces/rome/events/recall/c1")
	b.untilText("main", "Redrive all 2 that failed")
	b.does("/spaces/rome/events/recall/c1", "redrive-tree", "2 events")

	b.allow("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_EMPTY_RESPONSE", "ERR_CONNECTION_RESET") // the page of the job is open
	w.end()
	w.undo = time.Hour // a job that has not begun can be stopped, however slow the browser is
	w.serve()
	b.does("/dead", "dead-redrive", "")
	b.submit(`form[action="/-/do/job-stop"] button`)
	b.untilText("main", "Stopped by")

	w.redeploy("shop", "*", "the shop is closed today", "the shop is closed")
	b.does("/programs", "rollback", "1 space changes over")
	b.untilText("main", "Roll back to")
}
