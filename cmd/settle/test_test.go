package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

const lamp = `
lamp = cell("lamp", {"on": False})

def press():
    lamp.on = not lamp.on
    if lamp.on:
        log("it is on")
    return lamp.on

handle("press", press)
`

const lampTest = `
load("lamp.star", "lamp")

def test_press():
    send("press")
    advance("36h")
    expect("lamp", {"on": True})

def test_twice():
    send("press")
    send("press")
    expect("lamp", {"on": True})
`

func TestTest_TellsWhatFailedWhereAndWhatWasExpected(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file(t, dir, "lamp.star", lamp)
	tests := file(t, dir, "lamp_test.star", lampTest)
	want(t, 1, "--- FAIL: test_twice | lamp_test.star:12:11: | /on: false, not true | lamp_test.star:12:11: in test_twice | 1 of 2 tests failed", "test", dir)
	want(t, 1, "--- FAIL: test_twice", "test", tests, "--run", "twice")
	want(t, 0, "ok    "+tests+"  1 test | 36h went by", "test", tests, "--run", "press")
	want(t, 0, "--- PASS: test_press (36h) | log: test: it is on", "test", tests, "--run", "press", "-v")

	var files []testedFile
	if err := json.Unmarshal([]byte(want(t, 1, "", "test", dir, "--json")), &files); err != nil || len(files) != 1 || len(files[0].Tests) != 2 {
		t.Fatalf("%+v, %v", files, err)
	}
	f := files[0]
	if twice := f.Tests[1]; f.Program != "lamp" || !f.Tests[0].Passed || f.Tests[0].Virtual != 36*3600 || twice.Passed || twice.File != "lamp_test.star" || twice.Line != 12 || twice.Column != 11 {
		t.Errorf("as JSON: %+v", f)
	}
}

func TestTest_AFileFindsItsProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "lib", ".old"), 0o700); err != nil {
		t.Fatal(err)
	}
	file(t, dir, "lamp.star", lamp)
	file(t, dir, "lib/press.star", "def stream():\n    return \"press\"\n")
	file(t, dir, "lamp_by_night_test.star", "load(\"lib/press.star\", \"stream\")\n\ndef test_on():\n    equal(send(stream()), True)\n")
	file(t, dir, "lib/.old/x_test.star", "")
	want(t, 0, "lamp_by_night_test.star  1 test", "test", dir)

	file(t, dir, "door_test.star", "def test_x():\n    pass\n")
	want(t, 1, "door_test.star: not run | no door.star beside it | ok    | 1 of 2 files could not be run", "test", dir)
}

func TestTest_WhatDidNotRunDidNotPass(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want(t, 1, "there are no tests in "+dir+" | door_test.star", "test", dir)
	program := file(t, dir, "lamp.star", lamp)
	tests := file(t, dir, "lamp_test.star", lampTest)
	want(t, 1, "no test matches --run nothing", "test", dir, "--run", "nothing")
	want(t, 2, "lamp.star is not a test file", "test", program)
	want(t, 2, "no such file", "test", filepath.Join(dir, "nowhere"))
	want(t, 2, "--run", "test", "--run", "(")
	file(t, dir, "lamp_test.star", "x = 1\n")
	want(t, 1, "no function test_... in them", "test", tests)
	file(t, dir, "lamp.star", lamp+"\nhandle(\"press\", 7)\n")
	want(t, 1, "lamp.star:12:7: | 1 of 1 file could not be run", "test", tests)
}

func TestInit_WritesWhatPassesItsTestsAndSaysWhatComesNext(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "door")
	want(t, 0, "door.star, door_test.star | cd "+dir+" | settle test | settle dev", "init", "star", dir)
	want(t, 0, "4 tests | 24h1m went by", "test", dir)
	want(t, 2, "README.md exists: nothing was written", "init", "go", dir)
	want(t, 0, "main.go, go.mod, go.sum | go test ./... | settle dev | the replace line of go.mod", "init", "go", dir+"-go")
	want(t, 1, "not a checkout", "init", "go", dir+"-other", "--checkout", dir)
	want(t, 2, "cobol", "init", "cobol", dir)
}
