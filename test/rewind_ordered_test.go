package test

import (
	"context"
	"testing"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/ordered"
)

// What is sent to ordered handlers after their store went back is handled once, too.
func TestRewind_OrderedHandlersGoOnFromWhatIsThere(t *testing.T) {
	m := startTimeMachine(t)
	cfg := m.config()
	cfg.Workers = -1
	d := deploy(t, cfg)
	b := connect(t, d, func(c *bus.Config) { c.Name = "worker/ordered" })
	t.Cleanup(b.Close)
	count := func(tx *ordered.Tx, _ map[string]string) (int, error) {
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
		served <- ordered.Serve(ctx, b, ordered.Config{Name: "o1", Handlers: map[string]ordered.Handler{"depart": ordered.On(count)}})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	c := d.Client()
	w := watchAsGo(t, c, "a", "departed")
	sendAll(t, c, 1, 8)
	w.until("8")
	old := m.copy()
	sendAll(t, c, 9, 12)
	w.until("12")
	m.goBack(old)
	sendAll(t, c, 13, 15)
	w.until("11")
	sendAll(t, c, 9, 12) // they are lost, so they are new
	w.until("15")
	once(t, readLog(t, d.Bus(), "a"))
}
