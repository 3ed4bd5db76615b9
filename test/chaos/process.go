//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// errNone is the result of a process that ended without an error.
var errNone = errors.New("exit status 0")

// child is a slot of the deployment, and the process that currently fills it.
type child struct {
	name string // of the slot: n1, w2, c1
	args func(id string) []string
	host *host // where it runs, nil for the host of this process
	logs string

	mu   sync.Mutex
	id   string // of the process now
	born int
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	err  error
	// down is set while it is stopped intentionally, paused while it is suspended.
	down, paused bool
}

// launcher starts processes from one thread that lives as long as this program: a child
// is killed with the thread that started it (see attributes).
var launcher = sync.OnceValue(func() chan func() {
	work := make(chan func())
	go func() { // never ends
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// start starts the process, under the name of its slot or, if anew is set, under a new name.
func (c *child) start(anew bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.alive() {
		return fmt.Errorf("%s is running", c.name)
	}
	c.born++
	if c.id == "" || anew {
		c.id = c.name
		if c.born > 1 {
			c.id = fmt.Sprintf("%s-%d", c.name, c.born)
		}
	}
	log, err := os.OpenFile(filepath.Join(c.logs, c.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has its own
	self, err := os.Executable()
	if err != nil {
		return err
	}
	line := append([]string{self}, c.args(c.id)...)
	if c.host != nil {
		line = c.host.command(line)
	}
	c.cmd = exec.Command(line[0], line[1:]...)
	c.cmd.Stdout, c.cmd.Stderr = log, log
	c.cmd.Env = append(os.Environ(), "NATS_URL=", "NATS_CONTEXT=", "GOMAXPROCS=2")
	c.cmd.SysProcAttr = attributes()
	started := make(chan error)
	launcher() <- func() { started <- c.cmd.Start() }
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", c.name, err)
	}
	c.down, c.paused = false, false
	c.done = make(chan struct{})
	go c.wait(c.cmd, c.done) // ends with the process
	return nil
}

func (c *child) wait(cmd *exec.Cmd, done chan struct{}) {
	err := cmd.Wait()
	c.mu.Lock()
	c.err = err
	c.mu.Unlock()
	close(done)
}

// alive reports whether there is a process. c.mu is held.
func (c *child) alive() bool {
	if c.done == nil {
		return false
	}
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// now returns the id of the current process, and whether it runs.
func (c *child) now() (id string, running bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.id, c.alive() && !c.paused
}

// signal sends a signal, if there is a process.
func (c *child) signal(s syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.alive() {
		return fmt.Errorf("%s is not running", c.name)
	}
	if err := c.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("signal %v to %s: %w", s, c.name, err)
	}
	switch s {
	case sigStop:
		c.paused = true
	case sigCont:
		c.paused = false
	case syscall.SIGKILL, syscall.SIGTERM:
		c.down = true
	}
	return nil
}

// kill ends the process with SIGKILL and returns when it is gone.
func (c *child) kill() error {
	if err := c.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-c.ended()
	return nil
}

func (c *child) ended() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		none := make(chan struct{})
		close(none)
		return none
	}
	return c.done
}

// stop asks the process to leave and waits until it has. It is killed if it does not.
func (c *child) stop(ctx context.Context, patience time.Duration) error {
	if err := c.signal(syscall.SIGTERM); err != nil {
		return nil // gone already
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-c.ended():
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("%s does not end within %v of SIGTERM: killed", c.name, patience), c.kill())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return fmt.Errorf("%s ended with %w; see %s", c.name, c.err, filepath.Join(c.logs, c.name+".log"))
	}
	return nil
}

// fell reports whether the process has ended unexpectedly.
func (c *child) fell() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil || c.down || c.alive() {
		return nil
	}
	return fmt.Errorf("%s (%s) ended by itself: %w; see %s", c.name, c.id, cmp.Or(c.err, errNone), filepath.Join(c.logs, c.name+".log"))
}
