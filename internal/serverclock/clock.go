// Package serverclock tells the time by the clock of the servers, in a process whose own may be wrong.
package serverclock

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/settlehq/settle/model"
)

// Log is what tells the time.
type Log interface {
	LogState(ctx context.Context, partition int, age time.Duration) (model.LogState, error)
}

// Clock goes on from what a server has said last. The zero value does not know the time.
type Clock struct {
	mu     sync.Mutex
	server time.Time
	at     time.Time // when that was, by the monotonic clock of the process
}

// Read asks the leader of a partition's log for the time.
func (c *Clock) Read(ctx context.Context, log Log, partition int) error {
	st, err := log.LogState(ctx, partition, 0)
	if err != nil {
		return fmt.Errorf("ask the server for the time: %w", err)
	}
	c.Set(st.Now)
	return nil
}

// Set says what time a server says it is.
func (c *Clock) Set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server, c.at = now, time.Now()
}

// Millis is the time in milliseconds since 1970, 0 if it is not known.
func (c *Clock) Millis() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server.IsZero() {
		return 0
	}
	return uint64(max(c.server.Add(time.Since(c.at)).UnixMilli(), 0))
}
