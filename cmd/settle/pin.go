package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program"
	"github.com/settlehq/settle/program/star"
)

// deciding are the flags of the commands that change rules.
type deciding struct {
	connection
	Note    string        `help:"The reason, for the history." placeholder:"TEXT"`
	By      string        `help:"Your name, for the history. Default: this user at this host." placeholder:"NAME"`
	Timeout time.Duration `help:"How long the command may take." default:"20s"`
	JSON    bool          `name:"json" help:"Print JSON."`
}

// decided is a rule that was changed.
type decided struct {
	Spaces string         `json:"spaces"`
	Before string         `json:"before,omitzero"`
	Now    program.Choice `json:"now"`
	// Unreadable are the documents of a later version that the program which was restored does not read.
	Unreadable []star.Unreadable `json:"unreadable,omitempty"`
	rest       string            // for a removed rule: what applies now
}

// decide changes a rule, and prints the change.
func (c *deciding) decide(ctx context.Context, b *bus.Bus, spaces string, change func(program.Rule) (program.Choice, error)) (decided, error) {
	d := decided{Spaces: spaces}
	_, err := program.Decide(ctx, b, spaces, func(r program.Rule) (program.Choice, error) {
		d.Before = ""
		if r.Target != (program.Target{}) {
			d.Before = choiceText(r.Choice)
		}
		var err error
		d.Now, err = change(r)
		d.Now.By, d.Now.At, d.Now.Note = author(c.By), time.Now(), c.Note
		return d.Now, err
	})
	return d, operators(err)
}

func choiceText(c program.Choice) string {
	r := rule{Program: c.Program, Version: c.Version, Canary: c.Canary, Pinned: c.Pinned}
	return r.text()
}

func (d *decided) print(io streams) {
	switch {
	case d.Now.Target == (program.Target{}):
		fmt.Fprintf(io.out, "spaces %s: no rule of their own any more (former: %s); %s\n", d.Spaces, d.Before, d.rest)
	case d.Before == "":
		fmt.Fprintf(io.out, "spaces %s: %s\n", d.Spaces, choiceText(d.Now))
	case d.Before == choiceText(d.Now):
		fmt.Fprintf(io.out, "spaces %s: %s, as before\n", d.Spaces, d.Before)
	default:
		fmt.Fprintf(io.out, "spaces %s: now run %s (before: %s)\n", d.Spaces, choiceText(d.Now), d.Before)
	}
}

func (c *deciding) with(ctx context.Context, io streams, f func(context.Context, *bus.Bus) ([]decided, error)) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	return c.use(ctx, io, need{shared: []string{provision.ComponentPrograms}, patience: c.Timeout}, func(b *bus.Bus, _ *settle.Client) error {
		all, err := f(ctx, b)
		if c.JSON && err == nil {
			return fleetJSON(io.out, all)
		}
		for i := range all {
			all[i].print(io)
		}
		return err
	})
}

// pinCmd is `settle pin`.
type pinCmd struct {
	deciding
	Spaces string `arg:"" help:"A space (airport-1), a prefix (airport-*), or all others (*)."`
	Target string `arg:"" help:"The version, NAME@VERSION. The beginning of the version is enough."`
}

// Run pins spaces to a version.
func (c *pinCmd) Run(ctx context.Context, io streams) error {
	if err := program.CheckSpaces(c.Spaces); err != nil {
		return usage(err)
	}
	t, err := program.ParseTarget(c.Target)
	if err == nil && t.Version == "" {
		err = fmt.Errorf("%s: which version? settle versions %s lists them", t.Program, t.Program)
	}
	if err != nil {
		return usage(err)
	}
	return c.with(ctx, io, func(ctx context.Context, b *bus.Bus) ([]decided, error) {
		v, err := program.Find(ctx, b, t)
		if err != nil {
			return nil, err
		}
		d, err := c.decide(ctx, b, c.Spaces, func(program.Rule) (program.Choice, error) {
			return program.Choice{Target: v.Target(), Pinned: true}, nil
		})
		return []decided{d}, err
	})
}

// unpinCmd is `settle unpin`.
type unpinCmd struct {
	deciding
	Spaces string `arg:"" help:"The spaces of the rule, as settle versions lists them."`
}

// Run removes a rule.
func (c *unpinCmd) Run(ctx context.Context, io streams) error {
	if err := program.CheckSpaces(c.Spaces); err != nil {
		return usage(err)
	}
	return c.with(ctx, io, func(ctx context.Context, b *bus.Bus) ([]decided, error) {
		d, err := c.decide(ctx, b, c.Spaces, func(r program.Rule) (program.Choice, error) {
			if r.Target == (program.Target{}) {
				return program.Choice{}, fmt.Errorf("there is no rule about spaces %s; settle versions lists those that there are", c.Spaces)
			}
			return program.Choice{}, nil
		})
		if err != nil {
			return nil, err
		}
		table, err := program.Rules(ctx, b)
		if err != nil {
			return nil, err
		}
		d.rest = general(table, c.Spaces)
		return []decided{d}, nil
	})
}

// general describes which rule applies to spaces without a rule of their own.
func general(table *program.Table, spaces string) string {
	var best *program.Rule
	for _, r := range table.All() {
		if !r.Exact() && r.Matches(strings.TrimSuffix(spaces, "*")) && (best == nil || len(r.Spaces) > len(best.Spaces)) {
			best = r
		}
	}
	if best == nil {
		return "no other rule assigns a program to them: their events wait"
	}
	return fmt.Sprintf("the rule about %s assigns %s to them", best.Spaces, choiceText(best.Choice))
}

// rollbackCmd is `settle rollback`.
type rollbackCmd struct {
	deciding
	Name    string `arg:"" help:"A program."`
	Version string `arg:"" optional:"" help:"The version to restore, or its beginning. Default: the previous version of each rule; a canary ends."`
	Space   string `help:"Only the rule about these spaces, pinned or not. Default: all rules that are not pinned." placeholder:"SPACES"`
}

var errNoBefore = errors.New("there is no version before; settle versions lists what there is")

// Run rolls a program back.
func (c *rollbackCmd) Run(ctx context.Context, io streams) error {
	if err := model.CheckName("program", c.Name); err != nil {
		return usage(err)
	}
	return c.with(ctx, io, func(ctx context.Context, b *bus.Bus) ([]decided, error) {
		to := program.Target{}
		if c.Version != "" {
			v, err := program.Find(ctx, b, program.Target{Program: c.Name, Version: c.Version})
			if err != nil {
				return nil, err
			}
			to = v.Target()
		}
		table, err := program.Rules(ctx, b)
		if err != nil {
			return nil, err
		}
		var all []decided
		for _, r := range table.About(c.Name) {
			if c.Space != r.Spaces && (c.Space != "" || r.Pinned) {
				continue
			}
			d, err := c.decide(ctx, b, r.Spaces, func(r program.Rule) (program.Choice, error) { return c.back(r, to) })
			if err != nil {
				return all, fmt.Errorf("spaces %s: %w", r.Spaces, err)
			}
			d.Unreadable = program.Unreadable(ctx, b, r.Targets(), d.Now.Target)
			if text := program.UnreadableText(d.Now.Target, d.Unreadable); text != "" {
				fmt.Fprintf(io.err, "warning: spaces %s: %s\n", r.Spaces, text)
			}
			all = append(all, d)
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("no rule has spaces%s run program %s; settle versions lists the rules", ofPattern(c.Space), c.Name)
		}
		return all, nil
	})
}

func ofPattern(spaces string) string {
	if spaces == "" {
		return ""
	}
	return " " + spaces
}

// back returns the contents of a rule after a rollback.
func (c *rollbackCmd) back(r program.Rule, to program.Target) (program.Choice, error) {
	if r.Program != c.Name {
		return program.Choice{}, fmt.Errorf("they run %s meanwhile", r.Target)
	}
	if to == (program.Target{}) {
		var ok bool
		if to, ok = r.Before(); !ok {
			return program.Choice{}, errNoBefore
		}
	}
	return program.Choice{Target: to, Pinned: r.Pinned}, nil
}
