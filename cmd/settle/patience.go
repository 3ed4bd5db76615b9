package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program"
)

// lookPatience is the time limit for reading the fleet after a request without an answer.
const lookPatience = 5 * time.Second

// describeOwner returns, for the error of a request that timed out, which worker should have
// answered, and its state.
func describeOwner(ctx context.Context, b *bus.Bus, space string) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookPatience)
	defer cancel()
	f, err := fleet.Look(ctx, b)
	if why := unruled(ctx, b, space); why != "" {
		return why
	}
	if err != nil {
		return fmt.Sprintf("the worker of space %s is not known either (%v)", space, err)
	}
	if idle(ctx, b, space) {
		return fmt.Sprintf("space %s has no program to run, and its events wait until it has one; the Programs of the workers choose it (settle.Config, settle.WorkerConfig), or a rule (`settle deploy --space`)", space)
	}
	return serving(f, space)
}

// idlePatience is the time limit for asking the owner of a space whether it has a program: it knows at once.
const idlePatience = time.Second

// idle reports whether the owner of a space has no program for it. The request may wake the
// space, which does not matter, because an event waits for it anyway.
func idle(ctx context.Context, b *bus.Bus, space string) bool {
	q := live.Get{Space: space, Document: "any", Timeout: live.Duration(idlePatience)}
	_, err := (&live.Client{Bus: b, Grace: time.Nanosecond}).Get(ctx, q)
	said, is := errors.AsType[*model.ServiceError](err)
	return is && said.Code == model.CodeNotFound
}

// unruled returns a message if rules exist and none applies to a space; "" otherwise.
func unruled(ctx context.Context, b *bus.Bus, space string) string {
	table, err := program.Rules(ctx, b)
	if err != nil || len(table.All()) == 0 || table.Rule(space) != nil {
		return ""
	}
	var rules []string
	for _, r := range table.All() {
		rules = append(rules, r.Spaces)
	}
	return fmt.Sprintf("no rule assigns a program to space %s; rules: %s (settle versions)", space, clip(strings.Join(rules, ", "), 200))
}

func serving(f *fleet.Fleet, space string) string {
	p := f.Partitions[model.PartitionOf(space, len(f.Partitions))]
	switch {
	case len(p.Served) == 0 && len(p.Silent) > 0:
		return fmt.Sprintf("worker %s serves space %s and does not answer; one that hangs is replaced within 15 s (the member TTL)", strings.Join(p.Silent, " and "), space)
	case len(p.Served) > 0:
		return fmt.Sprintf("worker %s serves space %s and answers: it may be busy, or its code may hang", strings.Join(p.Served, " and "), space)
	case p.Owner != "":
		return fmt.Sprintf("worker %s is taking space %s over: within 15 s (the member TTL) if the former worker has ended without leaving", p.Owner, space)
	}
	return fmt.Sprintf("no worker serves space %s; start one (spaceworker)", space)
}
