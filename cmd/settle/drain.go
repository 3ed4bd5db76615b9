package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/model"
)

// drainCmd is `settle drain`.
type drainCmd struct {
	connection
	Worker  string        `arg:"" help:"The id of the worker, as settle fleet lists it."`
	Force   bool          `help:"Drain the last worker, too: no event is handled then until another one starts."`
	Wait    bool          `help:"Wait until the worker has left and its partitions are served by others." negatable:"" default:"true"`
	Timeout time.Duration `help:"How long to wait. The worker goes on leaving after that." default:"1m"`
	JSON    bool          `name:"json" help:"Print JSON."`
}

// Help returns the long help.
func (drainCmd) Help() string {
	return "The worker finishes running work, saves, hands its partitions over to the others, one after the other, and ends with status 0, as after SIGTERM. It stays out of the fleet until its process is started again; a supervisor that restarts processes whatever their status does that at once. Needs the role operator."
}

// drained is the JSON output.
type drained struct {
	Worker     string   `json:"worker"`
	Partitions []int    `json:"partitions"`
	Left       bool     `json:"left"`
	ServedBy   []string `json:"served_by,omitzero"`
}

// Run drains a worker.
func (c *drainCmd) Run(ctx context.Context, io streams) error {
	if err := model.CheckName("worker", c.Worker); err != nil {
		return usage(err)
	}
	return c.use(ctx, io, need{shared: []string{provision.ComponentWorkers, provision.ComponentPrograms}}, func(b *bus.Bus, _ *settle.Client) error {
		m, err := fleet.Drain(ctx, b, c.Worker, author(""), c.Force)
		if refused, is := errors.AsType[*fleet.Refusal](err); is {
			return errors.New(strings.Replace(refused.Text, "or force it", "or use --force", 1))
		}
		if err != nil {
			return operators(err)
		}
		d := drained{Worker: m.ID, Partitions: append([]int{}, m.Holds...)}
		if c.Wait {
			within, cancel := context.WithTimeout(ctx, c.Timeout)
			defer cancel()
			if d.ServedBy, err = fleet.AwaitDrained(within, b, m); err != nil {
				recordCommand(ctx, io, b) // it has its effect
				return err
			}
			d.Left = true
		}
		if c.JSON {
			return json.NewEncoder(io.out).Encode(&d)
		}
		fmt.Fprintln(io.out, d.text())
		return nil
	})
}

// text says what has happened.
func (d *drained) text() string {
	held := display.Count(len(d.Partitions), "partition")
	switch {
	case !d.Left:
		return fmt.Sprintf("worker %s was asked to hand its %s over and to leave; settle fleet shows when it has", d.Worker, held)
	case len(d.Partitions) == 0:
		return fmt.Sprintf("worker %s has left; it served no partition", d.Worker)
	case len(d.ServedBy) == 0:
		return fmt.Sprintf("worker %s has left; no worker serves its %s until another one starts", d.Worker, held)
	}
	return fmt.Sprintf("worker %s has left; its %s served by %s", d.Worker, held+map[bool]string{true: " is", false: " are"}[len(d.Partitions) == 1], strings.Join(d.ServedBy, ", "))
}
