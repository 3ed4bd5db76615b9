package harness

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// CPUOf returns the processor time of a process so far, 0 if it has ended. It is counted in ticks of 10 ms.
func CPUOf(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, found := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if !found || len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond
}

// OwnCPU returns the processor time of this process.
func OwnCPU() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// Usage is what a process has used so far.
type Usage struct {
	CPU time.Duration `json:"cpu"`
	// Allocs and Bytes are allocations, since the start.
	Allocs uint64 `json:"allocs"`
	Bytes  uint64 `json:"bytes"`
	// Heap is what is in use after a garbage collection, if one was asked for.
	Heap uint64 `json:"heap"`
}

// OwnUsage returns that of this process; collect runs a garbage collection first.
func OwnUsage(collect bool) Usage {
	if collect {
		runtime.GC()
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Usage{OwnCPU(), m.Mallocs, m.TotalAlloc, m.HeapInuse + m.StackInuse}
}

// RoleEnv names the role that this executable plays when the benchmark starts it again, as the worker of an engine.
const RoleEnv = "SETTLE_BENCH_ROLE"

// Role is what a role is given.
type Role struct {
	Engine string `json:"engine"`
	URL    string `json:"url"`
	Size   int    `json:"size"` // of the cluster
	Quiet  bool   `json:"quiet"`
	// Observed is how the process is observed.
	Observed Observed `json:"observed,omitzero"`
}

// Process is a process in a role.
type Process struct {
	cmd     *exec.Cmd
	mu      sync.Mutex
	ask     io.WriteCloser
	answers *bufio.Scanner
}

// StartRole starts this executable again, and returns when the role is ready.
func StartRole(r Role) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: exec.Command(self)}
	p.cmd.Env = append(os.Environ(), RoleEnv+"="+string(text))
	p.cmd.Stderr = os.Stderr
	if p.ask, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.answers = bufio.NewScanner(out)
	if !p.answers.Scan() || p.answers.Text() != "ready" {
		_ = p.Stop()
		return nil, fmt.Errorf("the process of %s is not ready: %q", r.Engine, p.answers.Text())
	}
	return p, nil
}

// Usage asks the process.
func (p *Process) Usage(collect bool) (u Usage, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := fmt.Fprintln(p.ask, collect); err != nil {
		return u, err
	}
	if !p.answers.Scan() {
		return u, errors.New("the process has ended")
	}
	return u, json.Unmarshal(p.answers.Bytes(), &u)
}

// PID is its number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stop ends the process, by the end of its input.
func (p *Process) Stop() error {
	_ = p.ask.Close() // it may have ended
	return p.cmd.Wait()
}

// ServeRole is the main loop of a role: it reports that the role is ready, and answers questions until its input ends.
func ServeRole() error {
	stop, err := Profile()
	if err != nil {
		return err
	}
	defer stop()
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if err := json.NewEncoder(os.Stdout).Encode(OwnUsage(lines.Text() == "true")); err != nil {
			return err
		}
	}
	return nil
}

// ProfileEnv names a directory in which processes leave profiles of their processor time.
const ProfileEnv = "SETTLE_BENCH_PROFILES"

// Profile begins a profile of this process, if one is wanted.
func Profile() (stop func(), err error) {
	dir := os.Getenv(ProfileEnv)
	if dir == "" {
		return func() {}, nil
	}
	f, err := os.Create(filepath.Join(dir, fmt.Sprintf("cpu-%d.prof", os.Getpid())))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close() // it is complete, or cannot be read
	}, nil
}
