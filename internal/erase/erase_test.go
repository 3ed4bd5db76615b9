package erase

import (
	"fmt"
	"testing"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

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
