package live

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// mute is a bus on which whoever answers says one thing, and then nothing more.
type mute struct {
	port.Client
	asked int
	// still says that not even that is said.
	still bool
}

func (b *mute) Listen(ctx context.Context, _ string, _ []byte, deliver func(model.Part)) error {
	b.asked++
	if !b.still {
		deliver(model.Part{Header: map[string]string{HeaderEvent: string(Beating)}})
	}
	<-ctx.Done()
	return ctx.Err()
}

// Who answers says something every second. A client that hears nothing for three asks another.
func TestClient_AsksAgainWhenNothingIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &mute{}
		ctx, cancel := context.WithTimeout(t.Context(), 10*Heartbeat)
		defer cancel()
		var broken []Event
		err := (&Client{Bus: b}).Watch(ctx, Watch{Space: "s", Document: "n"}, func(e Event) {
			if e.Kind == Broken {
				broken = append(broken, e)
			}
		})
		if b.asked != 4 || len(broken) != 3 || broken[0].Err == nil || ctx.Err() == nil {
			t.Errorf("asked %d times in ten seconds, told of %+v, ended with %v", b.asked, broken, err)
		}
		b = &mute{still: true}
		again, end := context.WithTimeout(t.Context(), 10*Heartbeat)
		defer end()
		if err := (&Client{Bus: b}).Watch(again, Watch{Space: "s", Document: "n"}, func(Event) {}); b.asked < 3 {
			t.Errorf("asked %d times in ten seconds where nothing is said at all, ended with %v", b.asked, err)
		}
	})
}

// gone is a bus on which somebody answers for so many questions, or from then on.
type gone struct {
	port.Client
	asked, after int
}

func (b *gone) Listen(_ context.Context, _ string, _ []byte, deliver func(model.Part)) error {
	if b.asked++; b.asked == 1 {
		deliver(model.Part{Header: map[string]string{HeaderEvent: string(Beating)}})
	}
	return model.ErrNobody
}

func (b *gone) Ask(context.Context, string, []byte) ([]byte, error) {
	if b.asked++; b.asked <= b.after {
		return nil, model.ErrNobody
	}
	return json.Marshal(Answer{Space: "s", Document: "n", Revision: 7})
}

// That nobody answers is told once, however often the client asks again.
func TestClient_TellsOnceThatNobodyAnswersAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &gone{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		broken := 0
		_ = (&Client{Bus: b}).Watch(ctx, Watch{Space: "s", Document: "n"}, func(e Event) {
			if e.Kind == Broken {
				broken++
			}
		})
		if broken != 1 || b.asked < 10 {
			t.Errorf("told %d times, after %d questions", broken, b.asked)
		}
	})
}

// The only worker may be about to be there.
func TestClient_AGetWaitsForAWorkerForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &gone{after: 5}
		if a, err := (&Client{Bus: b}).Get(t.Context(), Get{Space: "s", Document: "n"}); err != nil || a.Revision != 7 {
			t.Errorf("%+v, %v, after %d questions", a, err, b.asked)
		}
	})
}

// What a question came to has the same code for whoever asks.
func TestCoded_TellsErrorsApart(t *testing.T) {
	for err, want := range map[error]int{
		model.ErrNoProgram: model.CodeNotFound, model.ErrElsewhere: model.CodeUnavailable, model.ErrNobody: model.CodeUnavailable,
		model.ErrStopped: model.CodeUnavailable, model.ErrTooLarge: model.CodeTooLarge, context.DeadlineExceeded: model.CodeFailed,
	} { // any order: each by itself
		if got := coded(fmt.Errorf("get: %w", err)).Code; got != want {
			t.Errorf("%v has code %d, want %d", err, got, want)
		}
	}
}
