package erase

import (
	"context"
	"fmt"
	"testing"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/replica"
)

// stub is a bus of a space whose lane has some events. Nothing else is asked of it.
type stub struct {
	port.Bus
	records
	events []model.Message
}

type records struct {
	port.Records
	stored []model.Record
}

func (r records) ListRecords(context.Context, string) ([]model.Record, error) { return r.stored, nil }

func (s stub) ReadLane(_ context.Context, _ string, after uint64, most int) (found []model.Message, err error) {
	for _, m := range s.events {
		if m.Seq > after && len(found) < most {
			found = append(found, m)
		}
	}
	return found, nil
}

func (stub) EraseLane(context.Context, string, uint64) (int, error) { return 0, nil }
func (stub) EraseQuarantined(context.Context, string) error         { return nil }
func (stub) EraseDead(context.Context, string) error                { return nil }
func (s stub) ListRecords(ctx context.Context, of string) ([]model.Record, error) {
	return s.records.ListRecords(ctx, of)
}

// Events that the cursor holds have not been handled, although it has passed them; the others up to it have.
func TestWaiting_WhatTheCursorHoldsWaits(t *testing.T) {
	b := stub{}
	for i := range uint64(8) {
		b.events = append(b.events, model.Message{Space: "s", Stream: "add", ID: fmt.Sprint("e", i+1), Seq: i + 1})
	}
	r := replica.New("s")
	for _, c := range []struct {
		cursor model.Cursor
		want   string
	}{
		{model.Cursor{Floor: 8}, "[]"},
		{model.Cursor{Floor: 6}, "[e7 e8]"},
		{model.Cursor{Floor: 6, Held: []uint64{3, 5}}, "[e3 e5 e7 e8]"},
		{model.Cursor{Floor: 8, Held: []uint64{1}}, "[e1]"},
	} {
		r.Cursor = c.cursor
		found, err := waiting(t.Context(), b, r)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, e := range found {
			ids = append(ids, e.Event)
		}
		if got := fmt.Sprint(ids); got != c.want {
			t.Errorf("with the cursor %+v, %s wait, want %s", c.cursor, got, c.want)
		}
	}
}

// With a rule that cannot be decoded it is not known which events are allowed.
func TestWaiting_ARuleThatCannotBeDecodedIsAnError(t *testing.T) {
	b := stub{records: records{stored: []model.Record{{Key: "access.of.-alice", Data: []byte(`{"principal":"alice","until":1}`)}}}}
	if found, err := waiting(t.Context(), b, replica.New("s")); err == nil {
		t.Errorf("found %v, and no error", found)
	}
}

// However many documents and timers a space has, each commit that deletes them fits into a message, and together they delete all.
func TestTransactions_EachFitsIntoAMessage(t *testing.T) {
	const most = 100_000
	for _, n := range []int{0, 1, 3000, 30_000} {
		r := replica.New("s")
		c := &model.Commit{Version: model.CommitVersion, Space: "s", Runtime: "w", Takeover: true, Attempt: 1}
		for i := range n {
			name := fmt.Sprintf("%064d", i)
			c.Txs = append(c.Txs, model.Tx{
				N: uint64(i + 1), By: "handle add", Writes: []model.Write{{Doc: name, Value: model.Int(1)}},
				Later: &model.Waiting{ID: name, Stream: "add", NotBefore: 5, Slot: uint64(1_000_000 + i)},
			})
		}
		if _, err := r.Apply(1, c); err != nil {
			t.Fatal(err)
		}
		docs, timers := map[string]bool{}, map[string]bool{}
		for _, tx := range transactions(r, most) {
			for _, w := range tx.Writes {
				docs[w.Doc] = w.Delete
			}
			for _, x := range tx.Cancels {
				timers[x.ID] = true
			}
			tx.N = 1
			data := model.AppendCommit(nil, &model.Commit{Version: model.CommitVersion, Space: "s", Runtime: "delete", Txs: []model.Tx{tx}}, nil)
			if len(data) > most+1000 {
				t.Errorf("of %d, a commit has %d bytes", n, len(data))
			}
		}
		if len(docs) != n || len(timers) != n {
			t.Errorf("of %d, %d documents and %d timers are deleted", n, len(docs), len(timers))
		}
	}
}
