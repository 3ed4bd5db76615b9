package dev

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// script is an executable that is no worker.
func script(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

// A process that serves nothing is reported, and ends when its standard input does; so is one that ends before it serves.
func TestProcess_ThatIsNoWorker(t *testing.T) {
	var out bytes.Buffer
	p, err := execute(script(t, "cat; echo bye"), "nats://127.0.0.1:1", "home", &out)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.serves(t.Context(), 50*time.Millisecond); !errors.Is(err, errSilent) {
		t.Errorf("a process that serves nothing: %v", err)
	}
	p.stop()
	if !strings.Contains(out.String(), "bye") {
		t.Errorf("it has printed %q", out.String())
	}
	if p, err = execute(script(t, "exit 3"), "nats://127.0.0.1:1", "home", &out); err != nil {
		t.Fatal(err)
	}
	if err := p.serves(t.Context(), time.Hour); err == nil || !strings.Contains(err.Error(), "it has ended: exit status 3") {
		t.Errorf("a process that ends: %v", err)
	}
}
