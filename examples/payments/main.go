// Command payments keeps accounts: payments of an account are handled in order and exactly once,
// and those that fail go to the dead letters. It is the example of package ordered, for people
// with experience in JetStream; README.md has the commands to try.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os/signal"
	"syscall"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/ordered"
)

// Account is the document "account" of a key.
type Account struct {
	Cents    int64 `json:"cents"`
	Payments int   `json:"payments"`
}

// Payment is an event: cents for the account, or from it to another one.
type Payment struct {
	Cents int64  `json:"cents"`
	To    string `json:"to,omitzero"`
}

func pay(tx *ordered.Tx, p Payment) (Account, error) {
	var a Account
	if err := tx.Read("account", &a); err != nil {
		return a, err
	}
	if a.Cents += p.Cents; a.Cents < 0 {
		return a, fmt.Errorf("%s is short of %d cents", tx.Space(), -a.Cents) // nothing is kept
	}
	a.Payments++
	tx.Set("account", a)
	if p.To != "" {
		tx.Send(ordered.To(p.To), "pay", Payment{Cents: -p.Cents}) // leaves if and only if this commits
	}
	return a, nil
}

func main() {
	url := flag.String("nats", "", "a NATS server; without, there is one in this process, at 127.0.0.1:4222")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	if err := serve(ctx, bus.Config{URL: *url, Partitions: 1}); err != nil {
		log.Fatal(err)
	}
}

func serve(ctx context.Context, cfg bus.Config) error {
	if cfg.URL == "" {
		server, err := embedded.Start(context.Background(), embedded.Config{StoreDir: ".settle/payments", Listen: "127.0.0.1:4222"})
		if err != nil {
			return err
		}
		defer server.Shutdown()
		cfg.Server = server
	}
	b, err := bus.Connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer b.Close()
	if err := b.Provision(ctx); err != nil {
		return err
	}
	handlers := map[string]ordered.Handler{"pay": ordered.On(pay)}
	return ordered.Serve(ctx, b, ordered.Config{Handlers: handlers, Logger: slog.Default()})
}
