package worker

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/iotest"
)

const anID = "aaaaaaaaaaaaaaaaaaa1/bbbbbbbbbbbbbbbbbbb2/ccccccccccccccccccc3/ddddddddddddddddddd4"

// The executable of this test has a build ID, which go tool buildid reads as well, and only its beginning is read.
func TestExecutable_IsKnownByItsBuildID(t *testing.T) {
	t.Parallel()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	want, err := exec.CommandContext(t.Context(), "go", "tool", "buildid", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	got := identify(f)
	if got != identify(strings.NewReader(`Go build ID: "`+strings.TrimSpace(string(want))+`"`)) || got != executable() {
		t.Errorf("the executable is %s, its build ID is %s", got, want)
	}
	if read, err := f.Seek(0, io.SeekCurrent); read != beginning || err != nil {
		t.Errorf("%d bytes were read: %v", read, err)
	}
}

func TestExecutable_SharesItsNameOnlyWithTheSameCode(t *testing.T) {
	t.Parallel()
	rest := strings.Repeat("code", 50_000)
	note := func(id string) string { return "\x7fELF headers \x04\x00\x00\x00Go\x00\x00" + id + "\x00" + rest }
	text := func(id string) string { return "headers \xff Go build ID: \"" + id + "\"\n \xff" + rest }
	of := func(file string) string { return identify(strings.NewReader(file)) }
	if of(note(anID)) != of(text(anID)+"stripped otherwise") {
		t.Error("one build ID has two names")
	}
	all := map[string]string{}
	for i, file := range []string{
		note(anID), note(strings.Replace(anID, "d4", "d5", 1)), note(strings.Replace(anID, "a1", "a2", 1)),
		note("redacted"), note("redacted") + "1", note(""), note("") + "1", note(anID + "/more"), note(anID+"/more") + "1", note("/" + anID), note("/"+anID) + "1",
		"headers " + anID + "\x00" + rest, "headers " + anID + "\x00" + rest + "1", strings.Repeat("x", beginning) + note(anID), strings.Repeat("x", beginning) + note(anID) + "1",
		"", "short", "shorter",
	} {
		name := of(file)
		if !strings.HasPrefix(name, "exe:") || all[name] != "" {
			t.Errorf("file %d has name %q, as file %s", i, name, all[name])
		}
		all[name] = fmt.Sprint(i)
	}
}

func TestExecutable_ThatCannotBeReadHasNoName(t *testing.T) {
	t.Parallel()
	broken := iotest.ErrReader(errors.New("the disk is gone"))
	for what, file := range map[string]io.Reader{
		"at once":       broken,
		"at its start":  io.MultiReader(strings.NewReader("headers"), broken),
		"later":         io.MultiReader(bytes.NewReader(make([]byte, 2*beginning)), broken),
		"at the border": io.MultiReader(bytes.NewReader(make([]byte, beginning)), broken),
	} {
		if got := identify(file); got != "" {
			t.Errorf("%s: it is %s", what, got)
		}
	}
}
