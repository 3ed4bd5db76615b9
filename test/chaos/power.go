//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/settlehq/settle/test/chaos/history"
)

// powerDisk is the disk of a server whose power can fail: a process that mounts a file system in memory, which
// drops unsynced data on command (test/powerloss/lossyfs, in a module of its own).
type powerDisk struct {
	dir     string
	process *exec.Cmd

	mu      sync.Mutex
	orders  io.WriteCloser
	answers *bufio.Scanner
}

const powerPrefix = "settle-chaos-power-"

// buildPower builds the command that mounts such disks. The program has to be run from the root of the repository.
func buildPower(dir string) (string, error) {
	binary := filepath.Join(dir, "lossydisk")
	build := exec.Command("go", "build", "-o", binary, "./lossydisk")
	build.Dir = filepath.Join("test", "powerloss")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build test/powerloss/lossydisk: %w\n%s", err, out)
	}
	return binary, nil
}

// newPowerDisk mounts a disk in dir, which exists.
func newPowerDisk(binary, dir string) (*powerDisk, error) {
	d := &powerDisk{dir: dir, process: exec.Command(binary, dir)}
	var err error
	if d.orders, err = d.process.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := d.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var complaint strings.Builder
	d.process.Stderr = &complaint
	d.answers = bufio.NewScanner(out)
	if err := d.process.Start(); err != nil {
		return nil, err
	}
	if err := d.answer(); err != nil {
		return nil, errors.Join(err, d.close(false), errors.New(complaint.String()))
	}
	return d, nil
}

func (d *powerDisk) answer() error {
	if !d.answers.Scan() {
		return fmt.Errorf("the disk in %s does not answer: %w", d.dir, errors.Join(d.answers.Err(), io.ErrUnexpectedEOF))
	}
	if text := d.answers.Text(); text != "ok" {
		return fmt.Errorf("the disk in %s: %s", d.dir, text)
	}
	return nil
}

func (d *powerDisk) order(line string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := fmt.Fprintln(d.orders, line); err != nil {
		return err
	}
	return d.answer()
}

// writeThrough syncs all data at one moment, as the kernel does periodically.
func (d *powerDisk) writeThrough() error { return d.order("sync") }

// cut drops unsynced data, or all but a random part of it, which follows from torn. No process
// may use the disk.
func (d *powerDisk) cut(torn uint64) error {
	if torn == 0 {
		return d.order("cut")
	}
	return d.order(fmt.Sprint("cut ", torn))
}

// close unmounts the disk. With keep, it copies the contents to a plain directory first.
func (d *powerDisk) close(keep bool) error {
	var err error
	if keep {
		err = run("cp", "-r", d.dir, d.dir+"-kept")
	}
	return errors.Join(err, d.orders.Close(), d.process.Wait())
}

// cutPowerOf cuts the power of some servers at one moment, and starts them again later. If servers do
// not sync acknowledged data, everything is synced shortly before; data that is acknowledged in between
// is lost, and the checker allows for that.
func (f *injury) cutPowerOf(ctx context.Context, victims []*child) error {
	var errs []error
	loss := history.Loss{}
	if f.d.o.lossy() {
		f.hold(ctx, 0, 2*time.Second)
		loss.From = time.Now()
		for _, c := range victims {
			errs = append(errs, f.d.power[c.name].writeThrough())
		}
		f.hold(ctx, 200*time.Millisecond, 2*time.Second)
	}
	for _, c := range victims {
		errs = append(errs, c.signal(syscall.SIGKILL))
	}
	for _, c := range victims {
		<-c.ended()
		torn := uint64(0)
		if !f.d.o.lossy() && f.rand.IntN(2) == 0 {
			torn = 1 + f.rand.Uint64N(1e6)
		}
		errs = append(errs, f.d.power[c.name].cut(torn))
	}
	f.hold(ctx, 500*time.Millisecond, 1500*time.Millisecond)
	loss.Until = time.Now()
	for _, c := range victims {
		errs = append(errs, c.start(false))
	}
	errs = append(errs, f.recovered(ctx))
	loss.Known = time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cuts++
	if f.d.o.lossy() {
		f.losses = append(f.losses, loss)
	}
	return errors.Join(errs...)
}

// powerCuts returns the number of power failures.
func (n *nemesis) powerCuts() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cuts
}

func cutPower(ctx context.Context, f *injury) (string, error) {
	c, err := f.pick(f.d.nodes)
	if err != nil {
		return "", err
	}
	return c.name, f.cutPowerOf(ctx, []*child{c})
}

func cutPowerOfAll(ctx context.Context, f *injury) (string, error) {
	return "all", f.cutPowerOf(ctx, f.d.nodes)
}
