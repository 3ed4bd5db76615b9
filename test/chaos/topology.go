//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/test/chaos/history"
)

// deployment has all processes of a run, with their hosts and disks.
type deployment struct {
	o    *options
	dir  string // of data and logs
	net  *network
	disk *disk
	// power are the disks whose power can be cut, by the name of the server.
	power map[string]*powerDisk
	// untried are kinds of faults that this machine does not allow, and why.
	untried map[string]string

	nodes, workers, coordinators []*child
	urls                         []string
	// webs are the addresses at which the workers serve HTTP.
	webs []string
}

// webToken is the token for clients of the workers over HTTP.
const webToken = "chaos"

const (
	dataPrefix = "settle-chaos-"
	keptPrefix = "settle-chaos-kept-"
)

// newDeployment prepares everything and starts nothing.
func newDeployment(o *options, dir string) (*deployment, error) {
	d := &deployment{o: o, dir: dir, untried: map[string]string{}}
	for _, sub := range []string{"log", "conf", "counts"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, err
		}
	}
	var err error
	if o.NoNetwork {
		d.untried[faultPartition] = "switched off by --no-network"
	} else if d.net, err = openNetwork(); err != nil {
		d.untried[faultPartition] = "network namespaces cannot be made here: " + err.Error()
	}
	last := "n1"
	if o.Topology == topologyCluster {
		last = "n3"
	}
	if o.Power {
		d.untried[faultDisk] = "the disks are those whose power is cut"
	} else if o.NoDisk {
		d.untried[faultDisk] = "switched off by --no-disk"
	} else if d.disk, err = newDisk(dir, last, o.DiskMiB); err != nil {
		d.untried[faultDisk] = "a file system of limited size cannot be mounted here: " + err.Error()
	}
	if err := d.place(last); err != nil {
		return nil, errors.Join(err, d.close(false))
	}
	return d, nil
}

// address returns the address of a process.
type address struct {
	host         *host
	ip           string
	client, peer int
}

// place assigns an address and a command line to every process.
func (d *deployment) place(withDisk string) error {
	nodes := 1
	if d.o.Topology == topologyCluster {
		nodes = 3
	}
	var addresses []address
	for i := range nodes {
		a, err := d.address("n" + strconv.Itoa(i+1))
		if err != nil {
			return err
		}
		addresses = append(addresses, a)
		d.urls = append(d.urls, fmt.Sprintf("nats://%s:%d", a.ip, a.client))
	}
	for i, a := range addresses {
		name := "n" + strconv.Itoa(i+1)
		store := filepath.Join(d.dir, name)
		if d.disk != nil && name == withDisk {
			store = d.disk.store()
		}
		if d.o.Power {
			disk, err := d.powerDisk(name)
			if err != nil {
				return err
			}
			store = disk.dir
		}
		if err := d.node(name, a, addresses, store); err != nil {
			return err
		}
	}
	for i := range d.o.Workers {
		if err := d.worker("w" + strconv.Itoa(i+1)); err != nil {
			return err
		}
	}
	for i := range d.o.Coordinators {
		if err := d.coordinator("c" + strconv.Itoa(i+1)); err != nil {
			return err
		}
	}
	if d.net != nil {
		return d.net.connect()
	}
	return nil
}

// powerDisk gives a server a disk whose power can be cut.
func (d *deployment) powerDisk(name string) (*powerDisk, error) {
	if d.power == nil {
		if _, err := buildPower(d.dir); err != nil {
			return nil, err
		}
		d.power = map[string]*powerDisk{}
	}
	dir := filepath.Join(d.dir, powerPrefix+name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	disk, err := newPowerDisk(filepath.Join(d.dir, "lossydisk"), dir)
	if err == nil {
		d.power[name] = disk
	}
	return disk, err
}

func (d *deployment) address(name string) (a address, err error) {
	if d.net == nil {
		ports, err := natstest.FreePorts(2)
		if err != nil {
			return a, err
		}
		return address{ip: "127.0.0.1", client: ports[0], peer: ports[1]}, nil
	}
	if a.host, err = d.net.add(name); err != nil {
		return a, err
	}
	return address{host: a.host, ip: a.host.ip, client: 4222, peer: 6222}, nil
}

func (d *deployment) child(name string, h *host, args func(id string) []string) *child {
	return &child{name: name, host: h, logs: filepath.Join(d.dir, "log"), args: args}
}

// node prepares a NATS server.
func (d *deployment) node(name string, a address, all []address, store string) error {
	conf := fmt.Sprintf("server_name: %s\njetstream { store_dir: %q, max_file_store: 64GB, max_memory_store: 1GB }\n", name, store)
	if len(all) > 1 {
		var routes []string
		for _, p := range all {
			routes = append(routes, fmt.Sprintf("nats://%s:%d", p.ip, p.peer))
		}
		conf += fmt.Sprintf("cluster { name: chaos, listen: \"%s:%d\", routes: [%s] }\n", a.ip, a.peer, strings.Join(routes, ", "))
	}
	file := filepath.Join(d.dir, "conf", name+".conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		return err
	}
	d.nodes = append(d.nodes, d.child(name, a.host, func(string) []string {
		return []string{"nats", "--config", file, "--store", store, "--fsync", d.o.fsync(), "--listen", fmt.Sprintf("%s:%d", a.ip, a.client)}
	}))
	return nil
}

func (d *deployment) host(name string) (*host, error) {
	if d.net == nil {
		return nil, nil
	}
	return d.net.add(name)
}

func (d *deployment) worker(name string) error {
	a, err := d.webAddress(name)
	if err != nil {
		return err
	}
	d.webs = append(d.webs, "http://"+a.web())
	w := d.o.workload()
	d.workers = append(d.workers, d.child(name, a.host, func(id string) []string {
		return []string{
			"worker", "--nats", d.url(), "--id", id, "--log", "info",
			"--seed", strconv.FormatUint(w.Seed, 10), "--spaces", strconv.Itoa(w.Spaces), "--clients", strconv.Itoa(w.Clients),
			"--hosted", strconv.Itoa(w.Hosted), "--http", a.web(), "--skew=" + skewOf(w.Seed, id, d.o.Skew).String(),
			"--history-bytes=" + strconv.FormatInt(d.o.historyBytes(), 10), "--purge-delay", d.o.PurgeDelay.String(), "--idle", d.o.Idle.String(),
			"--counts", filepath.Join(d.dir, "counts", fmt.Sprintf("%s.%d.counts", id, time.Now().UnixNano())), "--break", d.o.Break,
		}
	}))
	return nil
}

// skewOf returns the clock error of a worker, up to most.
func skewOf(seed uint64, id string, most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	r := rand.New(rand.NewPCG(seed, uint64(history.Hash(id))))
	return time.Duration(r.Int64N(2*int64(most)+1) - int64(most)).Truncate(time.Millisecond)
}

// webAddress returns the address at which a worker serves HTTP.
func (d *deployment) webAddress(name string) (a address, err error) {
	if d.net == nil {
		ports, err := natstest.FreePorts(1)
		if err != nil {
			return a, err
		}
		return address{ip: "127.0.0.1", client: ports[0]}, nil
	}
	if a.host, err = d.net.add(name); err != nil {
		return a, err
	}
	return address{host: a.host, ip: a.host.ip, client: 8470}, nil
}

func (a address) web() string { return fmt.Sprintf("%s:%d", a.ip, a.client) }

func (d *deployment) coordinator(name string) error {
	h, err := d.host(name)
	d.coordinators = append(d.coordinators, d.child(name, h, func(id string) []string {
		return []string{"coordinator", "--nats", d.url(), "--id", id, "--log", "info", "--break", d.o.Break}
	}))
	return err
}

func (d *deployment) url() string { return strings.Join(d.urls, ",") }

// busConfig returns the configuration of this program's own connections.
func (d *deployment) busConfig(name string) bus.Config {
	return bus.Config{URL: d.url(), Name: name, Partitions: d.o.Partitions}
}

// start starts everything, the servers first.
func (d *deployment) start(ctx context.Context) error {
	for _, n := range d.nodes {
		if err := n.start(false); err != nil {
			return err
		}
	}
	if err := d.provision(ctx); err != nil {
		return err
	}
	for _, c := range append(d.coordinators, d.workers...) {
		if err := c.start(false); err != nil {
			return err
		}
	}
	return nil
}

// provision creates the streams as soon as a server accepts the request.
func (d *deployment) provision(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := d.tryProvision(ctx)
		if err == nil {
			return nil
		}
		if pause.For(ctx, 200*time.Millisecond) != nil {
			return fmt.Errorf("the servers do not come up: %w; see %s", err, filepath.Join(d.dir, "log"))
		}
	}
}

func (d *deployment) tryProvision(ctx context.Context) error {
	b, err := bus.Connect(ctx, d.busConfig("client/provision"))
	if err != nil {
		return err
	}
	defer b.Close()
	if err := b.Provision(ctx); err != nil {
		return err
	}
	return deploy(ctx, b, d.o.workload(), 1)
}

// all returns the processes, the servers last.
func (d *deployment) all() []*child {
	var all []*child
	all = append(append(append(all, d.workers...), d.coordinators...), d.nodes...)
	return all
}

// stopAll asks processes to leave, all at once.
func stopAll(ctx context.Context, list []*child) error {
	var g errgroup.Group
	errs := make([]error, len(list))
	for i, c := range list {
		g.Go(func() error { errs[i] = c.stop(ctx, 40*time.Second); return nil })
	}
	_ = g.Wait() // none
	return errors.Join(errs...)
}

// close ends the processes that still run, and removes the network and the disks.
func (d *deployment) close(keep bool) error {
	for _, c := range d.all() {
		_ = c.kill() // it may be gone
	}
	var errs []error
	if d.net != nil {
		d.net.close()
	}
	if d.disk != nil {
		errs = append(errs, d.disk.close(keep))
	}
	for _, p := range d.power { // any order: each on its own
		errs = append(errs, p.close(keep))
	}
	return errors.Join(errs...)
}
