package ordered_test

import (
	"encoding/json"
	"errors"
	"os"
	"testing"
	"testing/synctest"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/ordered"
)

// stored is the stored data of one partition of a deployment.
type stored struct {
	Lane []struct {
		Space, Stream, ID, Payload                 string
		Position, Term, PrevTerm, ReplayKey, Depth uint64
	}
	Log []struct {
		Space, ID string
		Expect    uint64
		Data      json.RawMessage
	}
	Saved map[string]struct {
		Docs []item
		Mark item
	}
	Positions map[string]uint64
}

type item struct {
	Doc  string
	Data json.RawMessage
	Seq  uint64
}

func (w *world) store(s *stored) {
	w.Helper()
	for _, e := range s.Lane {
		m := model.Message{
			Space: e.Space, Stream: e.Stream, ID: e.ID, Payload: []byte(e.Payload),
			Position: e.Position, Term: e.Term, PrevTerm: e.PrevTerm, ReplayKey: e.ReplayKey, Depth: e.Depth,
		}
		if _, err := w.Server.Send(m); err != nil {
			w.Fatal(err)
		}
	}
	for _, e := range s.Log {
		if _, err := w.Server.Append(model.Append{Space: e.Space, ID: e.ID, Expect: e.Expect, Data: e.Data}); err != nil {
			w.Fatal(err)
		}
	}
	for key, of := range s.Saved { // any order: each on its own
		for _, d := range of.Docs {
			if _, err := w.Server.SaveDoc(key, model.StateDoc{Doc: d.Doc, Data: d.Data, Seq: d.Seq}); err != nil {
				w.Fatal(err)
			}
		}
		if _, err := w.Server.SaveMark(key, model.StateDoc{Data: of.Mark.Data, Seq: of.Mark.Seq}); err != nil {
			w.Fatal(err)
		}
	}
	for name, seq := range s.Positions { // any order: each on its own
		w.Server.SavePosition(0, name, seq)
	}
}

// testdata/stored.json has the stored data of servers from before keys were based on package ledger: saved
// documents without their mark, commits that are not saved, sends that are not released, events that are not
// handled, marks of attempts that ended with their process. A server continues from there.
func TestStored_ADeploymentOfAnEarlierVersionContinues(t *testing.T) {
	data, err := os.ReadFile("testdata/stored.json")
	if err != nil {
		t.Fatal(err)
	}
	var s stored
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.store(&s)
		h := accounts()
		h["fail"] = func(*ordered.Tx, *model.Event) (any, error) { return nil, errors.New("no") }
		h["kill"] = func(*ordered.Tx, *model.Event) (any, error) { return nil, nil }
		p := w.serve(ordered.Config{Name: "o1", Handlers: h}, nil)
		w.EventuallyEnded("alice", 12)
		w.EventuallyEnded("bob", 9)
		w.EventuallyEnds("carol", "c1 handled 0", "k handled 3", "c2 handled 0")
		w.wantOnceAndInOrder("alice", 12)
		w.wantOnceAndInOrder("bob", 9)
		w.wantDoc("alice", "balance", "139")
		w.wantDoc("bob", "balance", "135")
		w.wantDoc("carol", "balance", "2")
		w.stop(p)
	})
}
