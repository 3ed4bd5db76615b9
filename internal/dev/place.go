package dev

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"github.com/settlehq/settle/internal/here"
)

const (
	// Store is where the data are, below the working directory.
	Store = here.Store
	// ContextName is the nats context that is written.
	ContextName = "settle-dev"

	portsFile = "ports.json"
	httpPort  = 7333
	natsPort  = 7422
	manyPorts = 50
)

// Place is where a dev server can be found, as it says in its directory.
type Place = here.Place

// ports are those that a directory's server had last: who watches comes back to them.
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

// keepPorts notes the ports of a place for the next time.
func keepPorts(p Place, dir string) error {
	text, err := json.Marshal(ports{NATS: portIn(p.NATS), HTTP: portIn(p.HTTP)})
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

// freePort is the former port, if nobody listens on it at the loopback address, or else the first
// from one on of which that is so.
func freePort(former, from int) (string, error) {
	for port := from - 1; port < from+manyPorts; port++ {
		try := port
		if port < from {
			try = former
		}
		if address := net.JoinHostPort("127.0.0.1", strconv.Itoa(try)); try != 0 && free(address) {
			return address, nil
		}
	}
	return "", fmt.Errorf("the ports %d to %d of 127.0.0.1 are all taken", from, from+manyPorts-1)
}

func free(address string) bool {
	l, err := net.Listen("tcp", address)
	return err == nil && l.Close() == nil
}
