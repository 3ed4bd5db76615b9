package settle_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
)

// A retry after the horizon is an error at once, and nothing is stored.
func TestHorizon_AClientRefusesAnIDThatTheLaneWouldRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOf(t, membus.Config{Partitions: 2, Horizon: time.Hour})
		w.worker("w1")
		c, _ := w.client("c", nil)
		e := add("s", settle.TimedID(time.Now(), "order-17").String())
		if rc, err := c.Call(t.Context(), e); err != nil || rc.Outcome != model.Handled {
			t.Fatalf("%+v, %v", rc, err)
		}
		time.Sleep(time.Hour + time.Second)
		end := w.Server.LaneEnd(model.PartitionOf("s", 2))
		for what, send := range map[string]func() error{
			"Send":   func() error { _, err := c.Send(t.Context(), e); return err },
			"Call":   func() error { _, err := c.Call(t.Context(), e); return err },
			"Sender": func() error { return c.Sender().Send(t.Context(), e, nil) },
		} {
			var expired *model.ExpiredError
			err := send()
			if !errors.As(err, &expired) || expired.ID != e.ID.String() || expired.Horizon != time.Hour {
				t.Errorf("%s: %v, want an *ExpiredError", what, err)
				continue
			}
			for _, part := range []string{"send to s/add", e.ID.String(), "1h0m1s ago", "under a new id"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s: %v does not say %q", what, err, part)
				}
			}
		}
		if now := w.Server.LaneEnd(model.PartitionOf("s", 2)); now != end {
			t.Errorf("the lane has grown from %d to %d", end, now)
		}
	})
}

func TestNewID_IsTimedAndTakenOnce(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := settle.NewID().String()
		made, timed := model.TimeOfEventID(id)
		if err := model.CheckEventID(id); err != nil || !timed || time.Since(made) > time.Hour {
			t.Fatalf("%s: %v, made at %v", id, err, made)
		}
		if seen[id] {
			t.Fatalf("%s was made twice", id)
		}
		seen[id] = true
	}
}
