package worker_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/internal/loss"
	"github.com/settlehq/settle/model"
)

const setAside = "set aside: a stored message cannot be read"

// forge appends bytes to the log of a space, as any program with the right to publish there can.
func (w *world) forge(space, data string) uint64 {
	w.Helper()
	seq, err := w.server.Append(model.Append{Space: space, Expect: w.server.Head(space), Data: []byte(data)})
	if err != nil {
		w.Fatal(err)
	}
	if w.forged == nil {
		w.forged = map[string]bool{}
	}
	w.forged[data] = true
	return seq
}

// badCommits are bytes that no reader of the log of space s can go on behind.
var badCommits = map[string]string{
	"no JSON":                     "\x00\xff",
	"with the bytes of sends":     `{"v":99,"tx":[{"snd":[{}],"rc":{"o":"failed"}}]}`,
	"a huge slot":                 `{"v":1,"sp":"s","rt":"w1","ep":1,"tx":[{"n":1,"by":"x","ltr":{"id":"e","st":"add","nb":5,"sl":18446744073709551615}}],"cur":{"f":100}}`,
	"many that are held":          `{"v":1,"sp":"s","rt":"w1","ep":1,"cur":{"f":9007199254740992,"hs":"1+4294967295"}}`,
	"of another space":            `{"v":1,"sp":"other","rt":"w1","ep":1,"cur":{"f":100}}`,
	"of an epoch to come":         `{"v":1,"sp":"s","rt":"w1","ep":1000,"cur":{"f":100}}`,
	"a cursor that goes back":     `{"v":1,"sp":"s","rt":"w1","ep":1,"cur":{}}`,
	"a gap in its sends":          `{"v":1,"sp":"s","rt":"w1","ep":1,"tx":[{"n":1,"by":"x","snd":[{"id":"s:1:1:0","to":"other","st":"add","pos":7}]}],"cur":{"f":100}}`,
	"a write that cannot be made": `{"v":1,"sp":"s","rt":"w1","ep":1,"tx":[{"n":1,"by":"x","w":[["text","",1],["text","/deep/er",1]]}],"cur":{"f":100}}`,
}

// A space whose log has a commit that cannot be read is set aside, named with its sequence and recorded, and the others go
// on. When an operator has skipped the commit, the space goes on behind it, and no event is lost or handled twice.
func TestQuarantine_ASpaceIsSetAsideUntilItsCommitIsDecided(t *testing.T) {
	for name, data := range badCommits { // any order: each on its own
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				w.coordinator()
				p := w.worker("w1")
				w.sendMany("s", "add", 10)
				w.eventuallyHandled("s", 10)
				seq := w.forge("s", data)
				for i := range 10 {
					w.send("s", "add", fmt.Sprint("behind", i))
					w.send("other", "add", fmt.Sprint("o", i))
				}
				w.eventuallyHandled("other", 10)
				w.wantLoss(p, model.LossError{Kind: model.LossOfCommit, Space: "s", Known: seq})
				w.pass(5 * time.Minute)
				if n := w.logged.count(setAside); n < 1 || n > 4 {
					t.Errorf("it was logged %d times in five minutes", n)
				}
				if head := w.server.Head("s"); head != seq {
					t.Errorf("the log of the space goes up to %d, want %d", head, seq)
				}
				w.send("other", "add", "later")
				w.eventuallyHandled("other", 11)
				found, err := loss.Quarantine(t.Context(), w.client, 0)
				if err != nil || len(found) != 1 || found[0].Seq != seq || found[0].Record == nil || found[0].Record.By != "worker/w1" {
					t.Fatalf("in quarantine are %+v, %v", found, err)
				}
				if err := found[0].Omit(t.Context(), w.client, "a test"); err != nil {
					t.Fatal(err)
				}
				w.eventuallyHandled("s", 20)
				w.pass(time.Minute)
				want := numbered(10)
				for i := range 10 {
					want = append(want, fmt.Sprint("behind", i))
				}
				if f := p.Figures(); f.LossCount != 0 {
					t.Errorf("the worker still names %+v", f.Losses)
				}
				got := map[string]int{}
				for _, rc := range w.receipts("s") {
					got[rc.Event]++
				}
				for _, id := range want {
					if got[id] != 1 {
						t.Errorf("event %s has %d receipts", id, got[id])
					}
				}
				if found, err := loss.Quarantine(t.Context(), w.client, 0); err != nil || len(found) != 0 {
					t.Errorf("in quarantine are %+v, %v", found, err)
				}
			})
		})
	}
}

// A commit that is damaged is restored from a copy: nothing of what it said is lost.
func TestQuarantine_ACommitIsRestoredFromACopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.worker("w1")
		w.sendMany("s", "add", 3)
		w.eventuallyHandled("s", 3)
		last := w.commits("s")
		c := &model.Commit{
			Version: model.CommitVersion, Space: "s", Runtime: "w2", Epoch: 1, Cursor: last[len(last)-1].Cursor,
			Txs: []model.Tx{{N: 1, By: "app", Writes: []model.Write{{Doc: "restored", Value: model.Int(7)}}, Sends: []model.Send{{ID: "s:1:9:0", To: "other", Stream: "add", Position: 1}}}},
		}
		data := model.AppendCommit(nil, c, nil)
		broken := []byte(string(data))
		broken[9] ^= 1
		seq := w.forge("s", string(broken))
		w.send("s", "add", "behind")
		w.eventually("it is set aside", func() bool { return p.Figures().LossCount == 1 })
		q, err := loss.QuarantineOf(t.Context(), w.client, "s")
		if err != nil || q == nil || q.Seq != seq {
			t.Fatalf("in quarantine is %+v, %v", q, err)
		}
		other := *c
		other.Space = "other"
		if err := q.Restore(t.Context(), w.client, model.AppendCommit(nil, &other, nil), ""); err == nil {
			t.Error("a commit of another space is taken for a copy")
		}
		if err := q.Restore(t.Context(), w.client, data, ""); err != nil {
			t.Fatal(err)
		}
		w.eventually("it goes on", func() bool { return w.doc("s", "restored") == "7" })
		w.eventuallyHandled("other", 1)
		w.wantHandled("other", "s:1:9:0")
	})
}
