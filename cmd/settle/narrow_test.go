package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/model"
)

// A terminal of 80 columns has no room for an event's id and an error on one line.
func TestTable_WhatHasNoRoomIsPutBelow(t *testing.T) {
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
	var out bytes.Buffer
	p := receiptPrinter{w: &out, sheet: sheet{width: 80}, narrow: true}
	for i, rc := range []settle.Receipt{
		{Event: "at-01a202c10f4e-vpd4dmor3ngfrq44", Outcome: settle.Handled, Result: model.Int(1)}, {Event: "e2", Outcome: settle.Failed, Error: "the door is locked"}, {Event: "e3", Outcome: settle.Handled},
	} {
		h := &settle.Handling{Seq: uint64(i + 2), Stored: time.Date(2020, 1, 2, 3, 4, 5, 0, time.Local), Space: "door", Tx: model.Tx{By: "handle open", Receipt: &rc}}
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
