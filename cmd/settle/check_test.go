package main

import "testing"

// All mistakes are reported at once, with their places, and those of a shared file once.
func TestCheck_ReportsAllMistakesOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file(t, dir, "lib.star", "def shared():\n    return nosuch1 + nosuch2\n")
	file(t, dir, "one.star", "load(\"lib.star\", \"shared\")\ntotal = cell(\"total\", 0)\n\ndef add(e):\n    total += e\n\nhandle(\"add\", add)\n")
	file(t, dir, "two.star", "load(\"lib.star\", \"shared\")\nhandle(\"a\", nosuch3)\nhandle(\"c\", nosuch4)\nhandle(\"d\", nosuch5)\n")
	file(t, dir, "two_test.star", "def test_x():\n    sendd(\"a\")\n")
	out := want(t, 1, "lib.star:2:12: undefined: nosuch1 | lib.star:2:22: undefined: nosuch2 | "+
		"one.star:5:11: total += ... would make a variable of this function; to change the document, write total.set(total + ...) | "+
		"two.star:2:13: undefined: nosuch3 | two.star:3:13: undefined: nosuch4 | two.star:4:13: undefined: nosuch5 | "+
		"two_test.star:2:5: undefined: sendd | 7 mistakes in 3 files", "check", dir)
	if out == "" {
		t.Error("nothing is printed")
	}
	ok := t.TempDir()
	file(t, ok, "lamp.star", lamp)
	file(t, ok, "lamp_test.star", lampTest)
	want(t, 0, "no mistakes in 2 files", "check", ok)
	file(t, ok, "twice.star", "def f():\n    return 1\n\nhandle(\"a\", f)\nhandle(\"a\", f)\n")
	want(t, 1, "twice.star:5", "check", ok)
	want(t, 2, "nosuch", "check", ok+"/nosuch.star")
	want(t, 1, "there are no programs", "check", t.TempDir())
}
