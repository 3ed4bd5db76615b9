package ordered_test

import (
	"testing"
	"testing/synctest"

	"github.com/settlehq/settle/internal/loss"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/ordered"
)

// A key whose log has a commit that cannot be decoded is reported as refused, and other keys continue; once
// an operator has decided, its events are handled.
func TestQuarantine_AKeyIsSetAsideUntilItsCommitIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		seq, err := w.Server.Append(model.Append{Space: "alice", Data: []byte(`{"v":99}`)})
		if err != nil {
			t.Fatal(err)
		}
		p := w.serve(ordered.Config{Name: "o1"}, nil)
		w.Send("alice", "pay", "e1", `{"cents":1}`)
		w.Send("bob", "pay", "e1", `{"cents":1}`)
		w.EventuallyEnded("bob", 1)
		w.Eventually("the key is reported", func() bool {
			f := w.look()
			return len(f.Workers) == 1 && f.Workers[0].Figures != nil && len(f.Workers[0].Figures.Losses) == 1
		})
		if l := w.look().Workers[0].Figures.Losses[0]; l.Kind != model.LossOfCommit || l.Space != "alice" || l.Known != seq {
			t.Errorf("named is %+v", l)
		}
		q, err := loss.QuarantineOf(t.Context(), w.Client, "alice")
		if err != nil || q == nil {
			t.Fatal(q, err)
		}
		if err := q.Omit(t.Context(), w.Client, ""); err != nil {
			t.Fatal(err)
		}
		w.Eventually("the key is served", func() bool { return w.Server.Head("alice") > seq+1 })
		w.stop(p)
	})
}
