package soak

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestABookIsReadAsItWasWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "book.jsonl")
	if pieces, err := Read(file); len(pieces) != 0 || err != nil {
		t.Fatalf("a book that does not exist: %v, %v", pieces, err)
	}
	want := []Piece{
		{Profile: "a", Seed: 1, At: time.Unix(1e9, 0).UTC(), Commit: "abc", Seconds: 600, Acked: 10, Handled: 20, Workers: 3, Servers: 2, All: 1, Faults: map[string]int{"disk full": 2}},
		{Profile: "b", Seed: 2, At: time.Unix(2e9, 0).UTC(), Commit: "abd", Seconds: 60, Cuts: 10, LostToPower: 4, Violations: map[string]int{"lost": 1}},
	}
	for i := range want {
		if err := Add(file, &want[i]); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Read(file)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestAReportSaysWhatIsMissingAndWhatIsBroken(t *testing.T) {
	pieces := []Piece{
		{Profile: "chaos", Seed: 1, Seconds: 600, Handled: 1_234_567, Workers: 3, Coordinators: 2, Servers: 4, All: 1, Faults: map[string]int{"disk full": 2, "stop server": 5}},
		{Profile: "chaos", Seed: 3, Seconds: 600, Handled: 1, Violations: map[string]int{"lost": 1}},
		{Profile: "cuts", Seed: 2, Seconds: 60, Cuts: 10, LostToPower: 1500},
	}
	report := Report(pieces, Full)
	for _, want := range []string{
		"| chaos | 2: 1 3 | 20 | 1,234,568 | 3, 2, 4 | 1 | 0 | 7 | lost 1 |",
		"| cuts | 1: 2 | 1 | 0 | 0, 0, 0 | 0 | 10 | 0 | none |",
		"not reached yet: 1,234,568 of 10,000,000 events, 3 of 1000 kills of workers", "10 of 100 power cuts", "1,500 events were acknowledged",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
	small := Goal{Handled: 1_000_000, Workers: 3, Servers: 4, All: 1, Cuts: 10}
	if !Reached(pieces, small) || Reached(pieces[:2], small) || !strings.Contains(Report(pieces, small), "The goal is reached") {
		t.Error("a goal that is reached, and one that is not")
	}
}
