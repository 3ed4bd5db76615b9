package coordinator

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
)

// unanswered is a bus that counts what is sent, and answers with an error of its own.
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

// sending returns an entry of the log with a send to another space.
func sending(seq uint64) model.LogEntry {
	tx := model.Tx{N: 1, By: "test", Sends: []model.Send{{ID: "s:1:1:0", To: "b", Stream: "add", Position: 1}}}
	c := &model.Commit{Version: model.CommitVersion, Space: "s", Runtime: "w", Epoch: 1, Txs: []model.Tx{tx}}
	return model.LogEntry{Space: "s", Seq: seq, Data: model.AppendCommit(nil, c, model.AppendTx(nil, &tx))}
}

// A tail that is torn down takes in nothing any more, not even the rest of the entry that it is at:
// an entry counts as read only when all of it is under way.
func TestTail_ThatIsTornDownReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &unanswered{Bus: membus.NewServer(membus.Config{Partitions: 1}).Connect("coordinator")}
		defer b.Close()
		tail, p := newTail(New(b, Config{Window: 1}), 0), newProgress(b, 6)
		ctx, cancel := context.WithCancel(t.Context())
		tail.window <- struct{}{} // there is no room
		ended := make(chan error, 1)
		go func() { ended <- tail.read(ctx, p, sending(7)) }() // ends with ctx
		synctest.Wait()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if done := p.done(); done != 6 || b.sent != 0 {
			t.Errorf("done up to %d, and %d sent, of an entry that was given up", done, b.sent)
		}
		<-tail.window
		for range 20 { // a send would be a matter of chance
			if err := tail.read(ctx, p, sending(8)); err != nil {
				t.Error(err)
			}
		}
		if done := p.done(); done != 6 || b.sent != 0 {
			t.Errorf("done up to %d, and %d sent, after the end", done, b.sent)
		}
	})
}

// A notice that is on its way holds the position back as a send does.
func TestTail_ANoticeWithoutAnAnswerIsNotDone(t *testing.T) {
	b := &unanswered{Bus: membus.NewServer(membus.Config{Partitions: 1}).Connect("coordinator")}
	defer b.Close()
	tail, p := newTail(New(b, Config{}), 0), newProgress(b, 6)
	rc := &model.Receipt{Event: "a:1:1:0", Lane: 1, Outcome: model.Cancelled, Error: "no", Pos: 1} // no dead letter follows
	tx := model.Tx{N: 1, By: "handle add", Receipt: rc}
	c := &model.Commit{Version: model.CommitVersion, Space: "s", Runtime: "w", Epoch: 1, Txs: []model.Tx{tx}}
	e := model.LogEntry{Space: "s", Seq: 7, Data: model.AppendCommit(nil, c, model.AppendTx(nil, &tx))}
	if err := tail.read(t.Context(), p, e); err != nil {
		t.Fatal(err)
	}
	if done := p.done(); done != 6 || b.sent != 1 {
		t.Errorf("done up to %d, %d sent", done, b.sent)
	}
}

// A send whose answer never came may or may not be there.
func TestTail_ASendWithoutAnAnswerIsNotDone(t *testing.T) {
	b := &unanswered{Bus: membus.NewServer(membus.Config{Partitions: 1}).Connect("coordinator"), err: fmt.Errorf("send: %w", model.ErrStopped)}
	defer b.Close()
	tail, p := newTail(New(b, Config{}), 0), newProgress(b, 6)
	if err := tail.read(t.Context(), p, sending(7)); err != nil {
		t.Fatal(err)
	}
	if done := p.done(); done != 6 || b.sent != 1 || len(tail.window) != 0 {
		t.Errorf("done up to %d, %d sent, %d under way", done, b.sent, len(tail.window))
	}
}
