package devserver

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestServer_IsFoundFromBelowUntilItsRecordIsRemoved(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "deep", "er")
	for _, d := range []string{deep, filepath.Join(dir, Store)} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p := Server{NATS: "nats://127.0.0.1:7422", PID: os.Getpid()}
	remove, err := p.Announce(filepath.Join(dir, Store))
	if err != nil {
		t.Fatal(err)
	}
	got, file, found := Find(deep)
	if got != p || !found || file != filepath.Join(dir, Store, "dev.json") {
		t.Errorf("found %v in %q, %v", got, file, found)
	}
	remove()
	if p, _, found := Find(deep); found && p == got {
		t.Error("it is found after its record was removed")
	}
}

func TestServer_RecognisesThatItsProcessHasExited(t *testing.T) {
	if (Server{PID: os.Getpid()}).Exited() {
		t.Error("this process has exited")
	}
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if !(Server{PID: cmd.Process.Pid}).Exited() {
		t.Error("an exited process counts as running")
	}
}
