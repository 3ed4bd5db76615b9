// Command lossydisk mounts a lossyfs in a directory and executes one command per line of its standard
// input, so that a program of another module can cut the power under its processes. It answers each with
// a line, "ok" or an error:
//
//	sync        write everything through
//	cut         drop what was not written through
//	cut 17      the same, but a random part of it survives, which follows from the number
//
// A cut takes the disk out and puts it in again: no process may use the directory meanwhile. The first "ok" says
// that the disk is mounted. The end of the input unmounts it and ends the program.
package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/settlehq/settle/test/powerloss/lossyfs"
)

// drive is a disk and its mount point.
type drive struct {
	disk    *lossyfs.Disk
	dir     string
	unmount func() error
}

func (d *drive) mount() (err error) {
	d.unmount, err = lossyfs.Mount(d.disk, d.dir)
	return err
}

func (d *drive) obey(line string) error {
	what, number, torn := strings.Cut(strings.TrimSpace(line), " ")
	switch {
	case what == "sync" && !torn:
		d.disk.SyncAll()
		return nil
	case what != "cut":
		return fmt.Errorf("%q is neither sync nor cut", line)
	}
	var chance *rand.Rand
	if torn {
		seed, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			return fmt.Errorf("cut %q: %w", number, err)
		}
		chance = rand.New(rand.NewPCG(seed, 0))
	}
	if err := d.unmount(); err != nil {
		return err
	}
	d.disk.Cut(chance)
	return d.mount()
}

// serve executes commands until the input ends.
func (d *drive) serve(in io.Reader, out io.Writer) error {
	if err := d.mount(); err != nil {
		return err
	}
	answer := "ok"
	lines := bufio.NewScanner(in)
	for {
		if _, err := fmt.Fprintln(out, answer); err != nil || !lines.Scan() {
			return d.unmount()
		}
		answer = "ok"
		if err := d.obey(lines.Text()); err != nil {
			answer = err.Error()
		}
	}
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: lossydisk DIR")
		os.Exit(2)
	}
	signal.Ignore(os.Interrupt, syscall.SIGTERM) // the end of the input ends it: processes may still use the disk
	d := &drive{disk: lossyfs.NewDisk(0), dir: os.Args[1]}
	if err := d.serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "lossydisk:", err)
		os.Exit(1)
	}
}
