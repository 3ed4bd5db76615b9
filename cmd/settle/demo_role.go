package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/settlehq/settle/internal/demo"
)

// demoRoleCmd is a process that `settle demo flights --processes` and `settle demo pipeline` start.
type demoRoleCmd struct {
	Role       string        `arg:"" enum:"worker,coordinator"`
	ID         string        `required:""`
	NATS       string        `name:"nats" required:""`
	Prefix     string        `required:""`
	Program    string        `default:"go"`
	Heartbeat  time.Duration `required:""`
	Checkpoint time.Duration `required:""`
	Ledger     string
	Pace       time.Duration
}

// Run plays the role. It ignores Ctrl-C, because its parent process handles that and stops it.
func (c *demoRoleCmd) Run(_ context.Context, io streams) error {
	signal.Ignore(os.Interrupt)
	signal.Reset(syscall.SIGTERM)
	r := demo.Role{Role: c.Role, ID: c.ID, NATS: c.NATS, Prefix: c.Prefix, Program: c.Program, Heartbeat: c.Heartbeat, Checkpoint: c.Checkpoint, Ledger: c.Ledger, Pace: c.Pace}
	return r.Serve(context.Background(), os.Stdin, io.out)
}
