//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// network gives every process of a deployment a host of its own: a network namespace,
// joined to the others by a bridge. A link between two of them is cut in one direction by
// a wrong hardware address: packets are lost without an error.
type network struct {
	bridge, prefix string // of names; the subnet follows from the process's id
	subnet         string
	hosts          []*host
}

// host is one network namespace.
type host struct {
	net     *network
	name    string
	ns      string
	ip, mac string
	severed map[string]bool // hosts that it does not reach
}

// nowhere is a hardware address that no host has.
const nowhere = "02:de:ad:00:00:01"

const (
	namespacePrefix = "settle-chaos-"
	bridgePrefix    = "stlcb"
)

// openNetwork creates the bridge. It fails on machines without such networks.
func openNetwork() (*network, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("it needs root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return nil, errors.New("it needs the command ip (iproute2)")
	}
	removeStaleNetworks()
	pid := os.Getpid()
	n := &network{bridge: bridgePrefix + strconv.Itoa(pid), prefix: namespacePrefix + strconv.Itoa(pid) + "-"}
	n.subnet = fmt.Sprintf("10.%d.%d.", 200+pid/250%50, pid%250)
	err := errors.Join(
		ip("link", "add", n.bridge, "type", "bridge"),
		ip("addr", "add", n.subnet+"1/24", "dev", n.bridge),
		ip("link", "set", n.bridge, "up"))
	if err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

// add creates a host. connect must be called after the last one.
func (n *network) add(name string) (*host, error) {
	i := len(n.hosts) + 10
	h := &host{
		net: n, name: name, ns: n.prefix + name, ip: n.subnet + strconv.Itoa(i),
		mac: fmt.Sprintf("02:5e:77:1e:00:%02x", i), severed: map[string]bool{},
	}
	veth := fmt.Sprintf("stlv%x-%d", os.Getpid(), i)
	if err := ip("netns", "add", h.ns); err != nil {
		return nil, err
	}
	n.hosts = append(n.hosts, h)
	for _, args := range [][]string{
		{"link", "add", veth, "type", "veth", "peer", "name", "eth0", "netns", h.ns},
		{"link", "set", veth, "master", n.bridge, "up"},
		{"-n", h.ns, "link", "set", "eth0", "address", h.mac},
		{"-n", h.ns, "addr", "add", h.ip + "/24", "dev", "eth0"},
		{"-n", h.ns, "link", "set", "eth0", "up"},
		{"-n", h.ns, "link", "set", "lo", "up"},
	} {
		if err := ip(args...); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// connect sets the hardware addresses of the other hosts on every host, so that no host asks.
func (n *network) connect() error {
	var errs []error
	for _, a := range n.hosts {
		for _, b := range n.hosts {
			if a != b {
				errs = append(errs, a.route(b, b.mac))
			}
		}
	}
	return errors.Join(errs...)
}

func (h *host) route(to *host, mac string) error {
	return ip("-n", h.ns, "neigh", "replace", to.ip, "lladdr", mac, "dev", "eth0", "nud", "permanent")
}

// cut drops packets from h to another host, until heal.
func (h *host) cut(to *host) error {
	h.severed[to.name] = true
	return h.route(to, nowhere)
}

// heal ends the cuts of a host, in both directions.
func (n *network) heal(h *host) error {
	var errs []error
	for _, other := range n.hosts {
		if h.severed[other.name] {
			delete(h.severed, other.name)
			errs = append(errs, h.route(other, other.mac))
		}
		if other.severed[h.name] {
			delete(other.severed, h.name)
			errs = append(errs, other.route(h, h.mac))
		}
	}
	return errors.Join(errs...)
}

// command returns a command line that runs on the host.
func (h *host) command(line []string) []string {
	return append([]string{"ip", "netns", "exec", h.ns}, line...)
}

// close removes everything.
func (n *network) close() {
	for _, h := range n.hosts {
		_ = ip("netns", "del", h.ns) // with its links; leftovers are removed by the next run
	}
	_ = ip("link", "del", n.bridge)
}

// removeStaleNetworks removes the leftovers of killed runs.
func removeStaleNetworks() {
	out, _ := exec.Command("ip", "netns", "list").Output() // none, then
	for line := range strings.Lines(string(out)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if rest, ok := strings.CutPrefix(name, namespacePrefix); ok {
			if pid, _, ok := strings.Cut(rest, "-"); ok && gone(pid) {
				_ = ip("netns", "del", name)
			}
		}
	}
	links, _ := os.ReadDir("/sys/class/net")
	for _, l := range links {
		if pid, ok := strings.CutPrefix(l.Name(), bridgePrefix); ok && gone(pid) {
			_ = ip("link", "del", l.Name())
		}
	}
}

// gone reports whether no process has that id.
func gone(pid string) bool {
	n, err := strconv.Atoi(pid)
	return err == nil && errors.Is(syscall.Kill(n, 0), syscall.ESRCH)
}

func ip(args ...string) error { return run("ip", args...) }

// run runs a command whose output is an error message.
func run(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
