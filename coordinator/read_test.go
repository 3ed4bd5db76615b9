package coordinator

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
)

// unanswered is a bus that counts sends, and answers with a given error.
type unanswered struct {
	*membus.Bus
	sent int
	err  error
}

func (b *unanswered) Send(_ model.Message, done func(model.SendResult, error)) {
	b.sent++
	if b.err != nil {
		done(model.SendResult{}, b.err)
	}
}

// sending returns a log entry with a send to another space.
func sending(seq uint64) model.LogEntry {
	tx := model.Tx{N: 1, By: "test", Sends: []model.Send{{ID: "s:1:1:0", To: "b", Stream: "add", Position: 1}}}
	c := &model.Commit{Version: model.CommitVersion, Space: "s", Runtime: "w", Epoch: 1, Txs: []model.Tx{tx}}
	return model.LogEntry{Space: "s", Seq: seq, Data: model.AppendCommit(nil, c, model.AppendTx(nil, &tx))}
}

// A tail that is shut down processes nothing more, not even the rest of the current entry: an entry counts as
// read only when all of its sends are in flight.
func TestTail_AfterItsEndReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &unanswered{Bus: membus.NewServer(membus.Config{Partitions: 1}).Connect("coordinator")}
		defer b.Close()
		tail, p := newTail(New(b, Config{Window: 1}), 0), newProgress(b, 6)
		ctx, cancel := context.WithCancel(t.Context())
		tail.window <- struct{}{} // full
		ended := make(chan error, 1)
		go func() { ended <- tail.read(ctx, p, &quarantine{}, sending(7)) }() // ends with ctx
		synctest.Wait()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if done := p.done(); done != 6 || b.sent != 0 {
			t.Errorf("done up to %d, and %d sent, of an abandoned entry", done, b.sent)
		}
		<-tail.window
		for range 20 { // in case a send happened only by chance
			if err := tail.read(ctx, p, &quarantine{}, sending(8)); err != nil {
				t.Error(err)
			}
		}
		if done := p.done(); done != 6 || b.sent != 0 {
			t.Errorf("done up to %d, and %d sent, after the end", done, b.sent)
		}
	})
}

// A notice in flight holds the position back as a send does.
func TestTail_ANoticeWithoutAnAnswerIsNotDone(t *testing.T) {
	b := &unanswered{Bus: membus.NewServer(membus.Config{Partitions: 1}).Connect("coordinator")}
	defer b.Close()
	tail, p := newTail(New(b, Config{}), 0), newProgress(b, 6)
	rc := &model.Receipt{Event: "a:1:1:0", Lane: 1, Outcome: model.Cancelled, Error: "no", Pos: 1} // no dead letter follows
	tx := model.Tx{N: 1, By: "handle add", Receipt: rc}
	c := &model.Commit{Version: model.CommitVersion, Space: "s", Runtime: "w", Epoch: 1, Txs: []model.Tx{tx}}
	e := model.LogEntry{Space: "s", Seq: 7, Data: model.AppendCommit(nil, c, model.AppendTx(nil, &tx))}
	if err := tail.read(t.Context(), p, &quarantine{}, e); err != nil {
		t.Fatal(err)
	}
	if done := p.done(); done != 6 || b.sent != 1 {
		t.Errorf("done up to %d, %d sent", done, b.sent)
	}
}

// A send without an answer may or may not be in its lane.
func TestTail_ASendWithoutAnAnswerIsNotDone(t *testing.T) {
	b := &unanswered{Bus: membus.NewServer(membus.Config{Partitions: 1}).Connect("coordinator"), err: fmt.Errorf("send: %w", model.ErrStopped)}
	defer b.Close()
	tail, p := newTail(New(b, Config{}), 0), newProgress(b, 6)
	if err := tail.read(t.Context(), p, &quarantine{}, sending(7)); err != nil {
		t.Fatal(err)
	}
	if done := p.done(); done != 6 || b.sent != 1 || len(tail.window) != 0 {
		t.Errorf("done up to %d, %d sent, %d in flight", done, b.sent, len(tail.window))
	}
}
