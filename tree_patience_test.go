package settle_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/worker"
)

// deafBus has a coordinator that never answers.
type deafBus struct{ worker.Bus }

func (deafBus) Ask(ctx context.Context, _ string, _ []byte) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A coordinator that hangs does not use up the time of who asks it: the client reads the
// logs itself.
func TestATreeIsReadThoughACoordinatorHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := membus.NewServer(membus.Config{Partitions: 1}).Connect("c")
		defer b.Close()
		c, err := settle.NewClient(deafBus{b}, settle.ClientConfig{ID: "c"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Send(t.Context(), settle.Outgoing{Space: "s", Stream: "x", ID: "e"}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := c.Tree(ctx, settle.TreeQuery{Event: "e"}); err != nil {
			t.Error(err)
		}
		if _, err := c.Tree(t.Context(), settle.TreeQuery{Event: "e"}); err != nil {
			t.Errorf("without a deadline: %v", err)
		}
	})
}
