package startest_test

import (
	"strings"
	"testing"

	"github.com/settlehq/settle/program/star"
	"github.com/settlehq/settle/program/startest"
)

// A document that another space derives is not read before it was computed there.
func TestPrograms_ADerivedDocumentIsReadOnceItWasComputed(t *testing.T) {
	src := star.Source{Name: "clinic", Entry: "clinic.star", Files: map[string]string{
		"clinic.star": `
booked = cell("booked", 0)

def book(e):
    booked.set(booked.get() + e.n)

def counts():
    return {"booked": booked.get()}

def look(e):
    return doc("counts", space = e.doctor)

handle("book", book)
handle("look", look)
compute("counts", counts)
`,
		"clinic_test.star": `
def test_a_handler():
    send_to("doctor-1", "book", {"n": 7})
    if send_to("door", "look", {"doctor": "doctor-1"}) != {"booked": 7}:
        fail("it has read what was not computed yet")
`,
	}}
	results, err := startest.Run(t.Context(), src, "clinic_test.star", star.TestOptions{})
	if err != nil || len(results) != 1 || results[0].Err != nil {
		t.Fatalf("%+v, %v", results, err)
	}
}

// The spaces of a test run several programs, each that of the longest pattern that its name matches.
func TestPrograms_ATestUsesSeveral(t *testing.T) {
	src := star.Source{Name: "door", Entry: "door.star", Files: map[string]string{
		"door.star": `
def ring(e):
    send("house-7", "rung", {"at": space()})

handle("ring", ring)
`,
		"house.star": `
rings = cell("rings", [])

def rung(e):
    rings.append(e.at)

handle("rung", rung)
`,
		"villa.star": `
handle("rung", lambda e: reject("quiet"))
`,
		"door_test.star": `
program("house*", "house.star")
program("house-1*", file = "villa.star")
program("house-12", "house.star")

def test_the_house_hears_the_door():
    send("ring", space = "door-1")
    expect("rings", ["door-1"], space = "house-7")

def test_the_longest_pattern_counts():
    send_to("house-13", "rung", {"at": "x"}, rejects = "quiet")
    send_to("house-12", "rung", {"at": "x"})
    expect("rings", ["x"], space = "house-12")
`,
		"wrong_test.star": `program("house*", "nosuch.star")
`,
		"late_test.star": `def test_late():
    program("a*", "house.star")
`,
	}}
	results, err := startest.Run(t.Context(), src, "door_test.star", star.TestOptions{})
	if err != nil || len(results) != 2 {
		t.Fatalf("%d results, %v", len(results), err)
	}
	for _, r := range results {
		if r.Err != nil {
			t.Errorf("%s: %v", r.Name, r.Err)
		}
	}
	if _, err := startest.Run(t.Context(), src, "wrong_test.star", star.TestOptions{}); err == nil || !strings.Contains(err.Error(), `there is no file "nosuch.star"`) {
		t.Errorf("a file that is not there: %v", err)
	}
	if results, err := startest.Run(t.Context(), src, "late_test.star", star.TestOptions{}); err != nil || !strings.Contains(results[0].Err.Error(), "at the top of the file") {
		t.Errorf("in a function: %v, %v", results, err)
	}
}
