package truncation

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/settlehq/settle/internal/faultlog"
	"github.com/settlehq/settle/internal/misroute"
	"github.com/settlehq/settle/model"
)

// fakeBus is a lane that ends at end, whose events were stored one second apart, and a log with one
// receipt per commit.
type fakeBus struct {
	Bus
	began     time.Time
	end       uint64
	log       []model.LogEntry
	positions map[string]uint64
	filled    []model.Message
}

func (b *fakeBus) at(n uint64) time.Time { return b.began.Add(time.Duration(n) * time.Second) }

func (b *fakeBus) LogTail(_ context.Context, _, n int) ([]model.LogEntry, error) {
	return b.log[max(len(b.log)-n, 0):], nil
}

func (b *fakeBus) LogState(context.Context, int, time.Duration) (model.LogState, error) {
	return model.LogState{First: 1, Last: uint64(len(b.log))}, nil
}

func (b *fakeBus) LaneEnd(context.Context, int) (uint64, error) { return b.end, nil }

func (b *fakeBus) LaneEvent(_ context.Context, _ int, seq uint64) (model.Message, bool, error) {
	if seq == 0 || seq > b.end {
		return model.Message{}, false, nil
	}
	return model.Message{Space: "s", Stream: "x", ID: eventID(seq), Seq: seq, Stored: b.at(seq)}, true, nil
}

func (b *fakeBus) LaneBefore(_ context.Context, _ int, at time.Time) (uint64, error) {
	return min(uint64(max(at.Sub(b.began), 0)/time.Second), b.end), nil
}

func (b *fakeBus) FillLane(_ context.Context, _ int, upTo uint64, names []model.Message) error {
	b.filled, b.end = names, upTo
	return nil
}

func (b *fakeBus) LoadPosition(_ context.Context, _ int, name string) (uint64, error) {
	return b.positions[name], nil
}

func (b *fakeBus) MovePosition(_ context.Context, _ int, name string, seq uint64) error {
	b.positions[name] = seq
	return nil
}

func (b *fakeBus) StaleWindow() time.Duration { return 0 }

func eventID(seq uint64) string {
	return "e" + string(rune('a'+seq%26)) + string(rune('a'+seq/26%26)) + string(rune('a'+seq/676))
}

// truncated returns a lane whose n events were handled, one per second; only the first end of them
// remain.
func truncated(t *testing.T, n, end uint64) *fakeBus {
	t.Helper()
	b := &fakeBus{began: time.Now().Add(-time.Hour), end: end, positions: map[string]uint64{PositionLane: n, model.AheadPosition: n, misroute.Position: n}}
	for seq := uint64(1); seq <= n; seq++ {
		c := &model.Commit{Version: model.CommitVersion, Space: "s", Runtime: "w", Txs: []model.Tx{{
			N: seq, By: "handle x", Receipt: &model.Receipt{Event: eventID(seq), Lane: seq, Outcome: model.Handled},
		}}}
		data, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		b.log = append(b.log, model.LogEntry{Space: "s", Seq: seq, Stored: b.at(seq), Data: data})
	}
	return b
}

func laneOf(b *fakeBus) *Lane {
	return &Lane{Bus: b, Margin: Margin, Retry: time.Millisecond, Faults: faultlog.New(slog.New(slog.DiscardHandler))}
}

// Every position goes back to the begin of the range: events that were forwarded to another partition
// may have been replaced by others.
func TestCompare_MovesEveryPositionBack(t *testing.T) {
	b := truncated(t, 100, 80)
	r, from, err := laneOf(b).Compare(t.Context(), 100)
	if err != nil || r == nil {
		t.Fatal(r, err)
	}
	if r.After > 80 || r.UpTo != 100 || from != r.After {
		t.Errorf("in doubt are (%d, %d], read from %d", r.After, r.UpTo, from)
	}
	for _, name := range []string{PositionLane, model.AheadPosition, misroute.Position} {
		if got := b.positions[name]; got != r.After {
			t.Errorf("position %s is %d, want %d", name, got, r.After)
		}
	}
}

// A second truncation keeps the earlier range in doubt.
func TestCompare_KeepsAnEarlierRangeInDoubt(t *testing.T) {
	b := truncated(t, 100, 80)
	b.positions[positionAfter], b.positions[positionUpTo], b.positions[PositionLane] = 20, 110, 20
	r, from, err := laneOf(b).Compare(t.Context(), 20)
	if err != nil || r == nil {
		t.Fatal(r, err)
	}
	if r.After != 20 || r.UpTo != 110 || from != 20 || b.positions[positionAfter] != 20 || b.positions[positionUpTo] != 110 {
		t.Errorf("in doubt are (%d, %d], saved as (%d, %d]", r.After, r.UpTo, b.positions[positionAfter], b.positions[positionUpTo])
	}
}

// The range has more receipts than one read returns: all of them are known.
func TestCompare_ReadsReceiptsBackToTheBeginOfTheRange(t *testing.T) {
	const n, end = 3 * tailLength, tailLength / 2
	b := truncated(t, n, end)
	r, _, err := laneOf(b).Compare(t.Context(), n)
	if err != nil || r == nil {
		t.Fatal(r, err)
	}
	for seq := r.After + 1; seq <= n; seq++ {
		if !r.Handled(&model.Message{Space: "s", Stream: "x", ID: eventID(seq)}) {
			t.Fatalf("the receipt of event %d of (%d, %d] is not known", seq, r.After, r.UpTo)
		}
	}
	if len(b.filled) != int(n-r.After) {
		t.Errorf("%d ids are occupied in the lane, want %d", len(b.filled), n-r.After)
	}
}
