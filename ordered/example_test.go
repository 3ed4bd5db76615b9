package ordered_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/ordered"
)

// A payment to another account is an event for it: it leaves if and only if this account's transaction commits.
func ExampleTo() {
	pass := func(tx *ordered.Tx, to string) (string, error) {
		tx.Send(ordered.To(to), "pay", map[string]int{"cents": 100})
		tx.Send(ordered.Here, "note", "passed on to "+to)
		return to, nil
	}
	cfg := ordered.Config{Handlers: map[string]ordered.Handler{"pass": ordered.On(pass)}}
	fmt.Println(cfg.Fill())
	// Output: <nil>
}

// The example serves accounts beside a client that sends to them.
func ExampleServe() {
	type Payment struct {
		Cents int64 `json:"cents"`
	}
	pay := func(tx *ordered.Tx, p Payment) (int64, error) {
		var balance int64
		if err := tx.Read("balance", &balance); err != nil {
			return 0, ordered.Transient(err)
		}
		if balance += p.Cents; balance < 0 {
			return 0, errors.New("there is not enough on the account")
		}
		tx.Set("balance", balance)
		return balance, nil
	}

	dir, err := os.MkdirTemp("", "ordered-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	server, err := embedded.Start(context.Background(), embedded.Config{StoreDir: dir})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Shutdown()
	ctx, stop := context.WithCancel(context.Background())
	b, err := bus.Connect(ctx, bus.Config{Server: server, Partitions: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	if err := b.Provision(ctx); err != nil {
		log.Fatal(err)
	}
	served := make(chan error)
	go func() {
		served <- ordered.Serve(ctx, b, ordered.Config{Handlers: map[string]ordered.Handler{"pay": ordered.On(pay)}})
	}()

	client, err := settle.NewClient(b, settle.ClientConfig{ID: "shop"})
	if err != nil {
		log.Fatal(err)
	}
	for _, payment := range []struct {
		id    string
		cents int64
	}{{"p1", 500}, {"p1", 500}, {"p2", -900}, {"p3", 250}} {
		r, err := client.Call(ctx, settle.Outgoing{Space: "ann", Stream: "pay", ID: settle.ID(payment.id), Payload: Payment{payment.cents}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s %s %v %q\n", payment.id, r.Outcome, r.Result, r.Error)
	}
	client.Close()
	stop()
	fmt.Println(<-served)
	// Output:
	// p1 handled 500 ""
	// p1 handled 500 ""
	// p2 failed absent "there is not enough on the account"
	// p3 handled 750 ""
	// <nil>
}

// A handler of payloads from a service that adds fields as it likes: On would refuse those that it does not name.
func ExampleOnLenient() {
	type hook struct {
		ID string `json:"id"`
	}
	handler := ordered.OnLenient(func(_ *ordered.Tx, h hook) (string, error) { return h.ID, nil })
	payload := model.Object(model.F("id", "evt_1"), model.F("livemode", true))
	result, err := handler(nil, &model.Event{Space: "k", Stream: "hook", ID: "e1", Payload: payload})
	fmt.Println(result, err)
	// Output: evt_1 <nil>
}
