package main

import (
	"os"
	"testing"

	"github.com/settlehq/settle/bench/harness"
)

// The clients are in the process of the command, and cost about as much as the workers.
func TestProfile_TheCommandLeavesOneOfItsOwnProcess(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(harness.ProfileEnv, dir)
	if err := command(t.Context(), []string{"small", "-no-such-flag"}); err == nil {
		t.Fatal("the command takes a flag that it does not have")
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("%d profiles, %v", len(files), err)
	}
	if info, err := files[0].Info(); err != nil || info.Size() == 0 {
		t.Fatalf("the profile is empty: %v, %v", info, err)
	}
}
