package demo

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/examples/flights"
	"github.com/settlehq/settle/examples/flights/daily"
	"github.com/settlehq/settle/worker"
)

// The roles of a process that a run with Processes starts.
const (
	RoleWorker      = "worker"
	RoleCoordinator = "coordinator"
)

// Role is one such process: this program started again. A line on its standard input makes it stop,
// and it ends when that is closed, so that it does not outlive its parent.
type Role struct {
	Role, ID, NATS, Prefix string
	Program                string // see Options; or Daily
	Heartbeat, Checkpoint  time.Duration
	// Ledger and Pace are for the program Daily: where its actions are recorded, and how long each takes.
	Ledger string
	Pace   time.Duration
}

// stopWord asks a process to leave in good order.
const stopWord = "stop"

// readyWord is the first line of its output.
const readyWord = "ready"

// runCount is how often a computation ran.
type runCount struct {
	Space string `json:"space"`
	Node  string `json:"node"`
	Runs  uint64 `json:"runs"`
}

// errAbandoned reports that the parent process is gone.
var errAbandoned = errors.New("standard input was closed: the parent process is gone")

// Serve runs the role until it is asked to stop.
func (r Role) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	b, err := bus.Connect(ctx, bus.Config{URL: r.NATS, Prefix: r.Prefix, Name: r.Role + "/" + r.ID})
	if err != nil {
		return err
	}
	defer b.Close()
	if r.Role == RoleCoordinator {
		c := coordinator.New(b, coordinator.Config{})
		c.Start()
		defer c.Stop()
		return until(ctx, in, out, func() {})
	}
	ps, err := r.programs()
	if err != nil {
		return err
	}
	w, err := settle.StartWorker(ctx, b, settle.WorkerConfig{
		ID: r.ID, Programs: ps, Options: worker.Options{Heartbeat: r.Heartbeat, Checkpoint: r.Checkpoint},
	})
	if err != nil {
		return err
	}
	if err := until(ctx, in, out, func() { printRuns(w, out) }); err != nil {
		w.Kill()
		return err
	}
	stopping, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	err = w.Stop(stopping)
	printRuns(w, out)
	return err
}

// programs returns what a worker runs.
func (r Role) programs() (settle.Programs, error) {
	if r.Program != Daily {
		return programs(r.Program)
	}
	return dailyProgram(flights.BuiltIn, &daily.Ledger{Path: r.Ledger, Worker: r.ID}, r.Pace)
}

// until reports that the process serves and then, periodically, what it has done, until it is asked
// to stop.
func until(ctx context.Context, in io.Reader, out io.Writer, tell func()) error {
	asked := make(chan error, 1)
	go func() { // ends with the process at the latest
		lines := bufio.NewScanner(in)
		for lines.Scan() {
			if lines.Text() == stopWord {
				asked <- nil
				return
			}
		}
		asked <- errAbandoned
	}()
	if _, err := fmt.Fprintln(out, readyWord); err != nil {
		return err
	}
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		select {
		case err := <-asked:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-again.C:
			tell()
		}
	}
}

// printRuns writes how often each computation has run.
func printRuns(w *worker.Worker, out io.Writer) {
	var list []runCount
	for k, n := range w.Runs() {
		list = append(list, runCount{k.Space, k.Node, n})
	}
	slices.SortFunc(list, func(a, b runCount) int { return cmp.Or(cmp.Compare(a.Space, b.Space), cmp.Compare(a.Node, b.Node)) })
	_ = json.NewEncoder(out).Encode(list) // if the parent is gone, standard input is closed
}
