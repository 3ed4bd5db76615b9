// Package here says where the server of a directory is.
//
// A process that starts an embedded server which listens writes that into its store directory, and
// takes it back when it ends. Commands that run in the working directory, or in one below it, find
// it there. A process that was killed leaves it behind: Place.Gone.
package here

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// Store is where the data of a server are, below its working directory, if nobody says otherwise.
const Store = ".settle"

const placeFile = "dev.json"

// Place is where a server can be found, as it says in its directory.
type Place struct {
	NATS string `json:"nats"`
	HTTP string `json:"http"` // "" for none
	PID  int    `json:"pid"`
}

// Find looks for the server of a directory, or of one above it, and returns the file that tells of
// it, or false if there is none. It may have ended without taking its word back.
func Find(dir string) (p Place, file string, found bool) {
	dir, err := filepath.Abs(dir)
	for err == nil {
		file = filepath.Join(dir, Store, placeFile)
		text, err := os.ReadFile(file)
		p = Place{}
		if err == nil && json.Unmarshal(text, &p) == nil && p.NATS != "" {
			return p, file, true
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	return Place{}, "", false
}

// Announce writes where the server is into its store directory, and returns what takes that back.
func (p Place) Announce(store string) (func(), error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(store, placeFile)
	if err := os.WriteFile(file, append(text, '\n'), 0o600); err != nil {
		return nil, err
	}
	return func() { _ = os.Remove(file) }, nil
}

// Gone tells whether the process is known to have ended. From within a container, that is also
// said of a process outside, so it is asked only when nobody answers.
func (p Place) Gone() bool {
	process, err := os.FindProcess(p.PID)
	return err != nil || errors.Is(process.Signal(syscall.Signal(0)), os.ErrProcessDone)
}
