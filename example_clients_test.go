package settle_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
)

// deployment starts one for an example, with its data in a temporary directory.
func deployment(p *settle.Program) (d *settle.Deployment, end func()) {
	dir, err := os.MkdirTemp("", "settle-example-")
	if err != nil {
		log.Fatal(err)
	}
	d, err = settle.Start(context.Background(), settle.Config{Programs: settle.Always(p), Server: embedded.Config{StoreDir: dir, Listen: "127.0.0.1:0"}})
	if err != nil {
		log.Fatal(err)
	}
	return d, func() {
		_ = d.Stop(context.Background())
		_ = os.RemoveAll(dir)
	}
}

// Clients use the names of the program: they send, wait for results, and read derived documents,
// which are brought up to date for them.
func ExampleRequest_Call() {
	balance := settle.NewCell[int]("balance")
	rating := settle.NewDerived[string]("rating")
	withdraw := settle.NewRequest[int, int]("withdraw")
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
	ctx, ann := context.Background(), d.Client().Space("ann")

	_, err := withdraw.Call(ctx, ann, settle.ID("w-1"), 10)
	var no *settle.NotHandledError
	fmt.Println(errors.As(err, &no), no.Receipt.Outcome)
	fmt.Println(err)

	r, err := rating.Fetch(ctx, ann)
	fmt.Println(r, err)
	// Output:
	// true failed
	// event w-1 to ann/withdraw failed: there is not enough on the account
	// poor <nil>
}

// The document that the sign at a gate shows, and the event that changes it. Program and client
// share the names.
var (
	gateText = settle.NewCell[string]("text")
	gateSays = settle.NewDerived[string]("says")
	announce = settle.NewRequest[string, int]("announce")
)

func gates() *settle.Program {
	p := settle.NewProgram("gates")
	announce.Handle(p, func(tx *settle.Tx, text string) (int, error) {
		gateText.Set(tx, text)
		return len(text), nil
	})
	gateSays.Compute(p, func(v *settle.View) (string, error) { return "** " + gateText.Get(v) + " **", nil })
	return p
}

// sign is a complete client process: it connects to the servers of a running deployment, sends an
// event, and watches.
func sign(ctx context.Context, url string) error {
	b, err := bus.Connect(ctx, bus.Config{URL: url, Name: "client/sign-1"}) // no URL: NATS_URL, or the context
	if err != nil {
		return err
	}
	defer b.Close()
	client, err := settle.NewClient(b, settle.ClientConfig{ID: "sign-1"})
	if err != nil {
		return err
	}
	defer client.Close()

	gate := client.Space("gate-7")
	n, err := announce.Call(ctx, gate, settle.ID("call-1"), "boarding")
	if err != nil {
		return err
	}
	fmt.Println(n, "letters")

	for says, err := range gateSays.Watch(ctx, gate) { // until ctx ends
		if err != nil {
			return err
		}
		fmt.Println(says.Value)
		break // a real sign continues
	}
	return nil
}

// A client in a process of its own needs the addresses of the servers, a name, and only the names
// of the program.
func ExampleNewClient() {
	d, end := deployment(gates())
	defer end()
	if err := sign(context.Background(), d.Server().ClientURL()); err != nil {
		log.Fatal(err)
	}
	_, err := settle.NewClient(d.Bus(), settle.ClientConfig{})
	fmt.Println(err)
	// Output:
	// 8 letters
	// ** boarding **
	// settle: ClientConfig.ID is empty; name the client, such as "sign-1"
}

// A posted event is stored: it will be handled once, however often it is posted.
func ExampleTrigger_Post() {
	visits := settle.NewCell[int]("visits")
	visit := settle.NewTrigger("visit")
	p := settle.NewProgram("site")
	visit.Handle(p, func(tx *settle.Tx) error {
		visits.Update(tx, func(n *int) { *n++ })
		return nil
	})
	d, end := deployment(p)
	defer end()
	ctx, home := context.Background(), d.Client().Space("home")

	for range 3 {
		sent, err := visit.Post(ctx, home, settle.ID("visitor-1"))
		fmt.Println(sent.Duplicate, err)
	}
	if _, err := home.Await(ctx, "visit", settle.ID("visitor-1")); err != nil {
		log.Fatal(err)
	}
	n, err := visits.Fetch(ctx, home)
	fmt.Println(n, err)
	// Output:
	// false <nil>
	// true <nil>
	// true <nil>
	// 1 <nil>
}
