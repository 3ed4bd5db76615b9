package stray

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/settlehq/settle/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lanes answer a send with what is scripted for that attempt, and keep what was accepted.
type lanes struct {
	script []error
	tries  int
	stored []model.Message
}

func (*lanes) Partitions() int { return 2 }

func (l *lanes) Send(m model.Message, done func(model.SendResult, error)) {
	l.tries++
	var err error
	if len(l.script) > 0 {
		err, l.script = l.script[0], l.script[1:]
	}
	if err == nil {
		l.stored = append(l.stored, m)
	}
	go done(model.SendResult{}, err) // ends at once
}

// of is a space of a partition.
func of(partition int) string {
	for n := 0; ; n++ {
		if name := fmt.Sprintf("space-%d", n); model.PartitionOf(name, 2) == partition {
			return name
		}
	}
}

func events(n int) (list []model.Message) {
	for i := range n {
		list = append(list, model.Message{
			Space: of(1), Stream: "add", ID: fmt.Sprintf("e-%d", i), Payload: []byte("1"), NotBefore: 7,
			Seq: uint64(10 + i), Stored: time.Unix(1, 0),
		})
	}
	return list
}

// begin runs a forwarder of partition 0 until the test ends.
func begin(t *testing.T, l *lanes) (*Forwarder, context.Context) {
	ctx, cancel := context.WithCancel(t.Context())
	f, over := New(l, 0, slog.New(slog.DiscardHandler)), make(chan struct{})
	go func() { defer close(over); f.Run(ctx) }() // ends with ctx
	t.Cleanup(func() { cancel(); <-over })
	return f, ctx
}

func TestForwarder_SendsOnInOrderWhatBelongsElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lanes{script: []error{nil, model.ErrLaneFull, model.ErrLaneFull, nil, errors.New("no responders")}}
		f, ctx := begin(t, l)
		home := model.Message{Space: of(0), Stream: "add", ID: "mine", Seq: 9}
		if f.Take(ctx, &home) || f.Done() != NonePending {
			t.Errorf("an event of the partition was taken over, or nothing is done beyond %d", f.Done())
		}
		sent := events(3)
		for i := range sent {
			if !f.Take(ctx, &sent[i]) {
				t.Errorf("an event of another partition was not taken over: %+v", sent[i])
			}
		}
		synctest.Wait()
		if f.Done() != 10 {
			t.Errorf("with the second event under way, all up to %d is done, want 10", f.Done())
		}
		time.Sleep(4 * again)
		synctest.Wait()
		for i := range sent {
			sent[i].Seq, sent[i].Stored = 0, time.Time{}
		}
		if !slices.EqualFunc(l.stored, sent, func(a, b model.Message) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) || f.Done() != NonePending {
			t.Errorf("sent on were %v, want %v; then all up to %d is done", l.stored, sent, f.Done())
		}
	})
}

// What was not sent on when the reader ends is what the next one begins with.
func TestForwarder_IsNotDoneWithWhatItCouldNotSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lanes{script: []error{nil, model.ErrStopped}}
		f, ctx := begin(t, l)
		for _, m := range events(3) {
			f.Take(ctx, &m)
		}
		synctest.Wait()
		if len(l.stored) != 1 || f.Done() != 10 {
			t.Errorf("%d were sent on, and all up to %d is done, want 1 and 10", len(l.stored), f.Done())
		}
	})
}

func TestForwarder_HasRoomForSoManyAndThenTheReaderWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lanes{script: slices.Repeat([]error{model.ErrLaneFull}, 5)}
		f, ctx := begin(t, l)
		taken := 0
		done := make(chan struct{})
		go func() { // ends when all are taken
			defer close(done)
			for _, m := range events(2 * room) {
				f.Take(ctx, &m)
				taken++
			}
		}()
		synctest.Wait()
		if taken != room+1 { // one of them is under way
			t.Errorf("%d were taken at once, want %d", taken, room+1)
		}
		<-done
		synctest.Wait()
		if len(l.stored) != 2*room {
			t.Errorf("%d were sent on, want %d", len(l.stored), 2*room)
		}
	})
}

func TestForwarder_PassesOverWhatIsTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lanes{script: []error{model.ErrTooLarge}}
		f, ctx := begin(t, l)
		for _, m := range events(2) {
			f.Take(ctx, &m)
		}
		synctest.Wait()
		if len(l.stored) != 1 || l.stored[0].ID != "e-1" || f.Done() != NonePending {
			t.Errorf("sent on: %v, done up to %d; want the second alone, and all", l.stored, f.Done())
		}
	})
}
