package replica

import (
	"testing"

	"github.com/settlehq/settle/model"
)

func TestLives(t *testing.T) {
	receipt := func(by, event string) *model.Commit {
		return &model.Commit{Txs: []model.Tx{{By: by, Receipt: &model.Receipt{Event: event, Lane: 1}}}}
	}
	takeover := func() *model.Commit { return &model.Commit{Takeover: true} }
	mark := func(n int) *model.Commit {
		return &model.Commit{Epoch: 7, Trying: &model.Trying{By: "handle add", Event: "e1", Tries: n}}
	}
	for _, c := range []struct {
		name   string
		log    []*model.Commit
		barren int
		tries  int
	}{
		{"the first life follows on none", []*model.Commit{takeover()}, 0, 0},
		{"a life without a receipt", []*model.Commit{takeover(), takeover()}, 1, 0},
		{"two of them", []*model.Commit{takeover(), takeover(), takeover()}, 2, 0},
		{"a receipt ends the count", []*model.Commit{takeover(), takeover(), receipt("handle add", "e9"), takeover()}, 0, 0},
		{"a join begins no life", []*model.Commit{takeover(), {Join: true}, {Join: true}}, 0, 0},
		{"and ends none", []*model.Commit{takeover(), receipt("handle add", "e9"), {Join: true}, takeover()}, 0, 0},
		{"a mark", []*model.Commit{takeover(), mark(1), takeover(), mark(2)}, 1, 2},
		{"a receipt ends the mark", []*model.Commit{takeover(), mark(1), receipt("handle add", "e1")}, 0, 0},
		{"that of another does not", []*model.Commit{takeover(), mark(1), receipt("handle add", "e2"), receipt("handle note", "e1")}, 0, 1},
	} {
		r := New(home)
		for i, commit := range c.log {
			if _, err := r.Apply(uint64(i+1), commit); err != nil {
				t.Fatal(err)
			}
		}
		tries := 0
		if r.Trying != nil {
			tries = r.Trying.Tries
		}
		if r.WithoutReceipt != c.barren || tries != c.tries || (tries > 0) != (r.TriedBy == 7) {
			t.Errorf("%s: %d lives without receipts, %d tries by %d; want %d and %d", c.name, r.WithoutReceipt, tries, r.TriedBy, c.barren, c.tries)
		}
	}
}
