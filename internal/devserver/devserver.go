// Package devserver records which embedded server runs in a working directory.
//
// A process that starts an embedded server with a listener writes its addresses into the store
// directory, and removes them when it stops. Commands that run in the same working directory, or in
// a directory below it, find the server by that file. A process that is killed leaves the file
// behind: Server.Exited recognises that.
//
// Child is how `settle dev` runs a program in Go as a process of its own.
package devserver

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Store is the default directory of a server's data, relative to its working directory.
const Store = ".settle"

// namePrefix begins the name of each NATS server of `settle dev`, which listens on a loopback address only.
const namePrefix = "settle-dev-"

// NameOf returns the name of the NATS server of `settle dev` with a store directory. Two directories have two names.
func NameOf(store string) string {
	if path, err := filepath.Abs(store); err == nil { // it fails only where the working directory is gone
		store = path
	}
	sum := sha256.Sum256([]byte(store))
	return namePrefix + hex.EncodeToString(sum[:6])
}

// IsName reports whether a name is that of a server of `settle dev`.
func IsName(server string) bool { return strings.HasPrefix(server, namePrefix) }

const serverFile = "dev.json"

// Server describes a running embedded server: its addresses and its process.
type Server struct {
	NATS string `json:"nats"`
	HTTP string `json:"http"` // "" for none
	PID  int    `json:"pid"`
}

// Find returns the server that is recorded in dir or in the nearest directory above it, and the
// path of the record. The process may have exited without removing the record.
func Find(dir string) (s Server, file string, found bool) {
	dir, err := filepath.Abs(dir)
	for err == nil {
		file = filepath.Join(dir, Store, serverFile)
		text, err := os.ReadFile(file)
		s = Server{}
		if err == nil && json.Unmarshal(text, &s) == nil && s.NATS != "" {
			return s, file, true
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	return Server{}, "", false
}

// Announce writes the record into a store directory, and returns a function that removes it.
func (s Server) Announce(store string) (func(), error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(store, serverFile)
	if err := os.WriteFile(file, append(text, '\n'), 0o600); err != nil {
		return nil, err
	}
	return func() { _ = os.Remove(file) }, nil
}

// Exited reports whether the process has exited. It also returns true in a container whose server
// runs outside, so it is asked only when the server does not respond.
func (s Server) Exited() bool {
	process, err := os.FindProcess(s.PID)
	return err != nil || errors.Is(process.Signal(syscall.Signal(0)), os.ErrProcessDone)
}
