package daily

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
)

// What an Entry reports about an attempt.
const (
	Begun  = "begun"
	Ended  = "ended"
	Failed = "failed"
)

// Entry is a line of a ledger: an attempt of an action has begun, has ended with a result, or has failed.
type Entry struct {
	Key     string `json:"key"`
	Action  string `json:"action"`
	Attempt int    `json:"attempt"`
	What    string `json:"what"`
	Worker  string `json:"worker,omitzero"`
}

// Ledger is a file to which performers append what they perform, as a service outside of Settle would keep an account of the
// calls that it receives. It is safe for several processes: a line is one write at the end of the file, and what a process has
// written is there after its death.
type Ledger struct {
	Path   string
	Worker string
}

func (l *Ledger) write(e Entry) (err error) {
	if l == nil {
		return nil
	}
	e.Worker = l.Worker
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(l.Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// ReadLedger returns the entries of a ledger from an offset on, and the offset behind them. A file that does not exist yet has
// none, and a line that is being written is left for the next time.
func ReadLedger(path string, from int64) (list []Entry, next int64, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, from, nil
	}
	if err != nil {
		return nil, from, err
	}
	defer func() { _ = f.Close() }() // it was only read
	rest, err := io.ReadAll(io.NewSectionReader(f, from, math.MaxInt64-from))
	if err != nil {
		return nil, from, err
	}
	for {
		line, more, whole := bytes.Cut(rest, []byte("\n"))
		if !whole {
			return list, from, nil
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return list, from, err
		}
		list, rest, from = append(list, e), more, from+int64(len(line))+1
	}
}
