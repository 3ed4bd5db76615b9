package cart_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/examples/cart"
	"github.com/settlehq/settle/worker"
)

// dying is a payment service in whose first call the worker that makes it dies: before it has
// charged, or after.
type dying struct {
	after bool
	die   chan struct{}

	mu      sync.Mutex
	keys    []string // of the calls
	charged map[string]int64
}

func (d *dying) charge(ctx context.Context, key string, p cart.Payment) (cart.Paid, error) {
	if d.call(key) == 1 {
		if d.after {
			d.book(key, p.Amount)
		}
		close(d.die)
		<-ctx.Done() // the answer does not come
		return cart.Paid{}, ctx.Err()
	}
	d.book(key, p.Amount)
	return cart.Paid{Receipt: "r-" + key}, nil
}

func (d *dying) call(key string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keys = append(d.keys, key)
	return len(d.keys)
}

// book charges once for a key, and adds up if it is given two.
func (d *dying) book(key string, amount int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.charged[key] = amount
}

// TestACrashBetweenCommitAndPaymentPaysOnce, with a real server, and a worker that is killed.
func TestACrashBetweenCommitAndPaymentPaysOnce(t *testing.T) {
	for name, after := range map[string]bool{"before it was charged": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := &dying{after: after, die: make(chan struct{}), charged: map[string]int64{}}
			d, err := settle.Start(t.Context(), settle.Config{
				Programs: settle.Always(cart.Program(service.charge)), Options: worker.Options{Heartbeat: 100 * time.Millisecond},
				Server: embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Stop(context.Background()) })
			if err := cart.Put.Call(t.Context(), d.Client().Space("alice"), settle.ID("p1"), cart.Item{SKU: "tea", Quantity: 2, Price: 5_00}); err != nil {
				t.Fatal(err)
			}
			if o, err := cart.Checkout.Call(t.Context(), d.Client().Space("alice"), settle.ID("c1"), struct{}{}); err != nil || o.Amount != 10_00 {
				t.Fatalf("%+v: %v", o, err)
			}
			<-service.die
			d.KillWorker(d.Workers()[0])
			if _, err := d.AddWorker(t.Context()); err != nil {
				t.Fatal(err)
			}
			await(t, d.Client(), cart.Order{Number: 1, State: cart.Settled, Amount: 10_00, Note: "r-alice-1"})
			service.mu.Lock()
			defer service.mu.Unlock()
			if len(service.keys) != 2 || service.keys[0] != service.keys[1] {
				t.Errorf("called with the keys %v, want the same one twice", service.keys)
			}
			if len(service.charged) != 1 || service.charged["alice-1"] != 10_00 {
				t.Errorf("charged %v", service.charged)
			}
		})
	}
}

// await waits until the order is paid.
func await(t *testing.T, c *settle.Client, want cart.Order) {
	t.Helper()
	var got cart.Order
	for o, err := range cart.Last.Watch(t.Context(), c.Space("alice")) {
		if err != nil {
			t.Fatal(err)
		}
		if got = o.Value; got.State == want.State {
			break
		}
	}
	if got != want {
		t.Errorf("the order is %+v, want %+v", got, want)
	}
}
