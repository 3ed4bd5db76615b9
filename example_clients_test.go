package settle_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
)

// deployment starts one for an example, with its data in a directory of its own.
func deployment(p *settle.Program) (d *settle.Deployment, end func()) {
	dir, err := os.MkdirTemp("", "settle-example-")
	if err != nil {
		log.Fatal(err)
	}
	d, err = settle.Start(context.Background(), settle.Config{Programs: settle.Always(p), Server: bus.ServerConfig{StoreDir: dir}})
	if err != nil {
		log.Fatal(err)
	}
	return d, func() {
		_ = d.Stop(context.Background())
		_ = os.RemoveAll(dir)
	}
}

// Clients use the names that the program is made of: they send, wait for results, and read what
// is derived, which is brought up to date for them.
func ExampleStream_Call() {
	balance := settle.NewCell[int]("balance")
	rating := settle.NewDerived[string]("rating")
	withdraw := settle.NewStream[int, int]("withdraw")
	p := settle.NewProgram("bank")
	withdraw.Handle(p, func(tx *settle.Tx, amount int) (int, error) {
		if balance.Get(tx) < amount {
			return 0, errors.New("there is not enough on the account")
		}
		balance.Update(tx, func(b *int) { *b -= amount })
		return balance.Get(tx), nil
	})
	rating.Compute(p, func(v *settle.View) (string, error) {
		if balance.Get(v) == 0 {
			return "poor", nil
		}
		return "rich", nil
	})
	d, end := deployment(p)
	defer end()
	ctx, client := context.Background(), d.Client()

	_, err := withdraw.Call(ctx, client, "ann", "w-1", 10)
	var no *settle.NotHandledError
	fmt.Println(errors.As(err, &no), no.Receipt.Outcome)
	fmt.Println(err)

	r, err := rating.Fetch(ctx, client, "ann")
	fmt.Println(r, err)
	// Output:
	// true failed
	// event w-1 to ann/withdraw failed: there is not enough on the account
	// poor <nil>
}

// Posted is stored: the event will be handled once, however often it is posted.
func ExampleStream_Post() {
	visits := settle.NewCell[int]("visits")
	visit := settle.NewStream[settle.None, settle.None]("visit")
	p := settle.NewProgram("site")
	visit.Handle(p, func(tx *settle.Tx, _ settle.None) (settle.None, error) {
		visits.Update(tx, func(n *int) { *n++ })
		return settle.None{}, nil
	})
	d, end := deployment(p)
	defer end()
	ctx, client := context.Background(), d.Client()

	for range 3 {
		sent, err := visit.Post(ctx, client, "home", "visitor-1", settle.None{})
		fmt.Println(sent.Duplicate, err)
	}
	if _, err := client.Await(ctx, "home", "visit", "visitor-1"); err != nil {
		log.Fatal(err)
	}
	n, err := visits.Fetch(ctx, client, "home")
	fmt.Println(n, err)
	// Output:
	// false <nil>
	// true <nil>
	// true <nil>
	// 1 <nil>
}
