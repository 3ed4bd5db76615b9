package devserver

import (
	"os"
	"path/filepath"
	"testing"
)

func TestClaimPort_IsOfOneProcessUntilItIsReleased(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache)
	release, ok := ClaimPort(7333)
	if !ok {
		t.Fatal("the port is claimed")
	}
	if _, ok := ClaimPort(7333); ok {
		t.Error("two have claimed a port")
	}
	other, ok := ClaimPort(7334)
	if !ok {
		t.Error("another port is claimed, too")
	}
	other()
	release()
	again, ok := ClaimPort(7333)
	if !ok {
		t.Error("a port that was released is claimed")
	}
	again()
	root, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Join(root, "settle", "ports")); err != nil || len(left) > 0 {
		t.Errorf("claims that were released leave %v, %v", left, err)
	}
}

// A claim of a process that was killed leaves its file behind, and no lock.
func TestClaimPort_AFileThatAKilledProcessLeavesIsClaimed(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache)
	root, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "settle", "ports")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "7333.lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	release, ok := ClaimPort(7333)
	if !ok {
		t.Fatal("it is claimed")
	}
	release()
}

// A process may remove the file of its claim between the moments at which another one opens and locks it.
func TestClaimPort_AFileThatIsRemovedMeanwhileIsNoClaim(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if !isFile(file, name) {
		t.Error("a file that is there is not")
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if isFile(file, name) {
		t.Error("a file that was removed is there")
	}
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if isFile(file, name) {
		t.Error("another file of the name counts")
	}
}
