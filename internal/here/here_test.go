package here

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestPlace_IsFoundFromBelowUntilItIsTakenBack(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "deep", "er")
	for _, d := range []string{deep, filepath.Join(dir, Store)} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p := Place{NATS: "nats://127.0.0.1:7422", PID: os.Getpid()}
	revoke, err := p.Announce(filepath.Join(dir, Store))
	if err != nil {
		t.Fatal(err)
	}
	got, file, found := Find(deep)
	if got != p || !found || file != filepath.Join(dir, Store, "dev.json") {
		t.Errorf("found %v in %q, %v", got, file, found)
	}
	revoke()
	if p, _, found := Find(deep); found && p == got {
		t.Error("it is found after it was taken back")
	}
}

func TestPlace_KnowsWhetherItsProcessHasEnded(t *testing.T) {
	if (Place{PID: os.Getpid()}).Gone() {
		t.Error("this process has ended")
	}
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if !(Place{PID: cmd.Process.Pid}).Gone() {
		t.Error("a process that has ended is there")
	}
}
