package test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/flow"
)

const ordersWorkflow = `
def run(orders, rounds):
    done = []
    for n in range(rounds):
        parcels = parallel([child("shipping", {"order": o, "round": n}, space = "order-" + str(o)) for o in range(orders)])
        done.append(parcels)
    plain = attempt(child("shipping", {"order": 0, "round": 0}, space = "plain"))
    other = attempt(child("none", {}, space = "order-0"))
    return [done, plain.error.type, plain.error.message, other.error.type]

workflow("orders", run)
`

const shippingWorkflow = `
load("actions", "ship")
def run(order, round):
    first = ship(order = order, round = round, part = 1)
    second = ship(order = order, round = round, part = 2)
    return [first, second]

workflow("shipping", run)
`

const waitingWorkflow = `
def run(depth):
    if depth == 0:
        return wait("never")
    return child("waiting", {"depth": depth - 1}, space = "deep-" + str(depth - 1), id = "waits")

workflow("waiting", run)
`

type shipment struct {
	Order int `json:"order"`
	Round int `json:"round"`
	Part  int `json:"part"`
}

// shippingPort performs shipments, and counts the attempts of each.
type shippingPort struct {
	mu       sync.Mutex
	attempts map[shipment]int
	some     chan struct{} // closed when some have begun
	healed   chan struct{} // closed when no more workers are killed
}

func (p *shippingPort) ship(ctx context.Context, s shipment) (int, error) {
	p.mu.Lock()
	p.attempts[s]++
	first := p.attempts[s] == 1
	if first && len(p.attempts) == 3 {
		close(p.some)
	}
	p.mu.Unlock()
	if first && s.Order%2 == 0 {
		select {
		case <-ctx.Done(): // the worker dies before the end
			return 0, ctx.Err()
		case <-p.healed:
		}
	}
	return 100*s.Round + 10*s.Order + s.Part, nil
}

// Workers are killed while a run waits for children in other spaces. Each child is one run, whose result arrives once; a
// start that is refused fails its call; and a cancellation passes through three spaces.
func TestChildren_OfOtherSpacesOutliveTheirWorkers(t *testing.T) {
	t.Parallel()
	at := &shippingPort{attempts: map[shipment]int{}, some: make(chan struct{}), healed: make(chan struct{})}
	shop := settle.NewProgram("shop")
	w := flow.New(shop)
	for _, src := range []string{ordersWorkflow, shippingWorkflow, waitingWorkflow} {
		w.Starlark("shop.star", []byte(src))
	}
	flow.Perform(w, "ship", at.ship)
	if err := w.Register(); err != nil {
		t.Fatal(err)
	}
	plain := settle.NewProgram("plain")
	programs := func(space string) *settle.Program {
		if space == "plain" {
			return plain
		}
		return shop
	}
	d := deploy(t, settle.Config{Programs: programs, Workers: 2, Bus: bus.Config{Partitions: 4}})
	ctx := testContext(t)
	in := func(space string) flow.Runs { return flow.In(d.Client().Space(space)) }
	const orders, rounds = 4, 3
	if _, err := in("shop").Start(ctx, "orders", "o", map[string]int{"orders": orders, "rounds": rounds}); err != nil {
		t.Fatal(err)
	}
	if _, err := in("shop").Start(ctx, "waiting", "deep", map[string]int{"depth": 2}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-at.some:
	case <-ctx.Done():
		t.Fatal("nothing is performed")
	}
	for range 2 {
		d.KillWorker(d.Workers()[0])
		if _, err := d.AddWorker(ctx); err != nil {
			t.Fatal(err)
		}
	}
	close(at.healed)

	got, err := flow.Result[[]any](ctx, in("shop"), "o")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for n := range rounds {
		var round []string
		for o := range orders {
			round = append(round, fmt.Sprintf("[%d %d]", 100*n+10*o+1, 100*n+10*o+2))
		}
		want = append(want, "["+strings.Join(round, " ")+"]")
	}
	if text := fmt.Sprint(got); !strings.HasPrefix(text, "[["+strings.Join(want, " ")+"] StartError space plain has not taken the start: ") || !strings.HasSuffix(text, " UnknownWorkflowError]") {
		t.Error(text)
	}
	for o := range orders {
		all, err := in(fmt.Sprint("order-", o)).List(ctx)
		if err != nil || len(all) != rounds {
			t.Errorf("order %d: %d runs, %v", o, len(all), err)
		}
		for id, s := range all {
			if s.State != flow.Done || s.Parent == nil || s.Parent.String() != "shop/o" {
				t.Errorf("%s: %v", id, s)
			}
		}
	}
	if s, err := in("shop").Status(ctx, "o"); err != nil || len(s.Children) != orders*rounds+2 {
		t.Error(s, err)
	}

	if err := in("shop").Cancel(ctx, "deep", "enough"); err != nil {
		t.Fatal(err)
	}
	for _, space := range []string{"deep-1", "deep-0"} {
		s, err := in(space).Wait(ctx, "waits")
		if err != nil || s.State != flow.Cancelled {
			t.Errorf("%s: %v %v", space, s, err)
		}
	}
}
