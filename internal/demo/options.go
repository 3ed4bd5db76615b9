package demo

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/examples/flights"
)

// Options configures a run.
type Options struct {
	// Flights is the input.
	Flights []flights.Flight
	// Program is the language of the program: Go, or Star for Starlark. "" is Go.
	Program    string
	Workers    int
	Partitions int
	// Duplicate is how often every departure is sent, with the same id.
	Duplicate int
	// Kill is how many workers are killed, spread over the run.
	Kill int
	// Processes makes workers and coordinator processes of their own (see Role), killed by SIGKILL.
	Processes bool
	// Store is the embedded server's directory. "" is a temporary one. A run in a directory that
	// was used before continues there if the input is the same.
	Store string
	Fsync embedded.Fsync
	// NATS is the URL of another server to use. The run has its own streams there, and deletes them
	// at its end unless Keep is set.
	NATS string
	Keep bool
	// Tracer records spans; nil records none.
	Tracer trace.Tracer

	// Rejoin is the time from a kill until a new worker joins. Default 500 ms.
	Rejoin time.Duration
	// Patience is how long a run waits while nothing enters the logs before it gives up and reports
	// what is missing. Default 1 min, which is longer than it takes to replace a member that hangs.
	Patience time.Duration
}

// The programs of a run.
const (
	Go   = "go"
	Star = "star"
)

// programs returns the programs in a language.
func programs(language string) (settle.Programs, error) {
	switch language {
	case "", Go:
		return flights.Programs, nil
	case Star:
		return flights.Starlark()
	}
	return nil, fmt.Errorf("--program %s: choose %s or %s", language, Go, Star)
}

// maxPartitions is a sensible limit for a demonstration.
const maxPartitions = 64

// Check returns an error about the first invalid option.
func (o *Options) Check() error {
	switch {
	case o.Workers < 1:
		return fmt.Errorf("--workers %d: at least one worker is needed", o.Workers)
	case o.Partitions < 1 || o.Partitions > maxPartitions:
		return fmt.Errorf("--partitions %d: choose 1 to %d", o.Partitions, maxPartitions)
	case o.Duplicate < 1:
		return fmt.Errorf("--duplicate %d: every event is sent at least once; 1 sends it once", o.Duplicate)
	case o.Kill < 0:
		return fmt.Errorf("--kill %d: choose how many workers to kill, 0 for none", o.Kill)
	case o.NATS != "" && o.Store != "":
		return errors.New("--store is for the embedded server and --nats for another one: use only one of them")
	case o.Keep && o.NATS == "":
		return errors.New("--keep is about the streams on an outside server (--nats); with the embedded one, --store DIR keeps them")
	}
	_, err := programs(o.Program)
	return err
}

func (o *Options) fill() {
	if o.Rejoin == 0 {
		o.Rejoin = 500 * time.Millisecond
	}
	if o.Patience == 0 {
		o.Patience = time.Minute
	}
}

// watchedAirports is the number of airports that are watched and ranked: the busiest.
const watchedAirports = 10
