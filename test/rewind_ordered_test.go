package test

import (
	"context"
	"testing"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/ordered"
)

// counters returns a server that can go back, ordered handlers that count on it, and a watch of the count.
func counters(t *testing.T) (m *timeMachine, d *deployment, count *watched) {
	t.Helper()
	m = startTimeMachine(t)
	cfg := m.config()
	cfg.Workers = -1
	d = deploy(t, cfg)
	b := connect(t, d, func(c *bus.Config) { c.Name = "worker/ordered" })
	t.Cleanup(b.Close)
	depart := func(tx *ordered.Tx, _ map[string]string) (int, error) {
		var n int
		if err := tx.Read("departed", &n); err != nil {
			return 0, err
		}
		tx.Set("departed", n+1)
		return n + 1, nil
	}
	ctx, cancel := context.WithCancel(testContext(t))
	served := make(chan error, 1)
	go func() { // ends with ctx
		served <- ordered.Serve(ctx, b, ordered.Config{Name: "o1", Handlers: map[string]ordered.Handler{"depart": ordered.On(depart)}})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return m, d, watchAsGo(t, d.Client(), "a", "departed")
}

// Events sent to ordered handlers after their store went back are handled once, too.
func TestRewind_OrderedHandlersGoOnFromWhatIsThere(t *testing.T) {
	t.Parallel()
	m, d, count := counters(t)
	c := d.Client()
	sendAll(t, c, 1, 8)
	count.until("8")
	old := m.copy()
	sendAll(t, c, 9, 12)
	count.until("12")
	m.goBack(old)
	sendAll(t, c, 13, 15)
	count.until("11")
	sendAll(t, c, 9, 12) // they are lost, so they are new
	count.until("15")
	once(t, readLog(t, d.Bus(), "a"))
}

// So are events sent after only the lanes have lost their ends, and events handled before are not
// handled again.
func TestRewind_OrderedHandlersAskTheReceiptsWhatOfALaneIsHandled(t *testing.T) {
	t.Parallel()
	m, d, count := counters(t)
	c := d.Client()
	sendAll(t, c, 1, 8)
	count.until("8")
	old := m.copy()
	sendAll(t, c, 9, 12)
	count.until("12")
	m.goBackOnly(old, "_LANE_")
	sendAll(t, c, 13, 18) // two more than were lost
	count.until("18")
	sendAll(t, c, 9, 19) // one of them is new
	count.until("19")
	once(t, readLog(t, d.Bus(), "a"))
}
