package ordered_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/leaks"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/ordered"
)

func TestMain(m *testing.M) { leaks.VerifyTestMain(m) }

// world is a deployment on a bus in memory, in the virtual time of one test.
type world struct {
	*testing.T
	server *membus.Server
	client *membus.Bus
}

func newWorld(t *testing.T, partitions int) *world {
	return newWorldOf(t, membus.Config{Partitions: partitions, MaxPayload: 256 << 10})
}

func newWorldOf(t *testing.T, cfg membus.Config) *world {
	s := membus.NewServer(cfg)
	w := &world{T: t, server: s, client: s.Connect("client")}
	t.Cleanup(w.client.Close)
	return w
}

// serving is a process that serves.
type serving struct {
	name   string
	bus    *membus.Bus
	cancel context.CancelFunc
	ended  chan error
}

// serve starts a process that serves.
func (w *world) serve(cfg ordered.Config, hook membus.Hook) *serving {
	w.Helper()
	b := w.server.Connect(cfg.Name)
	b.Inject(hook)
	return w.serveOn(b, b, cfg)
}

// serveOn starts one on a bus that stands around the one in memory.
func (w *world) serveOn(on ordered.Bus, b *membus.Bus, cfg ordered.Config) *serving {
	w.Helper()
	if cfg.Handlers == nil {
		cfg.Handlers = accounts()
	}
	if testing.Verbose() && cfg.Logger == nil {
		cfg.Logger = slog.Default()
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

// stop ends it as SIGTERM would.
func (w *world) stop(p *serving) {
	w.Helper()
	p.cancel()
	if err := <-p.ended; err != nil {
		w.Errorf("serve: %v", err)
	}
	p.bus.Close()
}

func (w *world) pass(d time.Duration) { _ = pause.For(context.Background(), d) }

func (w *world) eventually(what string, ok func() bool) {
	w.Helper()
	for range 6000 {
		if ok() {
			return
		}
		w.pass(10 * time.Millisecond)
	}
	w.Fatalf("a minute later it is still not so that %s", what)
}

// send stores an event.
func (w *world) send(key, stream, id string, payload string) model.SendResult {
	w.Helper()
	return w.sendMessage(model.Message{Space: key, Stream: stream, ID: id, Payload: []byte(payload)})
}

func (w *world) sendMessage(m model.Message) model.SendResult {
	w.Helper()
	type answer struct {
		r   model.SendResult
		err error
	}
	done := make(chan answer, 1)
	w.client.Send(m, func(r model.SendResult, err error) { done <- answer{r, err} })
	a := <-done
	if a.err != nil {
		w.Fatalf("send %s: %v", m.ID, a.err)
	}
	return a.r
}

// receipts are those of a key in the order of the log.
func (w *world) receipts(key string) (list []*model.Receipt) {
	w.Helper()
	for _, e := range w.server.History(key) {
		c, err := model.DecodeCommit(e.Data)
		if err != nil {
			w.Fatal(err)
		}
		for i := range c.Txs {
			list = append(list, c.Txs[i].Receipt)
		}
	}
	return list
}

func (w *world) takeovers(key string) (by []string) {
	for _, e := range w.server.History(key) {
		if c, err := model.DecodeCommit(e.Data); err == nil && c.Takeover {
			by = append(by, c.Runtime)
		}
	}
	return by
}

func (w *world) eventuallyEnded(key string, n int) {
	w.Helper()
	w.eventually(fmt.Sprintf("%d events of %s have ended", n, key), func() bool { return len(w.receipts(key)) >= n })
}

// wantOrder checks that exactly these events have ended, once each and in this order.
func (w *world) wantOrder(key string, ids ...string) {
	w.Helper()
	var got []string
	for _, rc := range w.receipts(key) {
		got = append(got, rc.Event)
	}
	if fmt.Sprint(got) != fmt.Sprint(ids) {
		w.Errorf("%s has handled %v, want %v", key, got, ids)
	}
}

// doc is a document as the log has it.
func (w *world) doc(key, doc string) string {
	w.Helper()
	d, err := history.Read(context.Background(), w.client, key, doc)
	if err != nil {
		w.Fatal(err)
	}
	return d.Value.String()
}

func (w *world) wantDoc(key, doc, want string) {
	w.Helper()
	if got := w.doc(key, doc); got != want {
		w.Errorf("%s/%s is %s, want %s", key, doc, got, want)
	}
}

// payment is an event of an account.
type payment struct {
	Cents int64  `json:"cents"`
	To    string `json:"to,omitzero"`
}

// accounts are handlers that show order and repetition: the list of what was handled depends on
// both, and the balance on repetition.
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
			tx.Send(p.To, "pay", payment{Cents: p.Cents})
		}
		return balance, nil
	}
	return map[string]ordered.Handler{"pay": ordered.On(pay)}
}
