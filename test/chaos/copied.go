package main

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/settlehq/settle/model"
)

// copied is a partition's log as it was recorded while it was written.
type copied struct {
	mu   sync.Mutex
	file *os.File
	out  *gob.Encoder
	err  error
}

func newCopied(dir string, partition int) (*copied, error) {
	f, err := os.Create(filepath.Join(dir, fmt.Sprintf("log-%d.gob", partition)))
	if err != nil {
		return nil, err
	}
	return &copied{file: f, out: gob.NewEncoder(f)}, nil
}

func (c *copied) add(e model.LogEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = errors.Join(c.err, c.out.Encode(e))
}

// each reads it back.
func (c *copied) each(do func(model.LogEntry)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	if _, err := c.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	defer func() { _ = c.file.Close() }() // it was only read
	for in := gob.NewDecoder(c.file); ; {
		var e model.LogEntry
		if err := in.Decode(&e); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		do(e)
	}
}
