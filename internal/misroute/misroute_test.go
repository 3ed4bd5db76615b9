package misroute

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/internal/leaks"
	"github.com/settlehq/settle/model"
)

func TestMain(m *testing.M) { leaks.VerifyTestMain(m) }

// lanes answers each send with the next error of the script, and stores accepted events. FollowLane
// delivers lane; LoadPosition returns saved.
type lanes struct {
	mu     sync.Mutex
	script []error
	stored []model.Message
	lane   []model.Message
	saved  uint64
}

func (l *lanes) LoadPosition(_ context.Context, partition int, name string) (uint64, error) {
	if partition != 0 || name != Position {
		return 0, fmt.Errorf("position %s of partition %d", name, partition)
	}
	return l.saved, nil
}

func (l *lanes) FollowLane(ctx context.Context, _ int, after uint64, deliver func(model.Message)) error {
	for _, m := range l.lane {
		if m.Seq > after {
			deliver(m)
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

func (*lanes) Partitions() int { return 2 }

func (l *lanes) Send(m model.Message, done func(model.SendResult, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	if len(l.script) > 0 {
		err, l.script = l.script[0], l.script[1:]
	}
	if err == nil {
		l.stored = append(l.stored, m)
	}
	go done(model.SendResult{}, err) // ends at once
}

// forwarded returns the accepted events.
func (l *lanes) forwarded() []model.Message {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.stored)
}

// of returns the name of a space in a partition.
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
func begin(t *testing.T, l *lanes) *Forwarder {
	ctx, cancel := context.WithCancel(t.Context())
	f, over := New(l, 0, slog.New(slog.DiscardHandler)), make(chan struct{})
	go func() { defer close(over); f.Run(ctx) }() // ends with ctx
	t.Cleanup(func() { cancel(); <-over })
	return f
}

func TestForwarder_ForwardsMisroutedEventsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lanes{script: []error{nil, model.ErrLaneFull, model.ErrLaneFull, nil, errors.New("no responders")}}
		f := begin(t, l)
		home := model.Message{Space: of(0), Stream: "add", ID: "mine", Seq: 9}
		if f.Take(&home) || f.Done() != NonePending {
			t.Errorf("an event of the partition itself was taken, or nothing is done beyond %d", f.Done())
		}
		sent := events(3)
		for i := range sent {
			if !f.Take(&sent[i]) {
				t.Errorf("an event of another partition was not taken: %+v", sent[i])
			}
		}
		synctest.Wait()
		if f.Done() != 10 {
			t.Errorf("with the second event under way, all up to %d is done, want 10", f.Done())
		}
		time.Sleep(4 * retryDelay)
		synctest.Wait()
		for i := range sent {
			sent[i].Seq, sent[i].Stored = 0, time.Time{}
		}
		if !slices.EqualFunc(l.forwarded(), sent, func(a, b model.Message) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) || f.Done() != NonePending {
			t.Errorf("forwarded were %v, want %v; then all up to %d is done", l.forwarded(), sent, f.Done())
		}
	})
}

// The next reader of the lane begins with the events that were not forwarded.
func TestForwarder_IsNotDoneWithAnEventThatItCouldNotSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lanes{script: []error{nil, model.ErrStopped}}
		f := begin(t, l)
		for _, m := range events(3) {
			f.Take(&m)
		}
		synctest.Wait()
		if len(l.forwarded()) != 1 || f.Done() != 10 {
			t.Errorf("%d were forwarded, and all up to %d is done, want 1 and 10", len(l.forwarded()), f.Done())
		}
	})
}

// The reader of the lane is never blocked. Events that do not fit into memory are read again, in
// order, and an event that is not forwarded holds the position back.
func TestForwarder_ReadsEventsAgainThatDoNotFitIntoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := events(3 * queueSize)
		l := &lanes{lane: all, script: slices.Repeat([]error{model.ErrLaneFull}, 5)}
		f := begin(t, l)
		for _, m := range all {
			f.Take(&m)
		}
		synctest.Wait()
		if len(l.forwarded()) != 0 || f.Done() != 9 || f.Sent(1000) != 0 {
			t.Errorf("%d were forwarded, all up to %d is done, and the position is %d", len(l.forwarded()), f.Done(), f.Sent(1000))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for i, m := range l.forwarded() {
			if m.ID != all[i].ID {
				t.Fatalf("number %d is %s, want %s", i, m.ID, all[i].ID)
			}
		}
		last := all[len(all)-1].Seq
		if len(l.forwarded()) != len(all) || f.Done() != last || f.Sent(1000) != last || f.Sent(50) != 50 {
			t.Errorf("%d were forwarded, all up to %d is done, and the position is %d", len(l.forwarded()), f.Done(), f.Sent(1000))
		}
	})
}

// A forwarded event is not forwarded again, however far the lane position lags behind.
func TestForwarder_ForwardsNothingTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lanes{saved: 11}
		f := begin(t, l)
		for _, m := range events(3) {
			f.Take(&m)
		}
		synctest.Wait()
		if len(l.forwarded()) != 1 || l.forwarded()[0].ID != "e-2" || f.Done() != NonePending || f.Sent(12) != 12 {
			t.Errorf("forwarded: %v; all up to %d is done, and the position is %d", l.forwarded(), f.Done(), f.Sent(12))
		}
		f.Saved(12)
		if f.Sent(12) != 0 {
			t.Errorf("the position %d is to be saved again", f.Sent(12))
		}
	})
}

func TestForwarder_SkipsEventsThatAreTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lanes{script: []error{model.ErrTooLarge}}
		f := begin(t, l)
		for _, m := range events(2) {
			f.Take(&m)
		}
		synctest.Wait()
		if len(l.forwarded()) != 1 || l.forwarded()[0].ID != "e-1" || f.Done() != NonePending {
			t.Errorf("forwarded: %v, done up to %d; want the second alone, and all", l.forwarded(), f.Done())
		}
	})
}
