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
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/port"
)

// timeMachine is a server whose files can be replaced by earlier ones, while its clients stay connected.
type timeMachine struct {
	t      *testing.T
	dir    string
	cfg    embedded.Config
	server *embedded.Server
	moves  int
}

func startTimeMachine(t *testing.T) *timeMachine {
	t.Helper()
	ports, err := natstest.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	m := &timeMachine{t: t, dir: dir, cfg: embedded.Config{
		StoreDir: filepath.Join(dir, "0"), Fsync: embedded.FsyncInterval, Listen: fmt.Sprintf("127.0.0.1:%d", ports[0]),
	}}
	m.start()
	t.Cleanup(func() { m.server.Shutdown() })
	return m
}

func (m *timeMachine) start() {
	m.t.Helper()
	var err error
	if m.server, err = embedded.Start(testContext(m.t), m.cfg); err != nil {
		m.t.Fatal(err)
	}
}

// copy stops the server while its files are copied, and returns the directory of the copy.
func (m *timeMachine) copy() string {
	m.t.Helper()
	m.server.Shutdown()
	old := m.cfg.StoreDir
	m.moveTo(old)
	m.start()
	return old
}

// goBack restarts the server with a copy of its files.
func (m *timeMachine) goBack(dir string) {
	m.t.Helper()
	m.server.Shutdown()
	m.moveTo(dir)
	m.start()
}

// goBackOnly restarts the server with earlier files of some streams.
func (m *timeMachine) goBackOnly(dir string, what ...string) {
	m.t.Helper()
	m.server.Shutdown()
	m.moveTo(m.cfg.StoreDir)
	var streams []string
	for _, name := range what {
		found, err := filepath.Glob(filepath.Join(m.cfg.StoreDir, "jetstream", "*", "streams", "*"+name+"*"))
		if err != nil || len(found) == 0 {
			m.t.Fatalf("no stream %s in %s: %v", name, m.cfg.StoreDir, err)
		}
		streams = append(streams, found...)
	}
	for _, now := range streams {
		rel, err := filepath.Rel(m.cfg.StoreDir, now)
		if err == nil {
			err = os.RemoveAll(now)
		}
		if err == nil {
			err = os.CopyFS(now, os.DirFS(filepath.Join(dir, rel)))
		}
		if err != nil {
			m.t.Fatal(err)
		}
	}
	m.start()
}

// moveTo copies files to a directory that no ending server uses: a server may write to its directory for
// a moment after it was shut down.
func (m *timeMachine) moveTo(files string) {
	m.t.Helper()
	m.moves++
	to := filepath.Join(m.dir, strconv.Itoa(m.moves))
	if err := os.CopyFS(to, os.DirFS(files)); err != nil {
		m.t.Fatal(err)
	}
	m.cfg.StoreDir = to
}

// config returns the configuration of a deployment on the server.
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

// Events that a server acknowledges after its files have gone back are handled once, whatever connected
// processes remember: ten of ninety events are lost with the files, and all others count.
func TestRewind_WhatIsSentAfterAStoreWentBackIsHandledOnce(t *testing.T) {
	t.Parallel()
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

// A power cut costs each stream its data that was not written through. If the lanes lose their ends and the
// logs keep theirs, later events get sequences that the cursors have passed: they are handled nevertheless,
// once, and handled events are not handled again, by running processes and by new ones.
func TestRewind_LanesAloneLoseTheirEnds(t *testing.T) {
	t.Parallel()
	for name, anew := range map[string]bool{"under live workers": false, "under a worker that starts": true} {
		t.Run(name, func(t *testing.T) {
			m := startTimeMachine(t)
			cfg := m.config()
			cfg.Idle = 10 * time.Millisecond
			d := deploy(t, cfg)
			c := d.Client()
			sendAll(t, c, 1, 80)
			eventually(t, c, "a", "departed", 80)
			eventually(t, c, "b", "arrived", 80)
			old := m.copy()
			sendAll(t, c, 81, 90)
			eventually(t, c, "a", "departed", 90)
			eventually(t, c, "b", "arrived", 90)
			if anew {
				d.KillWorker(d.Workers()[0])
			}
			m.goBackOnly(old, "_LANE_")
			sendAll(t, c, 91, 105) // five more than were lost
			if anew {
				if _, err := d.AddWorker(testContext(t)); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, c, "a", "departed", 105)
			eventually(t, c, "b", "arrived", 105)
			sendAll(t, c, 85, 110) // five of them are new
			eventually(t, c, "a", "departed", 110)
			eventually(t, c, "b", "arrived", 110)
			once(t, readLog(t, d.Bus(), "a"))
			once(t, readLog(t, d.Bus(), "b"))
			for i := 1; i <= 110; i++ {
				rc, err := c.Space("a").FindReceipt(testContext(t), "depart", settle.ID("f"+strconv.Itoa(i)))
				if i > 90 && (err != nil || rc == nil) {
					t.Errorf("the receipt of flight %d: %v, %v", i, rc, err)
				}
			}
		})
	}
}

// A log and its state lose commits whose sends the target has handled; the lane loses its events as
// well, or keeps them. Later sends of the space have positions that the target has already seen. They
// take effect there, once, whether the space handles the events of the lost commits again, because its
// lane has them, or the client sends them again.
func TestRewind_PositionsAreGivenOutAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ lane, anew bool }{
		"under live workers":                        {},
		"under a worker that starts":                {anew: true},
		"with the lane, under live workers":         {lane: true},
		"with the lane, under a worker that starts": {lane: true, anew: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := startTimeMachine(t)
			cfg := m.config()
			cfg.Idle = 10 * time.Millisecond
			d := deploy(t, cfg)
			c1 := d.Client()
			sendAll(t, c1, 1, 8)
			eventually(t, c1, "a", "departed", 8)
			eventually(t, c1, "b", "arrived", 8)
			old := m.copy()
			sendAll(t, c1, 9, 12)
			eventually(t, c1, "a", "departed", 12)
			eventually(t, c1, "b", "arrived", 12)
			if c.anew {
				d.KillWorker(d.Workers()[0])
			}
			streams, departed := []string{"_LOG_0", "_STATE_0"}, int64(16)
			if c.lane {
				streams, departed = append(streams, "_LANE_0"), 12
			}
			m.goBackOnly(old, streams...)
			if c.anew {
				if _, err := d.AddWorker(testContext(t)); err != nil {
					t.Fatal(err)
				}
			}
			sendAll(t, c1, 13, 16)
			eventually(t, c1, "a", "departed", departed)
			eventually(t, c1, "b", "arrived", 16)
			sendAll(t, c1, 9, 17)
			eventually(t, c1, "a", "departed", 17)
			eventually(t, c1, "b", "arrived", 17)
			once(t, readLog(t, d.Bus(), "a"))
			once(t, readLog(t, d.Bus(), "b"))
		})
	}
}

// isReleased waits until the saved position shows that a partition's whole log is released: such sends
// are not released again.
func isReleased(t *testing.T, b *bus.Bus, partition int) {
	t.Helper()
	persistently(testContext(t), t, "see that all is released", func(ctx context.Context) error {
		at, err := b.LoadPosition(ctx, partition, port.PositionReleased)
		if err != nil {
			return err
		}
		log, err := b.LogState(ctx, partition, 0)
		if err == nil && at < log.Last {
			err = errNotThere
		}
		return err
	})
}

// The whole partition of a target goes back, with its lane: sends of another partition are released
// again, and its next sends do not wait for them.
func TestRewind_WhatATargetHasLostIsSentAgain(t *testing.T) {
	t.Parallel()
	for name, anew := range map[string]bool{"under live workers": false, "under processes that start": true} {
		t.Run(name, func(t *testing.T) {
			m := startTimeMachine(t)
			cfg := m.config()
			cfg.Idle, cfg.Bus.Partitions = 10*time.Millisecond, 2
			cfg.Heartbeat, cfg.MemberTTL, cfg.Checkpoint = deployHeartbeat, memberTTL, deployHeartbeat
			d, err := settle.Start(testContext(t), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := d.Stop(testContext(t)); err != nil {
					t.Error(err)
				}
			}()
			sendAll(t, d.Client(), 1, 8)
			eventually(t, d.Client(), "b", "arrived", 8)
			old := m.copy()
			sendAll(t, d.Client(), 9, 12)
			eventually(t, d.Client(), "b", "arrived", 12)
			eventually(t, d.Client(), "a", "departed", 12)
			isReleased(t, d.Bus(), 0)
			if anew {
				if err := d.Stop(testContext(t)); err != nil {
					t.Fatal(err)
				}
			}
			m.goBackOnly(old, "_LOG_1", "_STATE_1", "_LANE_1")
			if anew {
				if d, err = settle.Start(testContext(t), cfg); err != nil {
					t.Fatal(err)
				}
			}
			sendAll(t, d.Client(), 13, 16)
			eventually(t, d.Client(), "a", "departed", 16)
			eventually(t, d.Client(), "b", "arrived", 16)
			once(t, readLog(t, d.Bus(), "a"))
			once(t, readLog(t, d.Bus(), "b"))
		})
	}
}
