package lossyfs

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// machine is a disk in a machine that can lose its power.
type machine struct {
	t       *testing.T
	disk    *Disk
	dir     string
	unmount func() error
}

func newMachine(t *testing.T, room int64) *machine {
	m := &machine{t: t, disk: NewDisk(room), dir: t.TempDir()}
	m.on()
	t.Cleanup(m.off)
	return m
}

func (m *machine) on() {
	m.t.Helper()
	var err error
	if m.unmount, err = Mount(m.disk, m.dir); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) off() {
	m.t.Helper()
	if err := m.unmount(); err != nil {
		m.t.Error(err)
	}
}

func (m *machine) cut(torn *rand.Rand) {
	m.t.Helper()
	m.off()
	m.disk.Cut(torn)
	m.on()
}

func (m *machine) path(name string) string { return filepath.Join(m.dir, name) }

func (m *machine) open(name string, flags int) *os.File {
	m.t.Helper()
	f, err := os.OpenFile(m.path(name), flags, 0o600)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = f.Close() })
	return f
}

func (m *machine) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// want compares a file; "-" stands for one that is not there.
func (m *machine) want(name, content string) {
	m.t.Helper()
	got, err := os.ReadFile(m.path(name))
	if errors.Is(err, os.ErrNotExist) {
		got, err = []byte("-"), nil
	}
	m.must(err)
	if string(got) != content {
		m.t.Errorf("%s holds %q, want %q", name, got, content)
	}
}

func write(t *testing.T, f *os.File, s string) {
	t.Helper()
	if _, err := f.WriteString(s); err != nil {
		t.Fatal(err)
	}
}

func TestACutDropsWhatWasNotSynced(t *testing.T) {
	m := newMachine(t, 0)
	f := m.open("a", os.O_CREATE|os.O_RDWR)
	write(t, f, "kept")
	m.must(f.Sync())
	write(t, f, " lost")
	m.want("a", "kept lost")
	m.must(f.Close())
	m.cut(nil)
	m.want("a", "kept")
}

func TestAFileThatIsOpenedForSyncLosesNothing(t *testing.T) {
	m := newMachine(t, 0)
	f := m.open("a", os.O_CREATE|os.O_RDWR|os.O_SYNC)
	write(t, f, "one")
	write(t, f, "two")
	m.must(f.Close())
	m.cut(nil)
	m.want("a", "onetwo")
}

func TestNamesReachTheDiskWithTheNextSync(t *testing.T) {
	m := newMachine(t, 0)
	m.must(os.WriteFile(m.path("lost"), []byte("x"), 0o600))
	m.cut(nil)
	m.want("lost", "-")

	m.must(os.Mkdir(m.path("d"), 0o700))
	m.must(os.WriteFile(m.path("d/empty"), []byte("not synced"), 0o600))
	f := m.open("d/synced", os.O_CREATE|os.O_RDWR)
	write(t, f, "x")
	m.must(f.Sync())
	m.must(f.Close())
	m.cut(nil)
	m.want("d/empty", "")
	m.want("d/synced", "x")
}

func TestARenameIsOldOrNew(t *testing.T) {
	m := newMachine(t, 0)
	m.must(os.WriteFile(m.path("a"), []byte("old"), 0o600))
	m.disk.SyncAll()
	f := m.open("a.tmp", os.O_CREATE|os.O_RDWR)
	write(t, f, "new")
	m.must(f.Sync())
	m.must(f.Close())
	m.must(os.Rename(m.path("a.tmp"), m.path("a")))
	m.want("a", "new")
	m.cut(nil)
	m.want("a", "old")
	m.want("a.tmp", "new")

	m.must(os.Rename(m.path("a.tmp"), m.path("a")))
	dir := m.open(".", os.O_RDONLY)
	m.must(dir.Sync())
	m.must(dir.Close())
	m.cut(nil)
	m.want("a", "new")
	m.want("a.tmp", "-")
}

func TestRemovalsAndTruncationsAreLostToo(t *testing.T) {
	m := newMachine(t, 0)
	m.must(os.WriteFile(m.path("a"), []byte("abcdef"), 0o600))
	m.must(os.WriteFile(m.path("b"), []byte("b"), 0o600))
	m.disk.SyncAll()
	m.must(os.Truncate(m.path("a"), 2))
	m.must(os.Remove(m.path("b")))
	m.want("a", "ab")
	m.want("b", "-")
	m.cut(nil)
	m.want("a", "abcdef")
	m.want("b", "b")
}

func TestATornCutKeepsABeginning(t *testing.T) {
	torn := rand.New(rand.NewPCG(1, 2))
	whole := []byte("0123456789abcdefghijklmnopqrstuvwxyz")
	lengths := map[int]bool{}
	for range 20 {
		m := newMachine(t, 0)
		m.must(os.WriteFile(m.path("a"), nil, 0o600))
		m.disk.SyncAll()
		f := m.open("a", os.O_RDWR)
		for i := range whole {
			write(t, f, string(whole[i]))
		}
		m.must(f.Close())
		m.cut(torn)
		got, err := os.ReadFile(m.path("a"))
		m.must(err)
		if !bytes.HasPrefix(whole, got) {
			t.Fatalf("%q is no beginning", got)
		}
		lengths[len(got)] = true
	}
	if len(lengths) < 5 {
		t.Errorf("only %d lengths", len(lengths))
	}
}

func TestAFullDiskRefusesAndHeals(t *testing.T) {
	m := newMachine(t, 10)
	f := m.open("a", os.O_CREATE|os.O_RDWR)
	write(t, f, "0123456789")
	if _, err := f.WriteString("x"); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("a full disk says %v", err)
	}
	m.disk.Resize(11)
	write(t, f, "x")
	m.must(f.Close())
	m.want("a", "0123456789x")
	m.must(os.Remove(m.path("a")))
	if used := m.disk.Used(); used != 0 {
		t.Errorf("%d bytes used", used)
	}
}
