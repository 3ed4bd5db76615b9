package test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
)

// provider charges cards, and counts the requests for each key.
type provider struct {
	mu    sync.Mutex
	asked map[string]int
	some  chan struct{} // closed when some have been asked for
	// healed is closed when no more workers are killed.
	healed chan struct{}
}

func (p *provider) charge(ctx context.Context, key string, in int) (int, error) {
	p.mu.Lock()
	p.asked[key]++
	first := p.asked[key] == 1
	if len(p.asked) == 20 && first {
		close(p.some)
	}
	p.mu.Unlock()
	if first && len(key)%2 == 0 {
		select {
		case <-ctx.Done(): // the worker dies before the provider has answered
			return 0, ctx.Err()
		case <-p.healed:
		}
	}
	return in, nil
}

// Workers are killed while they perform tasks. Tasks started by a transaction in the log are performed,
// tasks started by a failed one are not, and Done is called once for each task.
func TestOutbox_IsPerformedThoughWorkersAreKilled(t *testing.T) {
	t.Parallel()
	out := &provider{asked: map[string]int{}, some: make(chan struct{}), healed: make(chan struct{})}
	charge := settle.NewAction[int, int]("charge")
	buy := settle.NewStream[string]("buy")
	paid := settle.NewRows[int]("paid")
	p := settle.NewProgram("shop")
	buy.Handle(p, func(tx *settle.Tx, key string) error {
		charge.Start(tx, key, 1)
		if key[0] == 'x' {
			return fmt.Errorf("%s is out of stock", key)
		}
		return nil
	})
	charge.Perform(p, out.charge, settle.Timeout(-1), settle.AtATime(100))
	charge.Done(p, func(tx *settle.Tx, t settle.Task[int, int]) error {
		paid.Update(tx, t.Key, func(n *int) { *n += t.Out })
		return nil
	})
	d := deploy(t, settle.Config{Programs: settle.Always(p), Workers: 2, Bus: bus.Config{Partitions: 2}})
	ctx := testContext(t)
	const spaces, orders = 4, 10
	for s := range spaces {
		for i := range orders {
			for _, key := range []string{fmt.Sprintf("s%d-%c", s, 'a'+i), fmt.Sprintf("s%d-%c-", s, 'a'+i), fmt.Sprintf("x%d-%c", s, 'a'+i)} {
				if _, err := buy.Post(ctx, d.Client().Space(fmt.Sprint("shop-", s)), settle.ID(key), key); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	select {
	case <-out.some:
	case <-ctx.Done():
		t.Fatal("nothing is performed")
	}
	for range 2 {
		d.KillWorker(d.Workers()[0])
		if _, err := d.AddWorker(ctx); err != nil {
			t.Fatal(err)
		}
	}
	close(out.healed)
	for s := range spaces {
		var all map[string]int
		for rows, err := range paid.Watch(ctx, d.Client().Space(fmt.Sprint("shop-", s))) {
			if err != nil {
				t.Fatal(err)
			}
			if all = rows.Value; len(all) == 2*orders {
				break
			}
		}
		if len(all) != 2*orders {
			t.Fatalf("shop-%d: not all tasks have ended: %v", s, all)
		}
		for key, n := range all {
			if n != 1 {
				t.Errorf("Done was called %d times for %s", n, key)
			}
		}
	}
	out.mu.Lock()
	defer out.mu.Unlock()
	if n := len(out.asked); n != spaces*2*orders {
		t.Errorf("%d keys were performed, want %d", n, spaces*2*orders)
	}
	for key := range out.asked {
		if key[0] == 'x' {
			t.Errorf("%s was performed, and its transaction has failed", key)
		}
	}
}
