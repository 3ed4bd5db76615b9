package dev

import (
	"context"
	"fmt"
	"slices"

	"github.com/settlehq/settle/program"
)

// followRules passes on rules as they are decided, here or by other clients, until ctx ends. Rules
// that exist before it calls ready are skipped.
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
	if ctx.Err() == nil { // the server has stopped; other goroutines report that
		fmt.Fprintf(d.cfg.Out, "%s  deployments of other clients are no longer reported here: %v\n", now(), err)
	}
}

// learn reports a decision of another client. If it is about a program of this server, the
// program's next version is compared with it, and replaces it.
func (d *dev) learn(r program.Rule) {
	over := ""
	for _, h := range d.programs {
		if h.spaces != r.Spaces {
			continue
		}
		h.decided = ""
		if r.By != byDev && (r.Target != h.version.Target() || r.Canary != nil) {
			h.decided = fmt.Sprintf("%s deployed %s", r.By, r.Target)
			over = fmt.Sprintf("\n          the next change of %s replaces it", h.title())
		}
	}
	if r.By != byDev {
		fmt.Fprintf(d.cfg.Out, "%s  %s%s\n", now(), decision(r), over)
	}
}

// decision describes a decision.
func decision(r program.Rule) string {
	author := r.By
	if author == "" {
		author = "another client"
	}
	which := "spaces " + r.Spaces
	if r.Spaces == program.All {
		which = "all spaces"
	}
	if r.Target == (program.Target{}) {
		return fmt.Sprintf("%s removed the rule about %s", author, which)
	}
	text := fmt.Sprintf("%s makes %s run %s", author, which, r.Target)
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
