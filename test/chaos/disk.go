//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// disk is a file system of limited size, in which a NATS server keeps its streams.
type disk struct {
	dir, image string
}

const diskPrefix = "settle-chaos-disk-"

// newDisk creates a file system of a size in MiB and mounts it below dir: ext4 in a file,
// which honours fsync as the disk below it does.
func newDisk(dir, name string, size int) (*disk, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("it needs root")
	}
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		return nil, errors.New("it needs the command mkfs.ext4")
	}
	d := &disk{dir: filepath.Join(dir, diskPrefix+name), image: filepath.Join(dir, name+".img")}
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.Create(d.image)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Truncate(int64(size)<<20), f.Close()); err != nil {
		return nil, err
	}
	if err := run("mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1", d.image); err != nil {
		return nil, err
	}
	if err := run("mount", "-o", "loop,noatime", d.image, d.dir); err != nil {
		return nil, err
	}
	return d, nil
}

// store returns the store directory of the server.
func (d *disk) store() string { return filepath.Join(d.dir, "store") }

func (d *disk) filler() string { return filepath.Join(d.dir, "filler") }

// fill leaves almost no free space.
func (d *disk) fill() error {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(d.dir, &fs); err != nil {
		return fmt.Errorf("look at %s: %w", d.dir, err)
	}
	const left = 128 << 10
	size := int64(fs.Bavail)*int64(fs.Bsize) - left //nolint:unconvert // of another type elsewhere
	if size <= 0 {
		return nil
	}
	return run("fallocate", "-l", fmt.Sprint(size), d.filler())
}

// free removes the filler.
func (d *disk) free() error {
	if err := os.Remove(d.filler()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// close unmounts the file system. With keep, it copies the contents to a plain directory first.
func (d *disk) close(keep bool) error {
	if keep {
		_ = d.free()
		if err := run("cp", "-r", d.store(), d.dir+"-kept"); err != nil {
			return err
		}
	}
	return errors.Join(run("umount", "-l", d.dir), os.Remove(d.image), os.Remove(d.dir))
}

// removeStale unmounts and removes the leftovers of killed runs in base.
func removeStale(base string) {
	stale, _ := filepath.Glob(filepath.Join(base, dataPrefix+"*")) // none, then
	for _, dir := range stale {
		if !gone(strings.TrimPrefix(filepath.Base(dir), dataPrefix)) {
			continue // it runs, or is kept
		}
		mounted, _ := filepath.Glob(filepath.Join(dir, diskPrefix+"*"))
		powered, _ := filepath.Glob(filepath.Join(dir, powerPrefix+"*"))
		mounted = append(mounted, powered...)
		for _, m := range mounted {
			_ = exec.Command("umount", "-l", m).Run() // if it still is
		}
		_ = os.RemoveAll(dir) // leftovers are visible
	}
}
