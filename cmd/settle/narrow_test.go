package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program"
)

// A terminal of 80 columns has no room for an event's id and an error on one line.
func TestTable_WhatHasNoRoomIsPutBelow(t *testing.T) {
	t.Parallel()
	rows := [][]cell{{{text: "2", right: true}, {text: "open"}, {text: "the door is locked"}}, {{text: "13", right: true}, {text: "lock"}, {text: "-"}}}
	for width, want := range map[int]string{
		0:  "LOG  STREAM  ERROR\n  2  open    the door is locked\n 13  lock    -\n",
		31: "LOG  STREAM  ERROR\n  2  open    the door is locked\n 13  lock    -\n",
		30: "LOG  STREAM\n  2  open\n    the door is locked\n 13  lock\n",
	} {
		var out bytes.Buffer
		sheet{out: &out, width: width}.table([]string{"LOG", "STREAM", "ERROR"}, rows)
		if out.String() != want {
			t.Errorf("in %d columns:\n%s", width, out.String())
		}
	}
}

func TestReceipts_OnANarrowTerminalResultsAreBelow(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := receiptPrinter{w: &out, sheet: sheet{width: 80}, narrow: true}
	for i, rc := range []model.Receipt{
		{Event: "at-01a202c10f4e-vpd4dmor3ngfrq44", Outcome: model.Handled, Result: model.Int(1)}, {Event: "e2", Outcome: model.Failed, Error: "the door is locked"}, {Event: "e3", Outcome: model.Handled},
	} {
		h := &history.Handling{Seq: uint64(i + 2), Stored: time.Date(2020, 1, 2, 3, 4, 5, 0, time.Local), Space: "door", Tx: model.Tx{By: "handle open", Receipt: &rc}}
		if err := p.print(h); err != nil {
			t.Fatal(err)
		}
	}
	want := "LOG     TIME      STREAM    EVENT                             OUTCOME\n" +
		"2       2020-01-02 03:04:05  open      at-01a202c10f4e-vpd4dmor3ngfrq44  handled\n        1\n" +
		"3       2020-01-02 03:04:05  open      e2                                failed\n        the door is locked\n" +
		"4       2020-01-02 03:04:05  open      e3                                handled\n"
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
}

// fitting reports lines that are wider than a terminal of 80 columns.
func fitting(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestDead_OnANarrowTerminalErrorsAreBelowAndFit(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("the door is locked, ", 20)
	letter := func(event, text string) history.Dead {
		return history.Dead{DeadLetter: model.DeadLetter{Space: "hall", Stream: "open", Event: event, Outcome: model.Failed, Error: text}}
	}
	letters := []history.Dead{letter("at-01a202c10f4e-vpd4dmor3ngfrq44", long), letter("e2", "locked"), letter("e3", "locked")}
	letters[1].Dismissed, letters[1].Redriven = &history.Dismissal{Reason: "a duplicate"}, &history.Redriven{Event: "e2:r1", State: "failed"}
	letters[2].Dismissed = &history.Dismissal{}
	var out bytes.Buffer
	sheet{out: &out, width: 80}.printLetters(letters)
	fitting(t, out.String())
	for _, part := range []string{
		"\n" + below + clip(long, 76) + "\n", "failed (r1)\n    (dismissed: a duplicate) locked\n", "dismissed\n    (dismissed: no reason given) locked\n", "stands for the rest",
	} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("there is no %q in\n%s", part, out.String())
		}
	}
}

func TestTree_OnANarrowTerminalRemarksAreBelowAndFit(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 21, 18, 48, 36, 830e6, time.Local)
	long := strings.Repeat("no more. ", 20)
	node := func(space, event, text string, caused ...*history.TreeNode) *history.TreeNode {
		return &history.TreeNode{EventRef: history.EventRef{Space: space, Stream: "undelivered", Event: event}, State: "failed", Ended: start, Error: text, Caused: caused}
	}
	tree := &history.Tree{Root: node("a-space-of-a-name", "at-01a202c10f4e-vpd4dmor3ngfrq44", long,
		node("b", "b:1:1:0", "short"), node("b", "b:1:1:1", long, node("c", "c:1:1:2:undelivered", "a bit too long for the line")), node("d", strings.Repeat("d", 50), "no"))}
	var out bytes.Buffer
	sheet{out: &out, width: 80}.printTree(tree, false)
	drawn, hints, _ := strings.Cut(out.String(), "\n\n")
	want := `✗ a-space-of-a-name/undelivered  at-01a202c10f4e-vpd4dmor3ngfrq44  failed
│   2026-11-21 18:48:36.830  ` + clip(long, 51) + `
├─ ✗ b/undelivered  b:1:1:0                                       failed    +0ms
│      short
├─ ✗ b/undelivered  b:1:1:1                                       failed    +0ms
│  │   ` + clip(long, 73) + `
│  └─ ✗ c/undelivered  c:1:1:2:undelivered                        failed    +0ms
│         a bit too long for the line
└─ ✗ d/undelivered  dddddddddddddddddddddddddddddddddddddddddddddddddd  failed
       +0ms  no`
	if drawn != want {
		t.Errorf("printed\n%s\nwant\n%s", drawn, want)
	}
	fitting(t, drawn)
	if !strings.Contains(hints, "stands for the rest") {
		t.Errorf("hints: %s", hints)
	}
}

func TestVersions_OnANarrowTerminalWhatRanBeforeIsBelow(t *testing.T) {
	t.Parallel()
	v := versions{Versions: []versionLine{{Program: "locker"}}}
	r := rule{Spaces: "*", Program: "locker", Version: "4431a6c2f189", Pinned: true, At: time.Now(), By: "ann@hall", Note: "too slow"}
	for _, id := range []string{"111111111111", "222222222222", "333333333333", "444444444444"} {
		r.History = append(r.History, program.Choice{Target: program.Target{Program: "locker", Version: id}})
	}
	r.History = append(r.History, program.Choice{Target: program.Target{Program: "locker", Version: r.Version}}, program.Choice{})
	v.Rules = []rule{r}
	var out bytes.Buffer
	v.table(sheet{out: &out, width: 80})
	fitting(t, out.String())
	if !strings.Contains(out.String(), "ann@hall\n    too slow; before: 111111111111 222222222222 333333333333 444444444444\n") {
		t.Errorf("printed\n%s", out.String())
	}
}

func TestReceipts_TheHeadingIsDimmedAsThatOfATableIs(t *testing.T) {
	t.Parallel()
	for _, narrow := range []bool{false, true} {
		var out bytes.Buffer
		p := receiptPrinter{w: &out, sheet: sheet{color: true}, narrow: narrow}
		rc := model.Receipt{Event: "e", Outcome: model.Handled, Result: model.Int(1)}
		if err := p.print(&history.Handling{Seq: 2, Space: "door", Tx: model.Tx{By: "handle open", Receipt: &rc}}); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Split(out.String(), "\n"); !strings.HasPrefix(lines[0], "\x1b[2mLOG ") || strings.Contains(lines[1], "\x1b") {
			t.Errorf("printed %q", lines)
		}
	}
}

// The first line of an error has the position; the calls after it would repeat it.
func TestErrors_OnOneLineAreWithoutTheirCalls(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{ // any order: independent
		"locker.star:18:13: there is no C1\n  locker.star:18:13: in arrive\n  my lib/x.star:2:1: in <toplevel>": "locker.star:18:13: there is no C1",
		"one\ntwo: in no place\n  three": "one two: in no place three",
	} {
		if got := oneLine(withoutCalls(text)); got != want {
			t.Errorf("%q is %q", text, got)
		}
	}
	h := &history.Handling{Tx: model.Tx{Receipt: &model.Receipt{Outcome: model.Failed, Error: "a.star:1:2: no\n  a.star:1:2: in f"}}}
	if short, full := receiptText(h, false), receiptText(h, true); short != "a.star:1:2: no" || full != "a.star:1:2: no a.star:1:2: in f" {
		t.Errorf("%q, in full %q", short, full)
	}
}

func TestUnpin_SaysWhatDecidesFromThenOn(t *testing.T) {
	t.Parallel()
	locker := func(v string) program.Choice {
		return program.Choice{Target: program.Target{Program: "locker", Version: v}}
	}
	all := (&program.Table{}).With("*", locker("a")).With("hall*", locker("b")).With("hall-1", locker("c"))
	for spaces, want := range map[string]string{ // any order: independent
		"hall-1":  "the rule about hall* assigns locker@b to them",
		"hall-1*": "the rule about hall* assigns locker@b to them",
		"door":    "the rule about * assigns locker@a to them",
	} {
		if got := general(all, spaces); got != want {
			t.Errorf("%s: %s", spaces, got)
		}
	}
	if got := general(&program.Table{}, "door"); got != "no other rule assigns a program to them: their events wait" {
		t.Error(got)
	}
}
