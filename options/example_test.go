package options_test

import (
	"flag"
	"fmt"
	"log"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/options"
)

// A program of your own takes the flags and environment variables of the spaceworker command.
func ExampleBind() {
	cfg := settle.WorkerConfig{ID: "w1"}
	flags := flag.NewFlagSet("myworker", flag.ExitOnError)
	if err := options.Bind(flags, &cfg); err != nil {
		log.Fatal(err)
	}
	if err := flags.Parse([]string{"--idle", "30s", "--event-retries", "8"}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(cfg.Idle, cfg.EventRetries)
	// Output: 30s 8
}

func counter() *settle.Program { return settle.NewProgram("counter") }

func Example() {
	cfg := settle.WorkerConfig{ID: "w1", Programs: settle.Always(counter())}
	if err := options.Bind(flag.CommandLine, &cfg); err != nil {
		log.Fatal(err)
	}
	flag.Parse()
	fmt.Println(cfg.Idle)
}
