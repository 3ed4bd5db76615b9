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

// mute is a bus whose worker sends one heartbeat and then falls silent.
type mute struct {
	port.Client
	asked int
	// still suppresses that heartbeat as well.
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

// A worker sends a message every second. A client that receives none for three seconds asks another worker.
func TestClient_WatchesAgainAfterThreeSilentSeconds(t *testing.T) {
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
			t.Errorf("sent %d requests in ten seconds, received %+v, ended with %v", b.asked, broken, err)
		}
		b = &mute{still: true}
		again, end := context.WithTimeout(t.Context(), 10*Heartbeat)
		defer end()
		if err := (&Client{Bus: b}).Watch(again, Watch{Space: "s", Document: "n"}, func(Event) {}); b.asked < 3 {
			t.Errorf("sent %d requests to a silent worker in ten seconds, ended with %v", b.asked, err)
		}
	})
}

// gone is a bus without workers, except for the first watch and for requests after the first few.
type gone struct {
	port.Client
	asked, after int
}

func (b *gone) Listen(_ context.Context, _ string, _ []byte, deliver func(model.Part)) error {
	if b.asked++; b.asked == 1 {
		deliver(model.Part{Header: map[string]string{HeaderEvent: string(Beating)}})
	}
	return model.ErrNoResponder
}

func (b *gone) Ask(context.Context, string, []byte) ([]byte, error) {
	if b.asked++; b.asked <= b.after {
		return nil, model.ErrNoResponder
	}
	return json.Marshal(Answer{Space: "s", Document: "n", Revision: 7})
}

// A client that retries many times delivers one Broken.
func TestClient_DeliversBrokenOnceWithoutWorkers(t *testing.T) {
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
			t.Errorf("%d Broken after %d requests", broken, b.asked)
		}
	})
}

// The only worker may be restarting.
func TestClient_AGetWaitsForAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &gone{after: 5}
		if a, err := (&Client{Bus: b}).Get(t.Context(), Get{Space: "s", Document: "n"}); err != nil || a.Revision != 7 {
			t.Errorf("%+v, %v, after %d requests", a, err, b.asked)
		}
	})
}

// An error has the same code in Go, over NATS and over HTTP.
func TestServiceError_HasACodeForEachError(t *testing.T) {
	for err, want := range map[error]int{
		model.ErrNoProgram: model.CodeNotFound, model.ErrElsewhere: model.CodeUnavailable, model.ErrNoResponder: model.CodeUnavailable,
		model.ErrStopped: model.CodeUnavailable, model.ErrTooLarge: model.CodeTooLarge, context.DeadlineExceeded: model.CodeFailed,
	} { // any order: the cases are independent
		if got := serviceError(fmt.Errorf("get: %w", err)).Code; got != want {
			t.Errorf("%v has code %d, want %d", err, got, want)
		}
	}
}
