// Package bench measures a deployment beside a plain JetStream client on the same server in the
// same run. On a noisy machine, compare the ratios.
package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/examples/counter"
	"github.com/settlehq/settle/model"
)

// CounterConfig configures RunCounter.
type CounterConfig struct {
	Dir        string
	Fsync      embedded.Fsync
	Spaces     int
	Events     int
	Single     int
	Partitions int
	// Phase, if set, is called when a phase begins.
	Phase func(what string)
}

// Counter is the result of RunCounter.
type Counter struct {
	Fsync  string `json:"fsync"`
	Spaces int    `json:"spaces"`
	Events int    `json:"events"`

	// PlainPublishes is the rate, per second, of create-only publishes by a plain JetStream client,
	// pipelined, into the same lanes that are then handled.
	PlainPublishes float64 `json:"plain_publishes_per_second"`
	// Handled is the rate, per second, at which those events were handled exactly once: read from
	// the lane, run, receipt in the log.
	Handled float64 `json:"handled_per_second"`
	// Ratio is Handled / PlainPublishes.
	Ratio float64 `json:"ratio"`
	// Together is the number of events per second while they are sent, pipelined, and handled
	// concurrently.
	Together        float64 `json:"sent_and_handled_per_second"`
	Commits         uint64  `json:"commits"`
	EventsPerCommit float64 `json:"events_per_commit"`

	// One at a time: a plain acknowledged publish, a publish and its delivery to a consumer, and a
	// send and its receipt.
	Publish  Percentiles `json:"plain_publish"`
	Delivery Percentiles `json:"publish_to_delivery"`
	Receipt  Percentiles `json:"send_to_receipt"`
	// ReceiptRatio is the median of Receipt divided by the sum of the other two medians.
	ReceiptRatio float64 `json:"receipt_ratio"`
}

// RunCounter measures on a fresh embedded server in cfg.Dir.
func RunCounter(ctx context.Context, cfg CounterConfig) (Counter, error) {
	r := &run{cfg: cfg, out: Counter{Fsync: fsyncName(cfg.Fsync), Spaces: cfg.Spaces, Events: cfg.Events}}
	server, err := embedded.Start(context.Background(), embedded.Config{StoreDir: cfg.Dir, Fsync: cfg.Fsync})
	if err != nil {
		return r.out, err
	}
	defer server.Shutdown()
	r.server = server
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"connecting", r.connect},
		{"publishing and handling", r.backlog},
		{"sending and handling", r.together},
		{"one at a time", r.latency},
	} {
		if cfg.Phase != nil {
			cfg.Phase(step.what)
		}
		if err := step.do(ctx); err != nil {
			return r.out, errors.Join(err, r.stop())
		}
	}
	return r.out, r.stop()
}

func fsyncName(f embedded.Fsync) string {
	if f == embedded.FsyncAlways {
		return "always"
	}
	return "interval"
}

// run is one measurement in progress.
type run struct {
	cfg    CounterConfig
	out    Counter
	server *embedded.Server
	started
}

// started is what a measurement has started: a deployment, and a connection of its own.
type started struct {
	deployment *settle.Deployment
	bus        *bus.Bus
}

// stop stops what has been started.
func (s started) stop() (err error) {
	if s.deployment != nil {
		err = s.deployment.Stop(context.Background())
	}
	if s.bus != nil {
		s.bus.Close()
	}
	return err
}

func (r *run) busConfig(name string) bus.Config {
	return bus.Config{Server: r.server, Name: name, Partitions: r.cfg.Partitions}
}

func (r *run) connect(ctx context.Context) (err error) {
	if r.bus, err = bus.Connect(ctx, r.busConfig("client/plain")); err != nil {
		return err
	}
	r.deployment, err = settle.Start(ctx, settle.Config{Programs: programs, Bus: r.busConfig(""), Workers: -1})
	return err
}

// rounds is the number of parts in which the events are published and then handled: the machine's
// speed drifts, and both should see all of it.
const rounds = 4

// backlog publishes events while no worker runs, then starts one to handle them, in rounds. The
// start of the worker, including the takeover of every space, is part of the measured time.
func (r *run) backlog(ctx context.Context) (err error) {
	var publishing, handling time.Duration
	for i := range rounds {
		from, to := r.cfg.Events*i/rounds, r.cfg.Events*(i+1)/rounds
		begin := time.Now()
		if err := r.plain(ctx, from, to); err != nil {
			return err
		}
		publishing += time.Since(begin)
		begin = time.Now()
		if _, err := r.deployment.AddWorker(ctx); err != nil {
			return err
		}
		if err := r.handled(ctx, to-from); err != nil {
			return err
		}
		handling += time.Since(begin)
		r.out.Commits += r.deployment.Counts().Commits
		if err := r.deployment.StopWorkers(ctx); err != nil {
			return err
		}
	}
	r.out.PlainPublishes = float64(r.cfg.Events) / publishing.Seconds()
	r.out.Handled = float64(r.cfg.Events) / handling.Seconds()
	r.out.Ratio = r.out.Handled / r.out.PlainPublishes
	r.out.EventsPerCommit = float64(r.cfg.Events) / float64(r.out.Commits)
	_, err = r.deployment.AddWorker(ctx)
	return err
}

// plain publishes events as a plain client would, without Settle code. The stream's configuration
// makes them create-only.
func (r *run) plain(ctx context.Context, from, to int) error {
	js := r.bus.JetStream()
	for i := from; i < to; i++ {
		for js.PublishAsyncPending() >= plainWindow {
			time.Sleep(100 * time.Microsecond)
		}
		if _, err := js.PublishAsync(r.bus.LaneSubject(r.space(i), "add", "plain"+strconv.Itoa(i)), payload); err != nil {
			return fmt.Errorf("plain publish %d: %w", i, err)
		}
	}
	select {
	case <-js.PublishAsyncComplete():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// plainWindow is just below the client library's limit of unanswered publishes, beyond which it
// waits for a moment and then fails.
const plainWindow = 3900

func (r *run) space(i int) string { return "counter" + strconv.Itoa(i%r.cfg.Spaces) }

// programs returns the counter for every space but the idle one.
func programs(space string) *settle.Program {
	if space == idle {
		return nil
	}
	return counterProgram
}

var counterProgram = counter.Program()

// handled waits until the running workers have n receipts in the log.
func (r *run) handled(ctx context.Context, n int) error {
	for r.deployment.Counts().Receipts < uint64(n) {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// pipeline is the number of events of a space in flight.
const pipeline = 64

// together sends the same number of events again while they are being handled.
func (r *run) together(ctx context.Context) error {
	begin := time.Now()
	s := r.deployment.Client().Pipeline(pipeline)
	for i := range r.cfg.Events {
		e := settle.Outgoing{Space: r.space(i), Stream: "add", ID: settle.ID("sent" + strconv.Itoa(i)), Payload: one}
		if err := s.Send(ctx, e, nil); err != nil {
			return err
		}
	}
	if err := s.Flush(ctx); err != nil {
		return err
	}
	if err := r.handled(ctx, r.cfg.Events); err != nil {
		return err
	}
	r.out.Together = perSecond(r.cfg.Events, begin)
	return nil
}

var one = model.Object(model.Field{Key: "by", Value: model.Int(1)})

func perSecond(n int, begin time.Time) float64 { return float64(n) / time.Since(begin).Seconds() }
