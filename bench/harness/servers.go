package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// Site is where engines run: NATS servers that are one setting of durability, beside all other engines of a run.
type Site struct {
	Name    string
	Servers *Servers
	// Always reports whether an acknowledged write is on the disk.
	Always bool
	// Dir is for the files of engines that keep their own.
	Dir string
	// Others are servers that other engines need; nil if there are none.
	Others *Others
	// Quiet engines send nothing at intervals, so that their messages can be counted.
	Quiet bool
	// First reports whether all cases are measured here, and not only those that are measured everywhere.
	First bool
}

// Servers are NATS servers in processes of their own.
type Servers struct {
	urls, monitors []string
	processes      []*exec.Cmd
	fsyncs         *fsyncCounter
}

// StartServers starts n servers, which are a cluster if there are three, in dir. always makes them sync each write
// before it is acknowledged; otherwise they sync every two minutes, their default.
func StartServers(ctx context.Context, program, dir string, n int, always bool) (*Servers, error) {
	ports, err := freePorts(3 * n)
	if err != nil {
		return nil, err
	}
	var routes []string
	for i := range n {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", ports[3*i+2]))
	}
	s := &Servers{}
	for i := range n {
		if err := s.start(program, filepath.Join(dir, fmt.Sprintf("n%d", i+1)), ports[3*i:3*i+3], routes, always); err != nil {
			s.Stop()
			return nil, err
		}
	}
	if err := s.await(ctx, n); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

func (s *Servers) start(program, dir string, ports []int, routes []string, always bool) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	interval := "2m"
	if always {
		interval = "always"
	}
	text := fmt.Sprintf("server_name: %s\nlisten: \"127.0.0.1:%d\"\nhttp: \"127.0.0.1:%d\"\njetstream {\n  store_dir: %q\n  sync_interval: %s\n}\n",
		filepath.Base(dir), ports[0], ports[1], dir, interval)
	if len(routes) > 1 {
		text += fmt.Sprintf("cluster {\n  name: bench\n  listen: \"127.0.0.1:%d\"\n  routes: [%s]\n}\n", ports[2], strings.Join(routes, ", "))
	}
	file := filepath.Join(dir, "nats.conf")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has its own descriptor
	cmd := exec.Command(program, "-c", file)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	s.processes = append(s.processes, cmd)
	s.urls = append(s.urls, fmt.Sprintf("nats://127.0.0.1:%d", ports[0]))
	s.monitors = append(s.monitors, fmt.Sprintf("http://127.0.0.1:%d", ports[1]))
	return nil
}

// await returns when all servers are healthy and take a request for JetStream.
func (s *Servers) await(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		healthy := 0
		for _, url := range s.monitors {
			if get(ctx, url+"/healthz", nil) == nil {
				healthy++
			}
		}
		if healthy == n && s.hasJetStream(ctx) {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%d of %d NATS servers are healthy after a minute", healthy, n)
		}
	}
}

func (s *Servers) hasJetStream(ctx context.Context) bool {
	nc, err := nats.Connect(s.URL())
	if err != nil {
		return false
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	m, err := nc.RequestWithContext(ctx, "$JS.API.INFO", nil)
	return err == nil && !strings.Contains(string(m.Data), `"error"`)
}

// URL has the addresses of all servers.
func (s *Servers) URL() string { return strings.Join(s.urls, ",") }

// Size is the number of servers.
func (s *Servers) Size() int { return len(s.urls) }

// CPU is the processor time of all servers.
func (s *Servers) CPU() (sum time.Duration) {
	for _, p := range s.processes {
		sum += CPUOf(p.Process.Pid)
	}
	return sum
}

// Traffic is what servers have received and sent, on connections of clients and, in a cluster, of each other.
type Traffic struct {
	MsgsIn   int64 `json:"in_msgs"`
	MsgsOut  int64 `json:"out_msgs"`
	BytesIn  int64 `json:"in_bytes"`
	BytesOut int64 `json:"out_bytes"`
}

// Minus returns the traffic since an earlier moment.
func (t Traffic) Minus(o Traffic) Traffic {
	return Traffic{t.MsgsIn - o.MsgsIn, t.MsgsOut - o.MsgsOut, t.BytesIn - o.BytesIn, t.BytesOut - o.BytesOut}
}

// Traffic returns the sum over all servers.
func (s *Servers) Traffic(ctx context.Context) (sum Traffic, err error) {
	for _, url := range s.monitors {
		var t Traffic
		if err := get(ctx, url+"/varz", &t); err != nil {
			return sum, err
		}
		sum.MsgsIn += t.MsgsIn
		sum.MsgsOut += t.MsgsOut
		sum.BytesIn += t.BytesIn
		sum.BytesOut += t.BytesOut
	}
	return sum, nil
}

// Stop ends the servers. Their files stay.
func (s *Servers) Stop() {
	var all sync.WaitGroup
	for _, p := range s.processes {
		all.Go(func() {
			_ = p.Process.Signal(os.Interrupt) // it may have ended
			_ = p.Wait()
		})
	}
	all.Wait()
}

func get(ctx context.Context, url string, into any) error {
	rq, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	rs, err := http.DefaultClient.Do(rq)
	if err != nil {
		return err
	}
	defer func() { _ = rs.Body.Close() }()
	if rs.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, rs.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(rs.Body).Decode(into)
}

// freePorts returns ports that were free a moment ago.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
