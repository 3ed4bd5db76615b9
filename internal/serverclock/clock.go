// Package serverclock provides the time of the servers, in a process whose own clock may be wrong.
package serverclock

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/settlehq/settle/model"
)

// Log is the source of the time.
type Log interface {
	LogState(ctx context.Context, partition int, age time.Duration) (model.LogState, error)
}

// Clock continues from the last time that a server has reported. The zero value does not know the time.
type Clock struct {
	mu     sync.Mutex
	server time.Time
	at     time.Time // when it was read, by the monotonic clock of the process
}

// Read requests the time from the leader of a partition's log.
func (c *Clock) Read(ctx context.Context, log Log, partition int) error {
	st, err := log.LogState(ctx, partition, 0)
	if err != nil {
		return fmt.Errorf("ask the server for the time: %w", err)
	}
	c.Set(st.Now)
	return nil
}

// Set sets the time that a server has reported.
func (c *Clock) Set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server, c.at = now, time.Now()
}

// Now returns the time, the zero time if it is not known.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server.IsZero() {
		return time.Time{}
	}
	return c.server.Add(time.Since(c.at))
}

// Millis returns the time in milliseconds since 1970, 0 if it is not known.
func (c *Clock) Millis() uint64 {
	now := c.Now()
	if now.IsZero() {
		return 0
	}
	return uint64(max(now.UnixMilli(), 0))
}
