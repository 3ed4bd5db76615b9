package coordinator_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/internal/leaks"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

func TestMain(m *testing.M) { leaks.VerifyTestMain(m) }

// world is a bus in memory, in virtual time, with a hand that writes the log.
type world struct {
	*testing.T
	server *membus.Server
	client *membus.Bus
	logged *logged
	sent   map[string]map[string][]string // target, origin: the ids in order of position
	heads  map[string]uint64
}

func newWorld(t *testing.T, partitions int) *world {
	server := membus.NewServer(membus.Config{Partitions: partitions, MaxPayload: 256 << 10})
	w := &world{
		T: t, server: server, client: server.Connect("client"), logged: &logged{},
		sent: map[string]map[string][]string{}, heads: map[string]uint64{},
	}
	t.Cleanup(w.client.Close)
	return w
}

// to returns a send to a space.
func to(space string) model.Send { return model.Send{To: space, Stream: "add"} }

// commit appends a commit of one transaction with these sends.
func (w *world) commit(origin string, sends ...model.Send) uint64 {
	w.Helper()
	tx := model.Tx{N: w.heads[origin] + 1, By: "test", Sends: sends}
	for k := range sends {
		s := &sends[k]
		s.ID = model.TxID{Space: origin, Epoch: 1, N: tx.N}.Event(k)
		if s.To == origin {
			continue
		}
		if w.sent[s.To] == nil {
			w.sent[s.To] = map[string][]string{}
		}
		w.sent[s.To][origin] = append(w.sent[s.To][origin], s.ID)
		s.Position = uint64(len(w.sent[s.To][origin]))
	}
	c := &model.Commit{Version: model.CommitVersion, Space: origin, Runtime: "w", Epoch: 1, Txs: []model.Tx{tx}}
	return w.append(origin, model.AppendCommit(nil, c, model.AppendTx(nil, &tx)))
}

func (w *world) append(space string, data []byte) uint64 {
	w.Helper()
	seq, err := w.server.Append(model.Append{Space: space, Expect: w.heads[space], Data: data})
	if err != nil {
		w.Fatal(err)
	}
	w.heads[space] = seq
	return seq
}

func (w *world) start(cfg coordinator.Config, b port.Bus) *coordinator.Coordinator {
	cfg.Logger = slog.New(w.logged)
	c := coordinator.New(b, cfg)
	c.Start()
	w.Cleanup(c.Stop)
	return c
}

// coordinator starts one with a connection of its own.
func (w *world) coordinator(cfg coordinator.Config) (*coordinator.Coordinator, *membus.Bus) {
	b := w.server.Connect("coordinator")
	w.Cleanup(b.Kill)
	return w.start(cfg, b), b
}

// lane returns what lies in the lane of a space, in order.
func (w *world) lane(space string) []string {
	var ids []string
	for _, m := range w.server.ReadLane(space, 0, 1<<30) {
		ids = append(ids, m.ID)
	}
	return ids
}

// released reports whether everything that was sent lies in the lanes.
func (w *world) released() bool {
	for target, origins := range w.sent {
		n := 0
		for _, ids := range origins {
			n += len(ids)
		}
		if len(w.lane(target)) < n {
			return false
		}
	}
	return true
}

// wantReleased checks that everything that was sent lies in the lanes once, with its
// position.
func (w *world) wantReleased() {
	w.Helper()
	for target, origins := range w.sent {
		var want []string
		position := map[string]uint64{}
		for _, ids := range origins {
			for i, id := range ids {
				want, position[id] = append(want, id), uint64(i+1)
			}
		}
		got := w.lane(target)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			w.Errorf("the lane of %s has %d events, want %d", target, len(got), len(want))
		}
		for _, m := range w.server.ReadLane(target, 0, 1<<30) {
			if m.Position != position[m.ID] || m.Stream != "add" {
				w.Errorf("event %s of %s: position %d, stream %s", m.ID, target, m.Position, m.Stream)
			}
		}
	}
}

func (w *world) eventually(what string, ok func() bool) {
	w.Helper()
	for range 12_000 { // two minutes
		if ok() {
			return
		}
		w.pass(10 * time.Millisecond)
	}
	w.Fatalf("it never came to be that %s; the log says:\n%s", what, w.logged)
}

// pass lets virtual time pass, in which everybody else goes on.
func (w *world) pass(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	<-t.C
}

func (w *world) position(partition int) uint64 {
	return w.server.LoadPosition(partition, coordinator.Position)
}

// logged is what the coordinators have logged.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (l *logged) Enabled(context.Context, slog.Level) bool { return true }
func (l *logged) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logged) WithGroup(string) slog.Handler            { return l }

func (l *logged) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	return nil
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// decide has all readers skip a commit.
func (w *world) decide(space string, seq uint64) {
	w.Helper()
	e := w.server.ReadLog(space, seq-1, 1)[0]
	c := &model.Commit{Version: model.CommitVersion, Space: space, Runtime: "quarantine", Epoch: 1}
	q := &model.Quarantined{Version: model.QuarantineVersion, Seq: seq, Sum: model.SumOf(e.Data), Decision: model.Skipped, Commit: model.AppendCommit(nil, c, nil)}
	data, err := q.Encode()
	if err == nil {
		err = w.client.SaveState(w.Context(), space, []model.StateDoc{{Doc: model.StateKeyOfQuarantine(seq), Seq: 1, Data: data}}, nil)
	}
	if err != nil {
		w.Fatal(err)
	}
}
