package star

import (
	"fmt"
	"strings"
	"testing"

	"github.com/settlehq/settle/model"
)

const outbox = `
said = cell("said", [])

def ended(t):
    said.append("%s %s %s %s %s" % (t.key, t.state, t.input, t.output, t.error))
    send(space(), "told", t.key)
    if t.output == "awful":
        fail("cannot be")

mail = action("mail", done = ended, keep = "1h")
quiet = action("quiet")

def begin(e):
    start_task(mail, e.key, e.get("text"))
    start_task("quiet", e.key)
    return task(mail, e.key).state

def stop(e):
    return [cancel_task(mail, e), cancel_task(mail, e), task("mail", e).state]

def again(e):
    forget_task(mail, e)
    return task(mail, e)

handle("begin", begin)
handle("stop", stop)
handle("again", again)
handle("told", lambda e: None)
compute("pending", lambda: [k for k in mail.tasks if task(mail, k).state == "pending"])
`

func TestAction_IsAnOutboxThatOthersEmpty(t *testing.T) {
	s := newStage(t, compiled(t, outbox).Space())
	want := func(rc *model.Receipt, result string) {
		t.Helper()
		if rc.Outcome != model.Handled || rc.Result.String() != result {
			t.Errorf("%s %s, %s; want %s", rc.Outcome, rc.Error, rc.Result, result)
		}
	}
	doc := func(name, value string) {
		t.Helper()
		if got := s.doc(name); got != value {
			t.Errorf("%s is %s, want %s", name, got, value)
		}
	}
	s.observe("pending")
	want(s.send("begin", map[string]any{"key": "a", "text": "hello"}), `"pending"`)
	want(s.send("begin", map[string]any{"key": "b"}), `"pending"`)
	want(s.send("begin", map[string]any{"key": "b"}), `"pending"`)
	doc("pending", `["a","b"]`)
	want(s.send("mail", map[string]any{"key": "a", "out": map[string]any{"id": 7}}), "absent")
	want(s.send("stop", "b"), `[true,false,"cancelled"]`)
	doc("pending", `[]`)
	doc("said", `["a done hello {\"id\": 7} "]`)
	want(s.send("again", "b"), "absent")
	want(s.send("begin", map[string]any{"key": "b", "text": "anew"}), `"pending"`)
	want(s.send("mail", map[string]any{"key": "b", "error": "no stamps"}), "absent")
	doc("said", `["a done hello {\"id\": 7} ","b failed anew None no stamps"]`)
	if len(s.sends) != 2 {
		t.Errorf("%d events sent when tasks ended, want 2", len(s.sends))
	}
}

// If done fails, the task is given up, and the error is in the receipt.
func TestAction_WhatDoneCannotHandleIsGivenUp(t *testing.T) {
	s := newStage(t, compiled(t, outbox).Space())
	s.send("begin", map[string]any{"key": "a"})
	rc := s.send("mail", map[string]any{"key": "a", "out": "awful"})
	if rc.Outcome != model.Failed || !strings.Contains(rc.Error, "test.star:8") || !strings.Contains(rc.Error, "cannot be") {
		t.Errorf("%s: %s", rc.Outcome, rc.Error)
	}
	if state := s.value("mail").Get("tasks").Get("a").Get("state").String(); state != `"failed"` || s.doc("said") != "absent" {
		t.Errorf("the task is %s, and said %s", state, s.doc("said"))
	}
}

func TestAction_MisuseIsRefused(t *testing.T) {
	for _, c := range []struct{ text, words string }{
		{`action("a b")`, "letters, digits"},
		{`action("a", keep = "soon")`, `keep: "soon" is not a duration`},
		{`action("a", done = 7)`, "done must be a function"},
		{`action("a", done = lambda: 1)`, "done takes one parameter, the task that has ended"},
		{"action(\"a\")\naction(\"a\")", "a"},
		{"handle(\"a\", lambda e: 1)\naction(\"a\")", "a"},
		{"action(\"a\")\ncompute(\"a\", lambda: 1)", "a"},
		{`start_task("a", "k")`, "while a program is loaded there is no space"},
	} {
		if _, err := Compile(source(c.text+"\n"), Options{}); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v; want %q", c.text, err, c.words)
		}
	}
	for _, c := range []struct{ body, words string }{
		{"start_task('none', 'k')", `start_task: the program has no action "none"; it has a`},
		{"start_task(a, '')", "key"},
		{"start_task(c, 'k')", `the program has no action "c"; it has a`},
		{"start_task(a.tasks, 'k')", "the first argument must be an action or its name, not a"},
		{"start_task(a, 'k', lambda: 1)", "input"},
		{"a.set(1)", "a"},
	} {
		text := "c = cell('c', {})\na = action('a')\ndef h(e):\n    " + c.body + "\nhandle('h', h)\n"
		if rc := newStage(t, compiled(t, text).Space()).send("h", nil); rc.Outcome != model.Failed || !strings.Contains(rc.Error, c.words) {
			t.Errorf("%s: %s %s; want %q", c.body, rc.Outcome, rc.Error, c.words)
		}
	}
	s := newStage(t, compiled(t, "a = action('a')\ncompute('x', lambda: start_task(a, 'k'))\n").Space())
	s.observe("x")
	if len(s.errs) != 1 || !strings.Contains(s.errs[0].Error(), "only handlers change tasks") {
		t.Errorf("a computation that starts a task: %v", s.errs)
	}
}

// The deadline of a task is a duration or a time, and not both; a mistake in it fails the handler, which starts nothing.
func TestStartTask_DeadlineIsADurationOrATime(t *testing.T) {
	s := newStage(t, compiled(t, `
repair = action("repair")
def start(e):
    start_task(repair, e.key, deadline = e.within, deadline_at = e.at)
handle("start", start)
`).Space())
	for i, c := range []struct {
		within, at any
		want       string // an error, or "" if there is none
	}{
		{"2h", nil, ""},
		{nil, nil, ""},
		{"", nil, ""},
		{"", "2026-11-22T10:00:00Z", ""},
		{nil, 1795341600000, ""},
		{"2h", "2026-11-22T10:00:00Z", "start_task repair: deadline and deadline_at both set the deadline; use one of them"},
		{nil, "noon", `start_task repair: deadline_at: "noon" is not a time`},
		{nil, true, "start_task repair: deadline_at: a time is milliseconds since 1970"},
		{"soon", nil, `start_task repair: deadline: "soon" is not a duration`},
		{nil, "2099-11-22T10:00:00Z", "more than ten years are not accepted"},
	} {
		rc := s.send("start", map[string]any{"key": fmt.Sprint("k", i), "within": c.within, "at": c.at})
		if c.want == "" && rc.Outcome != model.Handled || c.want != "" && !strings.Contains(rc.Error, c.want) {
			t.Errorf("%v, %v: %s %s", c.within, c.at, rc.Outcome, rc.Error)
		}
	}
}
