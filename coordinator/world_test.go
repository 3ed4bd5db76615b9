package coordinator_test

import (
	"slices"
	"testing"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/internal/leaks"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
)

func TestMain(m *testing.M) { leaks.VerifyTestMain(m) }

// world is a worldtest.World that remembers the sends that its test has committed.
type world struct {
	*worldtest.World
	sent map[string]map[string][]string // by target and origin: ids in order of position
}

func newWorld(t *testing.T, partitions int) *world {
	return &world{
		World: worldtest.New(t, membus.Config{Partitions: partitions, MaxPayload: 256 << 10}),
		sent:  map[string]map[string][]string{},
	}
}

// to returns a send to a space.
func to(space string) model.Send { return model.Send{To: space, Stream: "add"} }

// commit appends a commit of one transaction with these sends.
func (w *world) commit(origin string, sends ...model.Send) uint64 {
	w.Helper()
	tx := model.Tx{N: w.Server.Head(origin) + 1, By: "test", Sends: sends}
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
	return w.Append(&model.Commit{Space: origin, Runtime: "w", Epoch: 1, Txs: []model.Tx{tx}})
}

// end appends a commit with the receipt of an event.
func (w *world) end(space string, rc *model.Receipt) uint64 {
	w.Helper()
	tx := model.Tx{N: w.Server.Head(space) + 1, By: "handle add", Receipt: rc}
	return w.Append(&model.Commit{Space: space, Runtime: "w", Epoch: 1, Txs: []model.Tx{tx}})
}

// coordinator starts a coordinator with its own connection.
func (w *world) coordinator(cfg coordinator.Config) (*coordinator.Coordinator, *membus.Bus) {
	b := w.Connect("coordinator")
	return w.CoordinatorOn(b, cfg), b
}

// released reports whether every committed send is in its lane.
func (w *world) released() bool {
	for target, origins := range w.sent {
		n := 0
		for _, ids := range origins {
			n += len(ids)
		}
		if len(w.Lane(target)) < n {
			return false
		}
	}
	return true
}

// wantReleased checks that every committed send is in its lane once, with its position.
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
		got := w.Lane(target)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			w.Errorf("the lane of %s has %d events, want %d", target, len(got), len(want))
		}
		for _, m := range w.Server.ReadLane(target, 0, 1<<30) {
			if m.Position != position[m.ID] || m.Stream != "add" {
				w.Errorf("event %s of %s: position %d, stream %s", m.ID, target, m.Position, m.Stream)
			}
		}
	}
}

func (w *world) position(partition int) uint64 {
	return w.Server.LoadPosition(partition, coordinator.Position)
}

// decide makes all readers skip a commit.
func (w *world) decide(space string, seq uint64) {
	w.Helper()
	e := w.Server.ReadLog(space, seq-1, 1)[0]
	c := &model.Commit{Version: model.CommitVersion, Space: space, Runtime: "quarantine", Epoch: 1}
	q := &model.Quarantined{Version: model.QuarantineVersion, Seq: seq, Sum: model.SumOf(e.Data), Decision: model.Skipped, Commit: model.AppendCommit(nil, c, nil)}
	data, err := q.Encode()
	if err == nil {
		err = w.Client.SaveState(w.Context(), space, []model.StateDoc{{Doc: model.StateKeyOfQuarantine(seq), Seq: 1, Data: data}}, nil)
	}
	if err != nil {
		w.Fatal(err)
	}
}
