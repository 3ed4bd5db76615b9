package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/test/powerloss/lossyfs"
)

// patience is how long servers may take to restart. A successful run never waits that long.
const patience = 90 * time.Second

// cluster is one server or three, each with a disk of its own.
type cluster struct {
	binary string
	nodes  []*node
}

type node struct {
	conf, store string
	url         string
	disk        *lossyfs.Disk
	unmount     func() error
	process     *exec.Cmd
}

// buildServer builds nats-server in the version of go.mod.
func buildServer(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "nats-server")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/nats-io/nats-server/v2").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build nats-server: %w\n%s", err, out)
	}
	return binary, nil
}

func newCluster(dir, binary string, p plan) (*cluster, error) {
	ports, err := freePorts(2 * p.Nodes)
	if err != nil {
		return nil, err
	}
	c := &cluster{binary: binary}
	var routes []string
	for i := range p.Nodes {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", ports[p.Nodes+i]))
	}
	for i := range p.Nodes {
		n := &node{
			conf: fmt.Sprintf("%s/%d.conf", dir, i), store: fmt.Sprintf("%s/%d", dir, i),
			url: fmt.Sprintf("nats://127.0.0.1:%d", ports[i]), disk: lossyfs.NewDisk(0),
		}
		if err := os.MkdirAll(n.store, 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(n.conf, []byte(n.config(i, ports[i], ports[p.Nodes+i], routes, p.Sync)), 0o600); err != nil {
			return nil, err
		}
		c.nodes = append(c.nodes, n)
	}
	for _, n := range c.nodes {
		if err := n.start(binary); err != nil {
			c.remove()
			return nil, err
		}
	}
	return c, nil
}

func (n *node) config(i, port, routePort int, routes []string, sync string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "server_name: n%d\nlisten: 127.0.0.1:%d\nlog_file: %q\n", i, port, n.conf+".log")
	fmt.Fprintf(&b, "jetstream {\n  store_dir: %q\n  max_file: 8GB\n", n.store)
	if sync != "default" {
		fmt.Fprintf(&b, "  sync_interval: %s\n", sync)
	}
	b.WriteString("}\n")
	if len(routes) > 1 {
		fmt.Fprintf(&b, "cluster {\n  name: power\n  listen: 127.0.0.1:%d\n  routes: [%s]\n}\n", routePort, strings.Join(routes, ", "))
	}
	return b.String()
}

// start mounts the disk and starts the server.
func (n *node) start(binary string) (err error) {
	if n.unmount, err = lossyfs.Mount(n.disk, n.store); err != nil {
		return err
	}
	n.process = exec.Command(binary, "-c", n.conf)
	return n.process.Start()
}

// end kills the server and unmounts the disk.
func (n *node) end() error {
	if n.process == nil {
		return nil
	}
	_ = n.process.Process.Kill()
	_ = n.process.Wait()
	n.process = nil
	return n.unmount()
}

// cut cuts the power of some servers at once, and restarts them.
func (c *cluster) cut(victims []int, power bool, torn *rand.Rand) error {
	for _, i := range victims {
		_ = c.nodes[i].process.Process.Kill()
	}
	for _, i := range victims {
		if err := c.nodes[i].end(); err != nil {
			return err
		}
		if power {
			c.nodes[i].disk.Cut(torn)
		}
	}
	for _, i := range victims {
		if err := c.nodes[i].start(c.binary); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) remove() {
	for _, n := range c.nodes {
		_ = n.end()
	}
}

func (c *cluster) syncAll() {
	for _, n := range c.nodes {
		n.disk.SyncAll()
	}
}

func (c *cluster) dropped() (total int64) {
	for _, n := range c.nodes {
		total += n.disk.Counts().Dropped
	}
	return total
}

func (c *cluster) urls() string {
	var all []string
	for _, n := range c.nodes {
		all = append(all, n.url)
	}
	return strings.Join(all, ",")
}

// wait returns when every stream has a leader and all of its replicas are up to date, so that a cut of
// one server does not coincide with the recovery of another.
func (c *cluster) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error
	for ctx.Err() == nil {
		if last = c.current(); last == nil {
			return nil
		}
		pause(ctx, 100*time.Millisecond)
	}
	return fmt.Errorf("the servers are not back after %v: %w", patience, last)
}

// current returns nil if every stream is healthy.
func (c *cluster) current() error {
	for _, n := range c.nodes {
		nc, err := nats.Connect(n.url, nats.Timeout(2*time.Second))
		if err != nil {
			return fmt.Errorf("%s: %w", n.url, err)
		}
		err = streamsCurrent(nc, len(c.nodes))
		nc.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

type streamList struct {
	Total   int
	Streams []struct {
		Config  struct{ Name string }
		Cluster *struct {
			Leader   string
			Replicas []struct {
				Name    string
				Current bool
				Lag     uint64
			}
		}
	}
	Missing []string
	Error   *struct{ Description string }
}

func streamsCurrent(nc *nats.Conn, nodes int) error {
	m, err := nc.Request("$JS.API.STREAM.LIST", nil, 5*time.Second)
	if err != nil {
		return err
	}
	var list streamList
	if err := json.Unmarshal(m.Data, &list); err != nil {
		return err
	}
	switch {
	case list.Error != nil:
		return errors.New(list.Error.Description)
	case len(list.Missing) > 0:
		return fmt.Errorf("streams without an answer: %v", list.Missing)
	}
	for _, s := range list.Streams {
		if nodes == 1 {
			continue
		}
		if s.Cluster == nil || s.Cluster.Leader == "" || len(s.Cluster.Replicas) != nodes-1 {
			return fmt.Errorf("stream %s has no leader", s.Config.Name)
		}
		for _, r := range s.Cluster.Replicas {
			if !r.Current || r.Lag > 0 {
				return fmt.Errorf("stream %s is behind on %s", s.Config.Name, r.Name)
			}
		}
	}
	return nil
}

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

// pause waits for a time or a context.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
