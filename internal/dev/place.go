package dev

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

const (
	// Store is where the data are, below the working directory.
	Store = ".settle"
	// ContextName is the nats context that is written.
	ContextName = "settle-dev"

	placeFile = "dev.json"
	httpPort  = 7333
	natsPort  = 7422
	manyPorts = 50
)

// Place is where a dev server can be found, as it says in its directory.
type Place struct {
	NATS string `json:"nats"`
	HTTP string `json:"http"`
	PID  int    `json:"pid"`
}

// Find looks for the dev server of a directory, or of one above it, and returns false if there
// is none. It may have ended without taking its word back.
func Find(dir string) (Place, bool) {
	dir, err := filepath.Abs(dir)
	for err == nil {
		text, err := os.ReadFile(filepath.Join(dir, Store, placeFile))
		var p Place
		if err == nil && json.Unmarshal(text, &p) == nil && p.NATS != "" {
			return p, true
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	return Place{}, false
}

// announce writes where the server is, and returns what takes that back.
func (p Place) announce(dir string) (func(), error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, placeFile)
	if err := os.WriteFile(file, append(text, '\n'), 0o600); err != nil {
		return nil, err
	}
	return func() { _ = os.Remove(file) }, nil
}

// freePort is the first port from one on that nobody listens on at the loopback address.
func freePort(from int) (string, error) {
	for port := from; port < from+manyPorts; port++ {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		l, err := net.Listen("tcp", address)
		if err == nil {
			return address, l.Close()
		}
	}
	return "", fmt.Errorf("the ports %d to %d of 127.0.0.1 are all taken", from, from+manyPorts-1)
}

// ErrNoData: there is nothing to reset.
var ErrNoData = errors.New("there are no data to remove")
