package worker_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/internal/loss"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
)

const setAside = "set aside: a stored message cannot be read"

// badCommits are bytes after which no reader of the log of space s can continue.
var badCommits = map[string]string{
	"no JSON":                 "\x00\xff",
	"with the bytes of sends": `{"v":99,"tx":[{"snd":[{}],"rc":{"o":"failed"}}]}`,
	"a huge slot":             `{"v":1,"sp":"s","rt":"w1","ep":1,"tx":[{"n":1,"by":"x","ltr":{"id":"e","st":"add","nb":5,"sl":18446744073709551615}}],"cur":{"f":100}}`,
	"many held events":        `{"v":1,"sp":"s","rt":"w1","ep":1,"cur":{"f":9007199254740992,"hs":"1+4294967295"}}`,
	"of another space":        `{"v":1,"sp":"other","rt":"w1","ep":1,"cur":{"f":100}}`,
	"of a future epoch":       `{"v":1,"sp":"s","rt":"w1","ep":1000,"cur":{"f":100}}`,
	"a cursor that goes back": `{"v":1,"sp":"s","rt":"w1","ep":1,"cur":{}}`,
	"a gap in its sends":      `{"v":1,"sp":"s","rt":"w1","ep":1,"tx":[{"n":1,"by":"x","snd":[{"id":"s:1:1:0","to":"other","st":"add","pos":7}]}],"cur":{"f":100}}`,
	"an invalid write":        `{"v":1,"sp":"s","rt":"w1","ep":1,"tx":[{"n":1,"by":"x","w":[["text","",1],["text","/deep/er",1]]}],"cur":{"f":100}}`,
}

// A space whose log has a commit that cannot be decoded is set aside and recorded with the commit's sequence,
// and the others continue. When an operator has skipped the commit, the space continues after it, and no
// event is lost or handled twice.
func TestQuarantine_ASpaceIsSetAsideUntilItsCommitIsSkipped(t *testing.T) {
	for name, data := range badCommits { // any order: each on its own
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				w.Coordinator()
				p := w.worker("w1")
				w.sendMany("s", "add", 10)
				w.EventuallyEnded("s", 10)
				seq := w.Forge("s", data)
				for i := range 10 {
					w.Send("s", "add", fmt.Sprint("behind", i))
					w.Send("other", "add", fmt.Sprint("o", i))
				}
				w.EventuallyEnded("other", 10)
				w.wantLoss(p, model.LossError{Kind: model.LossOfCommit, Space: "s", Known: seq})
				p.wantSetAside("s", "n")
				w.Pass(5 * time.Minute)
				if n := w.Log.Count(setAside); n < 1 || n > 4 {
					t.Errorf("the quarantine was logged %d times in five minutes", n)
				}
				if n := loads(p); n > 100 {
					t.Errorf("spaces were loaded %d times in five minutes", n)
				}
				if head := w.Server.Head("s"); head != seq {
					t.Errorf("the log of the space goes up to %d, want %d", head, seq)
				}
				w.Send("other", "add", "later")
				w.EventuallyEnded("other", 11)
				found, err := loss.Quarantine(t.Context(), w.Client, 0)
				if err != nil || len(found) != 1 || found[0].Seq != seq || found[0].Record == nil || found[0].Record.By != "worker/w1" {
					t.Fatalf("the quarantine is %+v, %v", found, err)
				}
				if err := found[0].Omit(t.Context(), w.Client, "a test"); err != nil {
					t.Fatal(err)
				}
				w.EventuallyEnded("s", 20)
				w.Pass(time.Minute)
				want := worldtest.Numbered(10)
				for i := range 10 {
					want = append(want, fmt.Sprint("behind", i))
				}
				if f := p.Figures(); f.LossCount != 0 {
					t.Errorf("the worker still reports %+v", f.Losses)
				}
				got := map[string]int{}
				for _, rc := range w.Receipts("s") {
					got[rc.Event]++
				}
				for _, id := range want {
					if got[id] != 1 {
						t.Errorf("event %s has %d receipts", id, got[id])
					}
				}
				if found, err := loss.Quarantine(t.Context(), w.Client, 0); err != nil || len(found) != 0 {
					t.Errorf("the quarantine is %+v, %v", found, err)
				}
			})
		})
	}
}

// loads returns how often a worker has loaded spaces.
func loads(p *process) (n uint64) {
	for _, s := range p.Stats().Partitions { // any order: a sum
		n += s.Activations
	}
	return n
}

// wantSetAside checks that a read says at once that the space is set aside, why, and the command, and so does the status of
// a watch.
func (p *process) wantSetAside(space, doc string) {
	p.w.Helper()
	began := time.Now()
	_, err := p.readCurrent(p.w.Context(), space, doc, time.Minute)
	e, is := errors.AsType[*model.ServiceError](err)
	if !is || e.Code != model.CodeConflict || !strings.Contains(e.Text, "set aside") || !strings.Contains(e.Text, "settle quarantine show "+space) {
		p.w.Errorf("a read ends with %v", err)
	}
	if took := time.Since(began); took > 0 {
		p.w.Errorf("a read takes %v", took)
	}
	states, err := p.Read(p.w.Context(), model.ReadRequest{Documents: []model.DocumentRef{{Space: space, Document: doc}}})
	if err != nil || states[0].Passing || !strings.Contains(states[0].Stale, "set aside") {
		p.w.Errorf("the status of a watch is %+v, %v", states, err)
	}
}

// A repair takes a step for each lost sequence, and one that was forged would keep it busy without end.
func TestLoss_AForgedSequenceIsNotRepairedStepByStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.worker("w1")
		w.adds("s", 1)
		w.Eventually("it is saved", func() bool { return w.Server.LoadState("s").Mark.Seq > 0 })
		mark := w.Server.LoadState("s").Mark
		mark.Seq = 1 << 50
		if err := w.Client.SaveState(t.Context(), "s", nil, &mark); err != nil {
			t.Fatal(err)
		}
		l, err := loss.InSpace(t.Context(), w.Client, "s")
		if err != nil || l == nil {
			t.Fatalf("the loss is %v, %v", l, err)
		}
		if err := l.Accept(t.Context(), w.Client, nil); err == nil || !strings.Contains(err.Error(), "a stored position is wrong") {
			t.Errorf("it is accepted with %v", err)
		}
	})
}

// A damaged commit is restored from a copy, with everything that it contained.
func TestQuarantine_ACommitIsRestoredFromACopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.worker("w1")
		w.sendMany("s", "add", 3)
		w.EventuallyEnded("s", 3)
		last := w.Commits("s")
		c := &model.Commit{
			Version: model.CommitVersion, Space: "s", Runtime: "w2", Epoch: 1, Cursor: last[len(last)-1].Cursor,
			Txs: []model.Tx{{N: 1, By: "app", Writes: []model.Write{{Doc: "restored", Value: model.Int(7)}}, Sends: []model.Send{{ID: "s:1:9:0", To: "other", Stream: "add", Position: 1}}}},
		}
		data := model.AppendCommit(nil, c, nil)
		broken := []byte(string(data))
		broken[9] ^= 1
		seq := w.Forge("s", string(broken))
		w.Send("s", "add", "behind")
		w.Eventually("the space is set aside", func() bool { return p.Figures().LossCount == 1 })
		q, err := loss.QuarantineOf(t.Context(), w.Client, "s")
		if err != nil || q == nil || q.Seq != seq {
			t.Fatalf("the quarantine is %+v, %v", q, err)
		}
		other := *c
		other.Space = "other"
		if err := q.Restore(t.Context(), w.Client, model.AppendCommit(nil, &other, nil), ""); err == nil {
			t.Error("a commit of another space was accepted as a copy")
		}
		if err := q.Restore(t.Context(), w.Client, data, ""); err != nil {
			t.Fatal(err)
		}
		w.Eventually("the space continues", func() bool { return w.Doc("s", "restored") == "7" })
		w.EventuallyEnded("other", 1)
		w.wantHandled("other", "s:1:9:0")
	})
}
