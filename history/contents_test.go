package history_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// blank shows an empty log in place of one with commits.
type blank struct {
	port.Client
	reads int
}

func (*blank) Epoch() uint64 { return 0 }

func (*blank) Head(context.Context, string) (uint64, error) { return 1, nil }

func (*blank) LoadState(context.Context, string) (model.SpaceState, error) {
	return model.SpaceState{}, nil
}

func (b *blank) ReadLog(context.Context, string, uint64, int) ([]model.LogEntry, error) {
	b.reads++
	return nil, nil
}

// A replica that stays behind is read about once a second, until the context ends.
func TestReadContents_ReadsALaggingReplicaAtGrowingIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		b := &blank{}
		if _, err := history.ReadContents(ctx, b, "s"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v, want that of the context", err)
		}
		if b.reads < 60 || b.reads > 80 {
			t.Errorf("the log was read %d times within a minute", b.reads)
		}
	})
}
