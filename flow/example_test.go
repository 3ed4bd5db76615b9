package flow_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/remote"
)

const orderSource = `
load("actions", "price", "charge")

def run(items):
    prices = parallel([price(item = i) for i in items])
    paid = attempt(retry(charge(cents = sum(prices)), attempts = 3, on = ["Offline"]))
    if paid.failed("Declined"):
        return {"state": "declined"}
    return {"state": "paid", "receipt": paid.value}

workflow("order", run)
`

type priceOf struct {
	Item string `json:"item"`
}

type charge struct {
	Cents int `json:"cents"`
}

// A workflow in Starlark whose actions are functions in Go.
func Example() {
	p := settle.NewProgram("shop")
	w := flow.New(p)
	w.Starlark("order.star", []byte(orderSource))
	flow.Perform(w, "price", func(_ context.Context, in priceOf) (int, error) {
		return 100 * len(in.Item), nil
	})
	flow.Perform(w, "charge", func(ctx context.Context, in charge) (string, error) {
		if in.Cents > 1000 {
			return "", &flow.Error{Type: "Declined", Message: "no money"}
		}
		return "receipt of " + flow.AttemptOf(ctx).Key, nil
	})
	if err := w.Register(); err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	dir, err := os.MkdirTemp("", "settle")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	d, err := settle.Start(ctx, settle.Config{Programs: settle.Always(p), Server: embedded.Config{StoreDir: dir}})
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop(ctx)

	runs := flow.In(d.Client().Space("shop"))
	for id, items := range map[string][]string{"order-1": {"tea", "rice"}, "order-2": {"a very long name"}} {
		if _, err := runs.Start(ctx, "order", id, map[string]any{"items": items}); err != nil {
			log.Fatal(err)
		}
	}
	for _, id := range []string{"order-1", "order-2"} {
		result, err := flow.Result[map[string]string](ctx, runs, id)
		fmt.Println(id, result["state"], result["receipt"], err)
	}
	// Output:
	// order-1 paid receipt of shop/order-1/2/0 <nil>
	// order-2 declined  <nil>
}

// An action that other processes perform has terms in place of a function.
func ExampleWorkflows_External() {
	p := settle.NewProgram("shop")
	w := flow.New(p)
	w.Starlark("ship.star", []byte("load(\"actions\", \"ship\")\ndef run(item):\n    return ship(item = item, host = \"eu1\")\nworkflow(\"ship\", run)\n"))
	w.External("ship", settle.Timeout(time.Minute), remote.QueueBy("host"))
	if err := w.Register(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(w.Graphs()))
	// Output: 1
}
