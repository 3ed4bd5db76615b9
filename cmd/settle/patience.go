package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program"
)

// lookPatience bounds the look at a fleet in which nobody has answered.
const lookPatience = 5 * time.Second

// whoServes says, for an error of somebody who has waited in vain, which worker the wait was
// for and how it is.
func whoServes(ctx context.Context, b *bus.Bus, space string) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookPatience)
	defer cancel()
	f, err := fleet.Look(ctx, b)
	if why := unruled(ctx, b, space); why != "" {
		return why
	}
	if err != nil {
		return fmt.Sprintf("who serves space %s is not known either (%v)", space, err)
	}
	return serving(f, space)
}

// unruled says that no rule concerns a space, where rules say what runs; "" if that is not so.
func unruled(ctx context.Context, b *bus.Bus, space string) string {
	table, err := program.Rules(ctx, b)
	if err != nil || len(table.All()) == 0 || table.Rule(space) != nil {
		return ""
	}
	var rules []string
	for _, r := range table.All() {
		rules = append(rules, r.Spaces)
	}
	return fmt.Sprintf("no rule has space %s run a program; rules: %s (settle versions)", space, clip(strings.Join(rules, ", "), 200))
}

func serving(f *fleet.Fleet, space string) string {
	p := f.Partitions[model.PartitionOf(space, len(f.Partitions))]
	silent := slices.DeleteFunc(slices.Clone(p.Served), func(id string) bool {
		return !slices.ContainsFunc(f.Workers, func(m fleet.Member) bool { return m.ID == id && m.State == fleet.Silent })
	})
	switch {
	case len(silent) > 0:
		return fmt.Sprintf("worker %s serves space %s and does not answer; one that hangs is replaced within 15 s (the member TTL)", strings.Join(silent, " and "), space)
	case len(p.Served) > 0:
		return fmt.Sprintf("worker %s serves space %s and is there: it may have much to do, or code that hangs", strings.Join(p.Served, " and "), space)
	case p.Owner != "":
		return fmt.Sprintf("worker %s is to serve space %s and is taking it over: within 15 s (the member TTL) if the one before has ended without a word", p.Owner, space)
	}
	return fmt.Sprintf("no worker is there to serve space %s; start one (spaceworker)", space)
}
