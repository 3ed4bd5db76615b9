package serverclock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/model"
)

type answer struct {
	now time.Time
	err error
}

func (a answer) LogState(context.Context, int, time.Duration) (model.LogState, error) {
	return model.LogState{Now: a.now}, a.err
}

// The clock continues from the server's time; a server that cannot be reached changes nothing.
func TestClock_GoesOnFromWhatTheServerHasSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Clock
		if got := c.Millis(); got != 0 {
			t.Errorf("it is %d before anything is known", got)
		}
		server := time.Now().Add(-10 * time.Minute)
		if err := c.Read(t.Context(), answer{now: server}, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond)
		why := errors.New("no server")
		if err := c.Read(t.Context(), answer{err: why}, 0); !errors.Is(err, why) {
			t.Errorf("the error is %v", err)
		}
		if got, want := c.Millis(), uint64(server.UnixMilli())+1500; got != want {
			t.Errorf("it is %d, want %d", got, want)
		}
	})
}
