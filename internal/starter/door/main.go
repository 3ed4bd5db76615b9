// Command door runs doors that lock themselves: a server, a worker and a coordinator in one
// process, until Ctrl-C.
package main

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	d, err := settle.Start(ctx, settle.Config{
		Programs: settle.Always(house()), // every space is a house
		Server:   embedded.Config{Listen: "127.0.0.1:4222"},
		Logger:   slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("NATS   ", d.Server().ClientURL())
	fmt.Println("data    ./" + embedded.DefaultStoreDir + " (every write is on disk before it is acknowledged)")
	fmt.Println("In this directory:")
	fmt.Println("        settle watch home status")
	fmt.Println("        settle send home unlock --wait")
	fmt.Println("        settle console    (pages of it, for a browser)")
	fmt.Println("Ctrl-C ends it; what is there stays.")
	<-ctx.Done()
	stop() // a second Ctrl-C ends the process at once
	last, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := d.Stop(last); err != nil {
		log.Fatal(err)
	}
}
