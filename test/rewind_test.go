package test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/natstest"
)

// timeMachine is a server whose files can be put back to what they once were, while everybody
// who is connected stays.
type timeMachine struct {
	t      *testing.T
	cfg    bus.ServerConfig
	server *bus.Server
	copies int
}

func startTimeMachine(t *testing.T) *timeMachine {
	t.Helper()
	ports, err := natstest.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	m := &timeMachine{t: t, cfg: bus.ServerConfig{
		StoreDir: filepath.Join(t.TempDir(), "store"), Fsync: bus.FsyncInterval, Listen: fmt.Sprintf("127.0.0.1:%d", ports[0]),
	}}
	m.start()
	t.Cleanup(func() { m.server.Shutdown() })
	return m
}

func (m *timeMachine) start() {
	m.t.Helper()
	var err error
	if m.server, err = bus.StartServerContext(testContext(m.t), m.cfg); err != nil {
		m.t.Fatal(err)
	}
}

// copy takes the server away for as long as its files are copied, and returns where to.
func (m *timeMachine) copy() string {
	m.t.Helper()
	m.server.Shutdown()
	m.copies++
	dir := m.cfg.StoreDir + "-" + strconv.Itoa(m.copies)
	if err := os.CopyFS(dir, os.DirFS(m.cfg.StoreDir)); err != nil {
		m.t.Fatal(err)
	}
	m.start()
	return dir
}

// goBack puts a copy in the place of the server's files.
func (m *timeMachine) goBack(dir string) {
	m.t.Helper()
	m.server.Shutdown()
	if err := os.RemoveAll(m.cfg.StoreDir); err != nil {
		m.t.Fatal(err)
	}
	if err := os.CopyFS(m.cfg.StoreDir, os.DirFS(dir)); err != nil {
		m.t.Fatal(err)
	}
	m.start()
}

// config is that of a deployment on the server.
func (m *timeMachine) config() settle.Config {
	return settle.Config{
		Programs: settle.Always(relay()),
		Bus: bus.Config{
			URL: m.server.ClientURL(), AckTimeout: 2 * time.Second,
			Options: []nats.Option{nats.ReconnectWait(10 * time.Millisecond), nats.ReconnectJitter(0, 0), nats.Timeout(patience)},
		},
	}
}

// sendAll sends flights from a to b, and returns when each is acknowledged.
func sendAll(t *testing.T, c *settle.Client, first, last int) {
	t.Helper()
	ctx := testContext(t)
	for i := first; i <= last; i++ {
		persistently(ctx, t, "send flight "+strconv.Itoa(i), func(ctx context.Context) error {
			_, err := c.Send(ctx, flight(i, "a", "b"))
			return err
		})
	}
}

// What a server acknowledges after its files have gone back is handled, once, whatever those who
// were connected remember: ten of ninety events are lost with the files, and all others count.
func TestRewind_WhatIsSentAfterAStoreWentBackIsHandledOnce(t *testing.T) {
	for name, idle := range map[string]time.Duration{"of a space that sleeps": 10 * time.Millisecond, "of a space in memory": time.Hour} {
		t.Run(name, func(t *testing.T) {
			m := startTimeMachine(t)
			cfg := m.config()
			cfg.Idle = idle
			d := deploy(t, cfg)
			c := d.Client()
			sendAll(t, c, 1, 80)
			eventually(t, c, "a", "departed", 80)
			eventually(t, c, "b", "arrived", 80)
			old := m.copy()
			sendAll(t, c, 81, 90)
			eventually(t, c, "a", "departed", 90)
			eventually(t, c, "b", "arrived", 90)
			m.goBack(old)
			sendAll(t, c, 91, 100)
			sendAll(t, c, 101, 105)
			eventually(t, c, "a", "departed", 95)
			eventually(t, c, "b", "arrived", 95)
			once(t, readLog(t, d.Bus(), "a"))
			once(t, readLog(t, d.Bus(), "b"))
			sendAll(t, c, 81, 90) // they are lost, so they are new
			eventually(t, c, "a", "departed", 105)
			eventually(t, c, "b", "arrived", 105)
		})
	}
}
