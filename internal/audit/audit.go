// Package audit keeps the trail of commands that have changed a deployment, as records of the deployment.
package audit

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// Entry is one command.
type Entry struct {
	At time.Time `json:"at"`
	// User and Account are those of the connection, as the server names them; "" if it has no users.
	User    string `json:"user,omitempty"`
	Account string `json:"account,omitempty"`
	// By is the user and the machine that ran the command, as the command knows them.
	By      string `json:"by,omitempty"`
	Command string `json:"command"`
}

// UserText returns the user for people.
func (e *Entry) UserText() string {
	if e.User == "" {
		return "(no user)"
	}
	return e.User + " of " + e.Account
}

// key begins the keys of the records.
const key = "audit"

// longest is how much of a command is kept, in bytes.
const longest = 2000

// Add adds an entry.
func Add(ctx context.Context, records port.Records, e Entry) error {
	if len(e.Command) > longest {
		e.Command = e.Command[:longest] + "..."
	}
	data, err := json.Marshal(&e)
	if err != nil {
		return err
	}
	_, err = records.SaveRecord(ctx, model.Record{Key: fmt.Sprintf("%s.%013d-%s", key, e.At.UnixMilli(), rand.Text()[:10]), Data: data})
	return err
}

// List returns the entries, the oldest first. A record that cannot be decoded is an entry with the error in place of the command.
func List(ctx context.Context, records port.Records) ([]Entry, error) {
	found, err := records.ListRecords(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read the audit trail: %w", err)
	}
	all := make([]Entry, 0, len(found))
	for _, rec := range found {
		var e Entry
		if err := json.Unmarshal(rec.Data, &e); err != nil {
			e = Entry{Command: fmt.Sprintf("record %s cannot be read: %v", rec.Key, err)}
		}
		all = append(all, e)
	}
	slices.SortStableFunc(all, func(a, b Entry) int { return a.At.Compare(b.At) })
	return all, nil
}
