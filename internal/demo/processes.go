package demo

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/worker"
)

// processes is a deployment whose workers and coordinator are processes of their own: this program,
// started again in a role (see Role). The server is in this process, unless it is an outside one,
// and listens on the loopback interface.
type processes struct {
	cfg     settle.Config
	program string   // see Options.Program
	more    []string // further arguments of workers
	server  *embedded.Server
	url     string
	bus     *bus.Bus
	client  *settle.Client

	mu          sync.Mutex
	coordinator *child
	workers     []*child
	born        int
	runs        map[string]map[worker.RunKey]uint64 // by worker, as last reported
}

// startProcesses starts them and returns when the workers serve their partitions.
func startProcesses(ctx context.Context, cfg settle.Config, program string, more ...string) (*processes, error) {
	p := &processes{cfg: cfg, program: cmp.Or(program, Go), more: more, url: cfg.Bus.URL, runs: map[string]map[worker.RunKey]uint64{}}
	if err := p.start(ctx); err != nil {
		return nil, errors.Join(err, p.Stop(ctx))
	}
	return p, nil
}

func (p *processes) start(ctx context.Context) (err error) {
	config := p.cfg.Bus
	config.Name = "client/main"
	if p.url == "" {
		p.cfg.Server.Listen = ":0"
		if p.server, err = embedded.Start(context.Background(), p.cfg.Server); err != nil {
			return fmt.Errorf("start the embedded server: %w", err)
		}
		p.url, config.Server = p.server.ClientURL(), p.server
	}
	if p.bus, err = bus.Connect(ctx, config); err != nil {
		return err
	}
	if err := p.bus.Provision(ctx); err != nil {
		return err
	}
	if p.client, err = settle.NewClient(p.bus, settle.ClientConfig{ID: "main", Tracer: p.cfg.Tracer}); err != nil {
		return err
	}
	if p.coordinator, err = p.launch(ctx, RoleCoordinator, "c1"); err != nil {
		return err
	}
	for range p.cfg.Workers {
		if _, err := p.AddWorker(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Workers returns the ids of the running workers.
func (p *processes) Workers() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	ids := make([]string, len(p.workers))
	for i, c := range p.workers {
		ids[i] = c.id
	}
	return ids
}

// AddWorker starts one more worker and returns its id.
func (p *processes) AddWorker(ctx context.Context) (string, error) {
	p.mu.Lock()
	p.born++
	id := "w" + strconv.Itoa(p.born)
	p.mu.Unlock()
	c, err := p.launch(ctx, RoleWorker, id)
	if err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.workers = append(p.workers, c)
	return id, nil
}

// KillWorker kills the process of a worker by SIGKILL, and returns when it is gone. It reports
// whether there was one of that id.
func (p *processes) KillWorker(id string) bool {
	p.mu.Lock()
	i := slices.IndexFunc(p.workers, func(c *child) bool { return c.id == id })
	if i < 0 {
		p.mu.Unlock()
		return false
	}
	c := p.workers[i]
	p.workers = slices.Delete(slices.Clone(p.workers), i, i+1)
	p.mu.Unlock()
	return c.kill()
}

// Runs returns how often each computation ran, as reported by the workers. A killed worker's last
// moment is missing.
func (p *processes) Runs() map[worker.RunKey]uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	sum := map[worker.RunKey]uint64{}
	for _, runs := range p.runs {
		for k, n := range runs {
			sum[k] += n
		}
	}
	return sum
}

// Bus returns the connection of this process.
func (p *processes) Bus() *bus.Bus { return p.bus }

// Client returns a client of the deployment.
func (p *processes) Client() *settle.Client { return p.client }

// StopWorkers makes the workers save their spaces and leave.
func (p *processes) StopWorkers(ctx context.Context) error {
	p.mu.Lock()
	workers := p.workers
	p.workers = nil
	p.mu.Unlock()
	errs := make([]error, len(workers))
	var all sync.WaitGroup
	for i, c := range workers {
		all.Go(func() { errs[i] = c.stop(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Stop ends everything in good order.
func (p *processes) Stop(ctx context.Context) error {
	err := p.StopWorkers(ctx)
	if p.coordinator != nil {
		err = errors.Join(err, p.coordinator.stop(ctx))
	}
	if p.client != nil {
		p.client.Close()
	}
	if p.bus != nil {
		p.bus.Close()
	}
	if p.server != nil {
		p.server.Shutdown()
	}
	return err
}

// child is a process in a role. It ends with this process, which holds its standard input open.
type child struct {
	id    string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	ready chan struct{}
	// ended is closed when the process has ended, with err as its result.
	ended chan struct{}
	err   error
}

// launch starts a process and returns when it serves.
func (p *processes) launch(ctx context.Context, role, id string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program, to run it as a %s: %w", role, err)
	}
	c := &child{id: id, ready: make(chan struct{}), ended: make(chan struct{})}
	c.cmd = exec.Command(self, "demo", "role", role, "--nats", p.url, "--id", id, "--program", p.program,
		"--prefix", p.cfg.Bus.Prefix, "--heartbeat", p.cfg.Heartbeat.String(), "--checkpoint", p.cfg.Checkpoint.String())
	if role == RoleWorker {
		c.cmd.Args = append(c.cmd.Args, p.more...)
	}
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err == nil {
		c.stdin, err = c.cmd.StdinPipe()
	}
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start %s %s: %w", role, id, err)
	}
	go c.follow(out, p.addRuns) // ends with the process
	select {
	case <-c.ready:
		return c, nil
	case <-c.ended:
		return nil, fmt.Errorf("%s %s ended before it served: %w", role, id, c.err)
	case <-ctx.Done():
		c.kill()
		return nil, fmt.Errorf("start %s %s: %w", role, id, ctx.Err())
	}
}

// follow reads the output of the process until it ends.
func (c *child) follow(out io.Reader, told func(id string, runs []runCount)) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for first := true; lines.Scan(); first = false {
		if first {
			close(c.ready)
			continue
		}
		var runs []runCount
		if json.Unmarshal(lines.Bytes(), &runs) == nil {
			told(c.id, runs)
		}
	}
	c.err = c.cmd.Wait()
	close(c.ended)
}

// addRuns stores the runs that a worker reports.
func (p *processes) addRuns(id string, runs []runCount) {
	p.mu.Lock()
	defer p.mu.Unlock()
	counts := map[worker.RunKey]uint64{}
	for _, r := range runs {
		counts[worker.RunKey{Space: r.Space, Node: r.Node}] = r.Runs
	}
	p.runs[id] = counts
}

// kill ends the process with SIGKILL and returns when it is gone. It reports whether it was
// running.
func (c *child) kill() bool {
	err := c.cmd.Process.Kill()
	<-c.ended
	return err == nil
}

// stop asks the process to leave in good order, and kills it at the end of ctx.
func (c *child) stop(ctx context.Context) error {
	_, _ = io.WriteString(c.stdin, stopWord+"\n") // fails if the process is gone
	select {
	case <-c.ended:
	case <-ctx.Done():
		c.kill()
		return fmt.Errorf("stop %s: %w", c.id, ctx.Err())
	}
	if c.err != nil {
		return fmt.Errorf("stop %s: %w", c.id, c.err)
	}
	return nil
}
