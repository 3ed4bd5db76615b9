package replica

import (
	"errors"
	"strings"
	"testing"

	"github.com/settlehq/settle/model"
)

// A commit is accepted as the next one of its space only if it follows the log's last commit.
func TestAccepts_ACommitMustFollowTheLog(t *testing.T) {
	sends := func(positions ...uint64) []model.Tx {
		tx := model.Tx{N: 1, By: "handle add"}
		for _, p := range positions {
			tx.Sends = append(tx.Sends, model.Send{ID: "home:5:1:0", To: "other", Stream: "add", Position: p})
		}
		return []model.Tx{tx}
	}
	writes := []model.Tx{{N: 1, By: "app"}}
	for _, c := range []struct {
		name string
		prev uint64
		c    model.Commit
		want string
	}{
		{"the next one", 8, model.Commit{Runtime: "w1", Epoch: 5, Txs: sends(3, 4)}, ""},
		{"by a runtime that has joined", 8, model.Commit{Runtime: "w9", Epoch: 7, Txs: writes}, ""},
		{"by one that had joined before the takeover", 8, model.Commit{Runtime: "w9", Epoch: 2, Txs: writes}, ""},
		{"a takeover", 8, model.Commit{Runtime: "w2", Takeover: true}, ""},
		{"a join", 8, model.Commit{Runtime: "w2", Join: true}, ""},
		{"what fills a log", 6, model.Commit{Runtime: "accept-loss", Epoch: 5}, ""},
		{"one that expects no other", 0, model.Commit{Runtime: "w1", Epoch: 5, Txs: writes}, "appended behind 0"},
		{"one that does not know the last", 7, model.Commit{Runtime: "w1", Epoch: 5, Txs: writes}, "appended behind 7"},
		{"a takeover that does not know the last", 7, model.Commit{Runtime: "w2", Takeover: true}, "appended behind 7"},
		{"an epoch to come", 8, model.Commit{Runtime: "w2", Epoch: 9, Txs: writes}, "epoch 9, which has not begun"},
		{"a cursor that goes back", 8, model.Commit{Runtime: "w1", Epoch: 5, Txs: writes, Cursor: model.Cursor{Floor: 3}}, "its cursor is at 3"},
		{"a gap in what it sends", 8, model.Commit{Runtime: "w1", Epoch: 5, Txs: sends(4)}, "event number 4"},
		{"one further on", 8, model.Commit{Runtime: "w1", Epoch: 5, Txs: append(sends(3), sends(5)...)}, "event number 5"},
	} {
		r := New(home)
		r.Seq, r.Epoch, r.Owner, r.Cursor.Floor = 8, 5, "w1", 4
		r.Outbound["other"] = model.Sent{Position: 2}
		if c.c.Cursor.Floor == 0 {
			c.c.Cursor.Floor = 4
		}
		err := r.Accepts(&model.LogEntry{Space: home, Seq: 9, Prev: c.prev}, &c.c)
		_, is := errors.AsType[*model.UnreadableError](err)
		if (err != nil) != (c.want != "") || err != nil && (!is || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
