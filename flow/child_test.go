package flow_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/settletest"
)

type parcel struct {
	Order int `json:"order"`
}

type shipped struct {
	Alone string
	All   []string
	Error string
}

// shop has a workflow that ships orders, each in a run of its own, in the space of the order.
func shop(w *flow.Workflows) {
	ship := flow.NewAction[int, string]("ship")
	ship.Perform(w, func(_ context.Context, n int) (string, error) {
		if n == 13 {
			return "", &flow.Error{Type: "Lost", Ancestors: []string{"Late"}, Message: "unlucky"}
		}
		return fmt.Sprintf("parcel %d", n), nil
	})
	flow.Define(w, "shipping", "1", func(b *flow.Builder, in flow.Value[parcel]) flow.Value[string] {
		flow.Sleep(b, time.Hour)
		return flow.Call(b, ship, flow.Map(b, in, func(p parcel) int { return p.Order }))
	})
	flow.Define(w, "shop", "1", func(b *flow.Builder, in flow.Value[struct{}]) flow.Value[shipped] {
		one := flow.Child[string](b, "shipping", flow.Const(b, parcel{1}), flow.WithID(func(p parcel) string { return fmt.Sprintf("ship-%d", p.Order) }))
		parcels := flow.Const(b, []parcel{{2}, {3}})
		ofOrder := flow.InSpace(func(p parcel) string { return fmt.Sprintf("order-%d", p.Order) })
		all := flow.EachChild[string](b, "shipping", parcels, ofOrder)
		lost := flow.TryChild[string](b, "shipping", flow.Const(b, parcel{13}), ofOrder, flow.Retry(2, time.Minute, "Late"))
		late := flow.TryChild[string](b, "shipping", flow.Const(b, parcel{4}), ofOrder, flow.Within(time.Minute))
		out := flow.Map2(b, one, all, func(one string, all []string) shipped { return shipped{Alone: one, All: all} })
		return flow.Map2(b, out, flow.Map2(b, lost, late, func(a, b flow.Outcome[string]) string { return a.Error.Error() + ", " + b.Error.Error() }),
			func(s shipped, text string) shipped { s.Error = text; return s })
	})
}

// The children of a run are part of its test: they live in the spaces of the test, and pass their time in its time.
func TestChild_InTheTestKit(t *testing.T) {
	t.Parallel()
	p := settle.NewProgram("shop")
	w := flow.New(p)
	shop(w)
	if err := w.Register(); err != nil {
		t.Fatal(err)
	}
	world := settletest.New(t, p)
	s := world.Space("shop")
	s.Call("workflow-start", map[string]any{"workflow": "shop", "run": "r"})
	s.Expect("run_ship-1", "running", "state")
	for range 8 {
		world.Advance(30 * time.Minute)
		world.Restart()
		world.Perform()
	}
	s.Expect("run_r", "running", "state")
	world.Advance(time.Minute)
	for range 4 {
		world.Advance(30 * time.Minute)
		world.Perform()
	}
	s.Expect("run_r", shipped{Alone: "parcel 1", All: []string{"parcel 2", "parcel 3"}, Error: "Lost: unlucky, TimeoutError: child shipping has not ended in time"}, "result")
	s.Expect("run_ship-1", "shop", "parent", "space")
	if n := world.Space("order-13").Get("runs").Len(); n != 2 {
		t.Errorf("%d attempts", n)
	}
	for _, id := range world.Space("order-4").Get("runs").Keys() {
		world.Space("order-4").Expect("run_"+id, "cancelled", "state")
	}
}

func TestChild_MistakesAreReportedByRegister(t *testing.T) {
	t.Parallel()
	w := flow.New(settle.NewProgram("p"))
	flow.Define(w, "w", "1", func(b *flow.Builder, in flow.Value[parcel]) flow.Value[int] { return flow.Child[int](b, "none", in) })
	if err := w.Register(); err == nil || !strings.Contains(err.Error(), `workflow w starts runs of workflow "none", and this program has w`) {
		t.Error(err)
	}
	w = flow.New(settle.NewProgram("p"))
	flow.Define(w, "w", "1", func(b *flow.Builder, in flow.Value[parcel]) flow.Value[int] {
		return flow.Child[int](b, "w", in, flow.WithID(func(parcel) string { return "x" }), flow.Retry(2, time.Second))
	})
	if err := w.Register(); err == nil || !strings.Contains(err.Error(), "workflow w: child w has Retry and WithID") {
		t.Error(err)
	}
}
