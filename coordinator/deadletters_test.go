package coordinator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
)

// A letter counts as in flight before it is queued. The position must not pass it while it waits for room,
// and must not wait forever because it was written before it counted.
func TestDeadLetter_ALetterCountsAsInFlightBeforeItIsQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := membus.NewServer(membus.Config{Partitions: 1}).Connect("coordinator")
		defer b.Close()
		tail := newTail(New(b, Config{}), 0)
		tail.letters = make(chan deadLetter) // no receiver yet
		p := newProgress(b, 0)
		tx := &model.Tx{N: 1, By: "handle add", Receipt: &model.Receipt{Event: "e1", Lane: 1, Outcome: model.Failed}}
		go tail.queueDeadLetter(t.Context(), p, model.LogEntry{Space: "s", Seq: 7}, tx) // ends when its letter is taken
		synctest.Wait()
		p.read(7)
		if done := p.done(); done != 6 {
			t.Errorf("done up to %d while the letter of 7 waits", done)
		}
		letter := <-tail.letters
		letter.p.end(letter.Commit)
		synctest.Wait()
		if done := p.done(); done != 7 {
			t.Errorf("done up to %d after the letter was written", done)
		}
	})
}

// noLetters is a bus that stores no letter.
type noLetters struct{ *membus.Bus }

func (noLetters) StoreDead(context.Context, *model.DeadLetter) error { return errors.New("not today") }

// A letter that was not written when the coordinator was stopped stays in flight, so that its commit does not
// count as released.
func TestDeadLetter_AnAbandonedLetterIsNotDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := membus.NewServer(membus.Config{Partitions: 1}).Connect("coordinator")
		defer b.Close()
		c := New(noLetters{b}, Config{})
		tail, p := newTail(c, 0), newProgress(noLetters{b}, 0)
		tx := &model.Tx{N: 1, By: "handle add", Receipt: &model.Receipt{Event: "e1", Lane: 1, Outcome: model.Failed}}
		tail.queueDeadLetter(t.Context(), p, model.LogEntry{Space: "s", Seq: 7}, tx)
		p.read(7)
		c.tasks.Go(tail.writeDeadLetters) // ends with c.ctx
		synctest.Wait()
		c.Stop()
		if done := p.done(); done != 6 {
			t.Errorf("done up to %d although the letter of 7 was never written", done)
		}
	})
}
