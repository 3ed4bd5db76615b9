package ordered_test

import (
	"context"
	"testing"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/leaks"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/ordered"
)

func TestMain(m *testing.M) { leaks.VerifyTestMain(m) }

// world is a worldtest.World whose processes serve keys.
type world struct{ *worldtest.World }

func newWorld(t *testing.T, partitions int) *world {
	return newWorldOf(t, membus.Config{Partitions: partitions, MaxPayload: 256 << 10})
}

func newWorldOf(t *testing.T, cfg membus.Config) *world { return &world{worldtest.New(t, cfg)} }

// serving is a process that runs Serve.
type serving struct {
	name   string
	bus    *membus.Bus
	cancel context.CancelFunc
	ended  chan error
}

// serve starts a process that runs Serve.
func (w *world) serve(cfg ordered.Config, hook membus.Hook) *serving {
	w.Helper()
	b := w.Connect(cfg.Name)
	b.Inject(hook)
	return w.serveOn(b, b, cfg)
}

// serveOn is serve with a bus that wraps the one in memory.
func (w *world) serveOn(on ordered.Bus, b *membus.Bus, cfg ordered.Config) *serving {
	w.Helper()
	if cfg.Handlers == nil {
		cfg.Handlers = accounts()
	}
	if cfg.Logger == nil {
		cfg.Logger = w.Logger()
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &serving{name: cfg.Name, bus: b, cancel: cancel, ended: make(chan error, 1)}
	go func() { p.ended <- ordered.Serve(ctx, on, cfg) }() // ends with ctx
	w.Cleanup(p.crash)
	return p
}

// crash ends the process as SIGKILL would.
func (p *serving) crash() {
	p.bus.Kill()
	p.cancel()
}

// stop ends the process as SIGTERM would.
func (w *world) stop(p *serving) {
	w.Helper()
	p.cancel()
	if err := <-p.ended; err != nil {
		w.Errorf("serve: %v", err)
	}
	p.bus.Close()
}

func (w *world) wantDoc(key, doc, want string) {
	w.Helper()
	if got := w.Doc(key, doc); got != want {
		w.Errorf("%s/%s is %s, want %s", key, doc, got, want)
	}
}

// payment is an event of an account.
type payment struct {
	Cents int64  `json:"cents"`
	To    string `json:"to,omitzero"`
}

// accounts are handlers that reveal order and repetition: the list of handled events depends on both, and the
// balance on repetition.
func accounts() map[string]ordered.Handler {
	pay := func(tx *ordered.Tx, p payment) (int64, error) {
		var balance int64
		if err := tx.Read("balance", &balance); err != nil {
			return 0, err
		}
		var seen []string
		if err := tx.Read("seen", &seen); err != nil {
			return 0, err
		}
		balance += p.Cents
		tx.Set("balance", balance)
		tx.Set("seen", append(seen, tx.Event().ID))
		if p.To != "" {
			tx.Send(ordered.To(p.To), "pay", payment{Cents: p.Cents})
		}
		return balance, nil
	}
	return map[string]ordered.Handler{"pay": ordered.On(pay)}
}
