package history

import (
	"context"
	"errors"
	"testing"

	"github.com/settlehq/settle/port"
)

// epochs is a client of a store that has never gone back.
type epochs struct{ port.Client }

func (epochs) Epoch() uint64 { return 1 }

// A search of a log that another search reads waits no longer than its context, and reads nothing then.
func TestSharedLog_WaitsNoLongerThanItsContext(t *testing.T) {
	s := shareLogs(epochs{})
	l := s.of("s")
	if err := l.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	none := func() (uint64, error) { t.Error("the log is read"); return 0, nil }
	if _, err := l.headOf(ctx, 1, none); !errors.Is(err, context.Canceled) {
		t.Errorf("the head: %v", err)
	}
	if _, err := s.page(ctx, "s", 0, 1, func() ([]*logged, error) { _, err := none(); return nil, err }); !errors.Is(err, context.Canceled) {
		t.Errorf("the commits: %v", err)
	}
	l.end()
	if head, err := l.headOf(t.Context(), 1, func() (uint64, error) { return 7, nil }); head != 7 || err != nil {
		t.Errorf("afterwards the head is %d, %v", head, err)
	}
}
