package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/settlehq/settle/test/powerloss/lossyfs"
)

// A cut drops what was written after the last sync; what was fsynced or written through by "sync" stays.
func TestADiskObeysTheLinesOfItsInput(t *testing.T) {
	dir := t.TempDir()
	in, commands := io.Pipe()
	answers, out := io.Pipe()
	served := make(chan error, 1)
	go func() { // ends with its input
		served <- (&drive{disk: lossyfs.NewDisk(0), dir: dir}).serve(in, out)
		_ = out.Close()
	}()
	lines := bufio.NewScanner(answers)
	expect := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("the answer is %q, not %q", lines.Text(), want)
		}
	}
	order := func(line, want string) {
		t.Helper()
		if _, err := fmt.Fprintln(commands, line); err != nil {
			t.Fatal(err)
		}
		expect(want)
	}
	file := filepath.Join(dir, "f")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(want string) {
		t.Helper()
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Fatalf("the file is %q, %v, not %q", got, err, want)
		}
	}
	expect("ok")
	write("first")
	order("sync", "ok")
	write("second")
	read("second")
	order("cut", "ok")
	read("first")
	write("third")
	order("cut 7", "ok")
	order("dance", `"dance" is neither sync nor cut`)
	if err := commands.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("after the end %d files are in the directory, %v", len(left), err)
	}
}
