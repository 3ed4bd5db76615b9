package harness

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// fsyncCounter counts calls of fsync and fdatasync of processes by perf stat, which counts in the kernel and does not
// delay them.
type fsyncCounter struct {
	cmd *exec.Cmd
	out bytes.Buffer
}

// CanCountFsyncs returns why fsyncs cannot be counted, nil if they can.
func CanCountFsyncs(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if text, err := exec.CommandContext(ctx, "perf", "stat", "-e", fsyncEvents, "true").CombinedOutput(); err != nil {
		return fmt.Errorf("perf stat cannot count them: %w: %.200s", err, bytes.TrimSpace(text))
	}
	return nil
}

const fsyncEvents = "syscalls:sys_enter_fsync,syscalls:sys_enter_fdatasync"

// CountFsyncs begins to count those of the servers and of other processes. Fsyncs returns the number, and ends counting.
func (s *Servers) CountFsyncs(pids ...int) error {
	for _, p := range s.processes {
		pids = append(pids, p.Process.Pid)
	}
	var list []string
	for _, pid := range pids {
		list = append(list, strconv.Itoa(pid))
	}
	if s.fsyncs != nil { // of a round that has failed
		_, _ = s.Fsyncs()
	}
	c := &fsyncCounter{cmd: exec.Command("perf", "stat", "-x", ",", "-e", fsyncEvents, "-p", strings.Join(list, ","))}
	c.cmd.Stderr = &c.out
	if err := c.cmd.Start(); err != nil {
		return err
	}
	// perf reports nothing when it has attached; it has done so when it holds one descriptor per event and thread.
	for range 200 {
		if files, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", c.cmd.Process.Pid)); len(files) > 2*len(pids)+3 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond)
	s.fsyncs = c
	return nil
}

// Fsyncs returns the number of fsyncs since CountFsyncs.
func (s *Servers) Fsyncs() (sum int64, err error) {
	c := s.fsyncs
	s.fsyncs = nil
	if err := c.cmd.Process.Signal(os.Interrupt); err != nil {
		return 0, err
	}
	_ = c.cmd.Wait() // it ends with a signal
	for line := range strings.Lines(c.out.String()) {
		count, _, _ := strings.Cut(line, ",")
		if n, err := strconv.ParseInt(strings.TrimSpace(count), 10, 64); err == nil {
			sum += n
		}
	}
	return sum, nil
}
