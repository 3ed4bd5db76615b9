package test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/worker"
)

// pages is a program whose spaces have many documents that come and go.
func pages() *settle.Program {
	p := settle.NewProgram("pages")
	page := func(i int) settle.Cell[int] { return settle.NewCell[int](fmt.Sprintf("page%d", i)) }
	settle.NewRequest[int, int]("write").Handle(p, func(tx *settle.Tx, n int) (int, error) {
		for i := range n {
			page(i).Set(tx, 1)
		}
		return n, nil
	})
	settle.NewRequest[int, int]("drop").Handle(p, func(tx *settle.Tx, n int) (int, error) {
		for i := range n {
			page(i).Delete(tx)
		}
		return n, nil
	})
	touched := settle.NewCell[int]("touched")
	settle.NewRequest[int, int]("touch").Handle(p, func(tx *settle.Tx, by int) (int, error) {
		touched.Update(tx, func(n *int) { *n += by })
		return touched.Get(tx), nil
	})
	return p
}

// A server that is killed reads its files again when it starts, and finds values there which the purged markers of deleted documents
// had replaced. No reader and no handler sees them.
func TestDeleted_AKilledServerBringsNothingBack(t *testing.T) {
	t.Parallel()
	const n = 100
	dir := t.TempDir()
	cfg := settle.Config{
		Programs: settle.Always(pages()), Options: worker.Options{PurgeDelay: time.Millisecond, HistoryBytes: 1},
		Server: embedded.Config{StoreDir: filepath.Join(dir, "old"), Fsync: embedded.FsyncInterval},
	}
	cfg.Bus.Partitions = 1
	d := deploy(t, cfg)
	ctx := testContext(t)
	s := d.Client().Space("s")
	call := func(s settle.Space, stream, id string, arg int) (got int) {
		t.Helper()
		got, err := settle.NewRequest[int, int](stream).Call(ctx, s, settle.ID(id), arg)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	call(s, "write", "w1", n)
	isSaved(t, d.Bus(), "s")
	call(s, "drop", "d1", n)
	touches := 0
	persistently(ctx, t, "see that the markers are purged", func(ctx context.Context) error {
		touches++
		call(s, "touch", fmt.Sprint("t", touches), 1)
		st, err := d.Bus().LoadState(ctx, "s")
		if err == nil && len(st.Docs) > n/2 {
			err = errors.New("they are still there")
		}
		return err
	})
	isSaved(t, d.Bus(), "s")
	killed := filepath.Join(dir, "killed")
	copyWithoutIndex(t, cfg.Server.StoreDir, killed)

	cfg.Server.StoreDir = killed
	d = deploy(t, cfg)
	st, err := d.Bus().LoadState(ctx, "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the server has %d documents again", len(st.Docs))
	s = d.Client().Space("s")
	for i := range n {
		if v, _, err := s.Get(ctx, fmt.Sprintf("page%d", i)); err != nil || !v.IsAbsent() {
			t.Fatalf("page %d is %s, %v; it was deleted", i, v, err)
		}
	}
	if got := call(s, "touch", "last", 1); got != touches+1 {
		t.Errorf("it was touched %d times, want %d", got, touches+1)
	}
}

// copyWithoutIndex copies a store as it is after its server was killed: indexes are written periodically.
func copyWithoutIndex(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == "index.db" {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(to, filepath.Dir(name)), 0o750); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), data, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}
