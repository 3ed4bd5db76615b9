package dev

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"github.com/settlehq/settle/internal/devserver"
)

const (
	// Store is the directory of the data, below the working directory.
	Store = devserver.Store
	// ContextName is the name of the nats context that is written.
	ContextName = "settle-dev"

	// NATSPort and HTTPPort are the first ports that are tried.
	NATSPort = 7422
	HTTPPort = 7333

	portsFile = "ports.json"
	manyPorts = 50
)

// Server describes a dev server, as recorded in its directory.
type Server = devserver.Server

// ports are the last ports of a directory's server, which its clients reconnect to.
type ports struct {
	NATS int `json:"nats"`
	HTTP int `json:"http"`
}

func portsOf(dir string) (p ports) {
	text, err := os.ReadFile(filepath.Join(dir, portsFile))
	if err != nil || json.Unmarshal(text, &p) != nil {
		return ports{}
	}
	return p
}

// keepPorts saves the ports of a server for the next start.
func keepPorts(s Server, dir string) error {
	text, err := json.Marshal(ports{NATS: portIn(s.NATS), HTTP: portIn(s.HTTP)})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, portsFile), append(text, '\n'), 0o600)
}

func portIn(address string) int {
	u, err := url.Parse(address)
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(u.Port())
	return n
}

// claims are the ports of a dev server. It claims each before it listens there: another one that starts at the same moment finds
// the port free until then.
type claims struct{ released []func() }

// freePort claims the former port if it is free at the loopback address, or else the first free one from another on.
func (c *claims) freePort(former, from int) (string, error) {
	for port := from - 1; port < from+manyPorts; port++ {
		try := port
		if port < from {
			try = former
		}
		if try == 0 {
			continue
		}
		release, ok := devserver.ClaimPort(try)
		if !ok {
			continue
		}
		if address := net.JoinHostPort("127.0.0.1", strconv.Itoa(try)); free(address) {
			c.released = append(c.released, release)
			return address, nil
		}
		release()
	}
	return "", fmt.Errorf("the ports %d to %d of 127.0.0.1 are all taken", from, from+manyPorts-1)
}

// release ends the claims.
func (c *claims) release() {
	for _, release := range c.released {
		release()
	}
}

func free(address string) bool {
	l, err := net.Listen("tcp", address)
	return err == nil && l.Close() == nil
}
