// Package natstest runs NATS servers, and clusters of them, within the process of a test.
package natstest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Cluster is a few servers that are one JetStream cluster.
type Cluster struct {
	Servers []*server.Server
	options []*server.Options
}

// members is as many servers as three replicas need.
const members = 3

// patience is how long a cluster may take to start, or to answer.
const patience = time.Minute

// attempts is how often a cluster is started: another process may take a port between its choice and its use.
const attempts = 3

// StartCluster starts three servers that keep their streams below dir, and returns when streams can be
// created on all of them, through each of them. Shutdown ends them.
func StartCluster(dir string) (*Cluster, error) {
	var errs []error
	for try := range attempts {
		c, err := startCluster(filepath.Join(dir, strconv.Itoa(try+1)))
		if err == nil {
			return c, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("start a cluster: %w", errors.Join(errs...))
}

func startCluster(dir string) (*Cluster, error) {
	ports, err := FreePorts(members)
	if err != nil {
		return nil, err
	}
	c := &Cluster{}
	for i := range ports {
		if err := c.add(i, ports, filepath.Join(dir, strconv.Itoa(i+1))); err != nil {
			c.Shutdown()
			return nil, err
		}
	}
	if err := c.waitUntilComplete(); err != nil {
		c.Shutdown()
		return nil, err
	}
	return c, nil
}

// The ports that FreePorts chooses from: operating systems do not assign them to outgoing connections,
// or to listeners on any port.
const firstPort, lastPort = 20_000, 32_000

// lately is the last port that this process was given, so that two callers get different ones.
var lately = struct {
	sync.Mutex
	port int
}{port: firstPort + rand.IntN(lastPort-firstPort)}

// FreePorts returns n ports that were free a moment ago, for listeners whose ports must be known before they
// listen, such as the members of a cluster, or while they do not listen, such as a server that is restarted.
func FreePorts(n int) (ports []int, err error) {
	lately.Lock()
	defer lately.Unlock()
	for range lastPort - firstPort {
		if lately.port++; lately.port >= lastPort {
			lately.port = firstPort
		}
		l, listenErr := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(lately.port)))
		if err = listenErr; err == nil {
			defer func() { _ = l.Close() }()
			if ports = append(ports, lately.port); len(ports) == n {
				return ports, nil
			}
		}
	}
	return nil, fmt.Errorf("%d ports between %d and %d, of which %d are free: %w", n, firstPort, lastPort, len(ports), err)
}

func (c *Cluster) add(i int, ports []int, dir string) error {
	var routes []*url.URL
	for _, port := range ports {
		routes = append(routes, &url.URL{Scheme: "nats", Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))})
	}
	o := &server.Options{
		ServerName: fmt.Sprintf("n%d", i+1), Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: dir, JetStreamMaxStore: 1 << 30, JetStreamMaxMemory: 1 << 28,
		Cluster: server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: ports[i]},
		Routes:  routes,
	}
	ns, err := server.NewServer(o)
	if err != nil {
		return err
	}
	c.Servers, c.options = append(c.Servers, ns), append(c.options, o)
	go ns.Start() // ends when the server has started
	return nil
}

// Stop stops a server of the cluster, and returns the directory of its files when it has ended.
func (c *Cluster) Stop(i int) (files string) {
	ns := c.Servers[i]
	c.options[i].Port = ns.Addr().(*net.TCPAddr).Port // clients know it
	ns.Shutdown()
	ns.WaitForShutdown()
	return c.options[i].StoreDir
}

// Start restarts a server that was stopped, with the files in a directory.
func (c *Cluster) Start(i int, files string) error {
	o := c.options[i].Clone()
	o.StoreDir = files
	ns, err := server.NewServer(o)
	if err != nil {
		return err
	}
	c.Servers[i], c.options[i] = ns, o
	go ns.Start() // ends when the server has started
	if !ns.ReadyForConnections(patience) {
		return fmt.Errorf("server %s does not start again within %v", o.ServerName, patience)
	}
	return nil
}

func (c *Cluster) waitUntilComplete() error {
	for _, ns := range c.Servers {
		if !ns.ReadyForConnections(patience) {
			return fmt.Errorf("server %s does not start within %v", ns.Name(), patience)
		}
	}
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	var err error
	for made := 0; made < len(c.Servers); {
		if err = c.complete(); err == nil {
			if err = c.tryStream(c.Servers[made]); err == nil {
				made++
				continue
			}
		}
		select {
		case <-again.C:
		case <-deadline.C:
			return fmt.Errorf("no stream can be made on all %d servers after %v: %w", members, patience, err)
		}
	}
	return nil
}

// routes is the number of routes of a server to the others: the pool, and the one of the system account.
// While they are established, some are created twice and closed again, and with each new route a server
// forgets what it knows about the other.
const routes = (members - 1) * (server.DEFAULT_ROUTE_POOL_SIZE + 1)

// complete returns why no leader has heard from all members recently: a leader places nothing on members that
// it only knows by name.
func (c *Cluster) complete() error {
	for _, ns := range c.Servers {
		if n := ns.NumRoutes(); n != routes {
			return fmt.Errorf("server %s has %d routes of %d", ns.Name(), n, routes)
		}
	}
	if !slices.ContainsFunc(c.Servers, leads) {
		return errors.New("no leader has heard of all servers")
	}
	return nil
}

func leads(ns *server.Server) bool {
	info, err := ns.Jsz(nil)
	return err == nil && ns.JetStreamIsLeader() && info.Meta != nil && len(info.Meta.Replicas) == members-1 &&
		!slices.ContainsFunc(info.Meta.Replicas, func(p *server.PeerInfo) bool { return p.Offline || !p.Current })
}

// brief is how long to wait for an answer that may never arrive: a request made before its subject is known
// everywhere is delivered to no server.
const brief = 2 * time.Second

// tryStream creates a stream on all members through one of them, and deletes it.
func (c *Cluster) tryStream(through *server.Server) error {
	nc, err := nats.Connect(through.ClientURL())
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := nc.JetStream(nats.MaxWait(brief))
	if err != nil {
		return err
	}
	name := "TRY_" + through.Name()
	if _, err := js.AddStream(&nats.StreamConfig{Name: name, Replicas: members}); err != nil {
		return err
	}
	return js.DeleteStream(name)
}

// URLs returns where clients connect, separated by commas.
func (c *Cluster) URLs() string {
	var all []string
	for _, ns := range c.Servers {
		all = append(all, ns.ClientURL())
	}
	return strings.Join(all, ",")
}

// Shutdown stops the servers and returns when they are gone.
func (c *Cluster) Shutdown() {
	for _, ns := range c.Servers {
		ns.Shutdown()
	}
	for _, ns := range c.Servers {
		ns.WaitForShutdown()
	}
}

// StepDown makes the leader of a stream resign. Another one, or the same again, is elected after StepDown has
// returned. The request is repeated while the stream has no leader: then a server answers with an error, or
// none answers.
func StepDown(nc *nats.Conn, stream string) error {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(patience); ; <-again.C {
		reply, err := nc.Request("$JS.API.STREAM.LEADER.STEPDOWN."+stream, nil, brief)
		refused := false
		if err == nil {
			answer := string(reply.Data)
			if strings.Contains(answer, `"success":true`) {
				return nil
			}
			err, refused = errors.New(answer), !strings.Contains(answer, `"code":503`)
		}
		if refused || errors.Is(err, nats.ErrConnectionClosed) || time.Now().After(deadline) {
			return fmt.Errorf("leader of %s, step down: %w", stream, err)
		}
	}
}
