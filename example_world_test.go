package settle_test

import (
	"context"
	"log"
	"os"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
)

// withDeployment runs a program on an embedded server while f runs.
func withDeployment(p *settle.Program, f func(ctx context.Context, client *settle.Client) error) {
	dir, err := os.MkdirTemp("", "settle-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	d, err := settle.Start(ctx, settle.Config{Programs: settle.Always(p), Server: embedded.Config{StoreDir: dir}})
	if err != nil {
		log.Fatal(err)
	}
	if err := f(ctx, d.Client()); err != nil {
		log.Print(err)
	}
	if err := d.Stop(ctx); err != nil {
		log.Fatal(err)
	}
}
