package dev

import (
	"context"
	"fmt"
	"slices"

	"github.com/settlehq/settle/program"
)

// followRules hands over what spaces are to run as it is decided, here or elsewhere, until ctx ends.
// What stands already when it calls ready is not told.
func (d *dev) followRules(ctx context.Context, to chan<- program.Rule, ready func()) {
	defer ready()
	began := false
	err := program.FollowRules(ctx, d.bus, func(r program.Rule) {
		if !began {
			return
		}
		select {
		case to <- r:
		case <-ctx.Done():
		}
	}, func() { began = true; ready() })
	if ctx.Err() == nil { // the server has ended under us, which others report
		fmt.Fprintf(d.cfg.Out, "%s  what is deployed elsewhere is not told here any more: %v\n", now(), err)
	}
}

// learn tells of a decision of somebody else. What it says of our programs is what their next
// version is compared with, and deployed over.
func (d *dev) learn(r program.Rule) {
	over := ""
	for _, h := range d.programs {
		if h.spaces != r.Spaces {
			continue
		}
		h.decided = ""
		if r.By != byDev && (r.Target != h.version.Target() || r.Canary != nil) {
			h.decided = fmt.Sprintf("%s had it run %s", r.By, r.Target)
			over = fmt.Sprintf("\n          a change of %s is deployed over it", h.title())
		}
	}
	if r.By != byDev {
		fmt.Fprintf(d.cfg.Out, "%s  %s%s\n", now(), decision(r), over)
	}
}

// decision says who has decided what.
func decision(r program.Rule) string {
	who := r.By
	if who == "" {
		who = "somebody"
	}
	which := "spaces " + r.Spaces
	if r.Spaces == program.All {
		which = "all spaces"
	}
	if r.Target == (program.Target{}) {
		return fmt.Sprintf("%s took the rule about %s away", who, which)
	}
	text := fmt.Sprintf("%s has %s run %s", who, which, r.Target)
	if slices.ContainsFunc(r.History, func(c program.Choice) bool { return c.Target == r.Target }) {
		text += " again"
	}
	if r.Canary != nil {
		text += fmt.Sprintf(", %d%% of them %s", r.Canary.Percent, r.Canary.Version)
	}
	if r.Pinned {
		text += " (pinned)"
	}
	if r.Note != "" {
		text += ": " + r.Note
	}
	return text
}
