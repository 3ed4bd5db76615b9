package test

import (
	"context"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
)

// replace restarts the server with an empty store.
func (m *timeMachine) replace() {
	m.t.Helper()
	m.server.Shutdown()
	m.cfg.StoreDir = filepath.Join(m.dir, "empty")
	m.start()
}

// rewinds is a log handler that collects the streams reported to have gone back.
type rewinds struct {
	slog.Handler
	mu      sync.Mutex
	streams map[string]string // and the reported positions
	changed chan struct{}
}

func newRewinds() *rewinds {
	return &rewinds{Handler: slog.DiscardHandler, streams: map[string]string{}, changed: make(chan struct{}, 1)}
}

func (r *rewinds) logger() *slog.Logger { return slog.New(r) }

// overheard returns a deployment whose store can go back and whose spaces are unloaded at once, and the
// rewinds that its processes log.
func overheard(t *testing.T) (*timeMachine, *deployment, *rewinds) {
	t.Helper()
	m, said := startTimeMachine(t), newRewinds()
	cfg := m.config()
	cfg.Idle, cfg.Logger = 10*time.Millisecond, said.logger()
	return m, deploy(t, cfg), said
}

func (*rewinds) Enabled(context.Context, slog.Level) bool { return true }
func (r *rewinds) WithAttrs([]slog.Attr) slog.Handler     { return r }
func (r *rewinds) WithGroup(string) slog.Handler          { return r }

func (r *rewinds) Handle(_ context.Context, rec slog.Record) error {
	if !strings.HasPrefix(rec.Message, "a stream has gone back") {
		return nil
	}
	said := map[string]string{}
	rec.Attrs(func(a slog.Attr) bool { said[a.Key] = a.Value.String(); return true })
	r.mu.Lock()
	r.streams[said["stream"]] = said["found"]
	r.mu.Unlock()
	select {
	case r.changed <- struct{}{}:
	default:
	}
	return nil
}

func partitionOf(d *deployment, space string) string {
	return strconv.Itoa(model.PartitionOf(space, d.Bus().Partitions()))
}

// until waits for the report of a stream.
func (r *rewinds) until(t *testing.T, stream string) (found string) {
	t.Helper()
	for ctx := testContext(t); ; {
		r.mu.Lock()
		found, said := r.streams[stream]
		r.mu.Unlock()
		if said {
			return found
		}
		select {
		case <-r.changed:
		case <-ctx.Done():
			t.Fatalf("it is not said that stream %s has gone back", stream)
		}
	}
}

// Running workers detect that an empty store has replaced theirs before a new deployment exists in it,
// and then serve that: positions remembered from the former one do not make them skip events.
func TestRewind_AStoreThatWasReplacedByAnEmptyOne(t *testing.T) {
	t.Parallel()
	m, d, said := overheard(t)
	c := d.Client()
	sendAll(t, c, 1, 20)
	eventually(t, c, "a", "departed", 20)
	eventually(t, c, "b", "arrived", 20)
	m.replace()
	of := partitionOf(d, "a")
	for _, stream := range []string{"SETTLE_LOG_" + of, "SETTLE_LANE_" + of} {
		if found := said.until(t, stream); !strings.HasPrefix(found, "there is no such stream") {
			t.Errorf("of stream %s it is said: %s", stream, found)
		}
	}
	if err := d.Bus().Provision(testContext(t)); err != nil {
		t.Fatal(err)
	}
	sendAll(t, c, 15, 24)
	eventually(t, c, "a", "departed", 10)
	eventually(t, c, "b", "arrived", 10)
	once(t, readLog(t, d.Bus(), "a"))
	once(t, readLog(t, d.Bus(), "b"))
}
