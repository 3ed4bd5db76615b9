package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/access"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/provision"
)

// ruling are the flags of the commands that change rules about access.
type ruling struct {
	connection
	Principal   string        `arg:"" optional:"" help:"The principal, with * for any characters."`
	NoPrincipal bool          `help:"In place of PRINCIPAL: what has none, such as the events of users of the role client."`
	Send        []string      `help:"What it may send: patterns SPACE/STREAM, with * for any characters." placeholder:"PATTERN"`
	Read        []string      `help:"What it may read and watch: patterns SPACE/DOCUMENT." placeholder:"PATTERN"`
	Note        string        `help:"The reason, which settle who-may prints." placeholder:"TEXT"`
	By          string        `help:"Your name, which settle who-may prints. Default: this user at this host." placeholder:"NAME"`
	Timeout     time.Duration `help:"How long the command may take." default:"20s"`
}

// check returns an error unless the rule has one principal, and patterns that are valid.
func (c *ruling) check() error {
	if (c.Principal == "") != c.NoPrincipal {
		return errors.New("name the principal, or give --no-principal")
	}
	if err := access.CheckPrincipal(c.Principal); err != nil {
		return err
	}
	for _, p := range slices.Concat(c.Send, c.Read) {
		if err := access.CheckPattern(p); err != nil {
			return err
		}
	}
	return nil
}

// change changes the rule and prints what it is then.
func (c *ruling) change(ctx context.Context, io streams, change func(*access.Rule)) error {
	if err := c.check(); err != nil {
		return usage(err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	return c.use(ctx, io, need{shared: []string{provision.ComponentPrograms}, patience: c.Timeout}, func(b *bus.Bus, _ *settle.Client) error {
		before, err := access.List(ctx, b)
		if before == nil {
			return err
		}
		if err != nil {
			fmt.Fprintln(io.err, "settle: rules that cannot be decoded allow nothing:", err)
		}
		r, err := access.Change(ctx, b, c.Principal, func(r *access.Rule) {
			change(r)
			r.By, r.At, r.Note = author(c.By), time.Now().UTC().Truncate(time.Second), c.Note
		})
		if err != nil {
			return operators(err)
		}
		fmt.Fprintf(io.out, "%s may send %s and read %s\n", principalText(r.Principal), patternsText(r.Send), patternsText(r.Read))
		if !before.Closed() {
			fmt.Fprintln(io.out, "This is the first rule: from now on, what no rule allows is refused. What has no principal, such as an event of settle send and a read of settle get, has a rule of its own: --no-principal. "+operatorText)
		}
		return nil
	})
}

// allowCmd is `settle allow`.
type allowCmd struct{ ruling }

// Help returns the long help.
func (allowCmd) Help() string {
	return "With the first rule, the deployment is closed: what no rule allows is refused. Rules concern the events that clients send, and reads over HTTP and by the services of the workers. They do not limit users whose NATS permissions let them read the streams (settle permissions). Needs the role operator."
}

// Run adds patterns to a rule.
func (c *allowCmd) Run(ctx context.Context, io streams) error {
	return c.change(ctx, io, func(r *access.Rule) {
		r.Send, r.Read = append(r.Send, c.Send...), append(r.Read, c.Read...)
	})
}

// disallowCmd is `settle disallow`.
type disallowCmd struct{ ruling }

// Help returns the long help.
func (disallowCmd) Help() string {
	return "Without --send and --read, the principal may do nothing any more by this rule; others may apply. The deployment remains closed. Watches of documents that may no longer be read end. Needs the role operator."
}

// Run removes patterns from a rule, or all of them.
func (c *disallowCmd) Run(ctx context.Context, io streams) error {
	return c.change(ctx, io, func(r *access.Rule) {
		if len(c.Send)+len(c.Read) == 0 {
			r.Send, r.Read = nil, nil
			return
		}
		r.Send = slices.DeleteFunc(r.Send, func(p string) bool { return slices.Contains(c.Send, p) })
		r.Read = slices.DeleteFunc(r.Read, func(p string) bool { return slices.Contains(c.Read, p) })
	})
}

// mayCmd is `settle who-may`.
type mayCmd struct {
	connection
	Do      string        `arg:"" optional:"" help:"send or read. Without it, all rules are printed."`
	What    string        `arg:"" optional:"" help:"SPACE/STREAM or SPACE/DOCUMENT."`
	Timeout time.Duration `help:"How long the command may take." default:"20s"`
	JSON    bool          `name:"json" help:"Print JSON."`
}

// Run prints the rules, or the principals that may do something.
func (c *mayCmd) Run(ctx context.Context, io streams) error {
	space, name, ok := strings.Cut(c.What, "/")
	if c.Do != "" && (c.Do != "send" && c.Do != "read" || !ok || space == "" || name == "") {
		return usage(errors.New("ask as in: settle who-may send SPACE/STREAM, or settle who-may read SPACE/DOCUMENT, or settle who-may for all rules"))
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	return c.use(ctx, io, need{shared: []string{provision.ComponentPrograms}, patience: c.Timeout}, func(b *bus.Bus, _ *settle.Client) error {
		rules, err := access.List(ctx, b)
		if rules == nil {
			return err
		}
		if c.Do == "" {
			return errors.Join(err, c.printRules(io, rules))
		}
		principals := rules.Senders(space, name)
		if c.Do == "read" {
			principals = rules.Readers(space, name)
		}
		return errors.Join(err, c.printPrincipals(io, rules, principals))
	})
}

func (c *mayCmd) printRules(io streams, rules *access.Rules) error {
	all := rules.All()
	if c.JSON {
		return json.NewEncoder(io.out).Encode(struct {
			Closed bool          `json:"closed"`
			Rules  []access.Rule `json:"rules"`
		}{rules.Closed(), append([]access.Rule{}, all...)})
	}
	if !rules.Closed() {
		fmt.Fprintln(io.out, openText)
		return nil
	}
	fmt.Fprintln(io.out, operatorText)
	w := tabwriter.NewWriter(io.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PRINCIPAL\tMAY SEND\tMAY READ\tCHANGED\tNOTE")
	for i := range all {
		r := &all[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s %s\t%s\n", principalText(r.Principal), patternsText(r.Send), patternsText(r.Read), r.At.Format(time.RFC3339), r.By, r.Note)
	}
	return w.Flush()
}

const openText = "There is no rule: everything is allowed that the servers and the gateway let through. The first one closes the deployment: settle allow."

const operatorText = "Rules do not concern operators: people with that role give --principal operator."

func (c *mayCmd) printPrincipals(io streams, rules *access.Rules, principals []string) error {
	switch {
	case c.JSON:
		return json.NewEncoder(io.out).Encode(struct {
			Closed     bool     `json:"closed"`
			Principals []string `json:"principals"`
		}{rules.Closed(), append([]string{}, principals...)})
	case !rules.Closed():
		fmt.Fprintln(io.out, openText)
	case len(principals) == 0:
		fmt.Fprintf(io.out, "no principal may %s %s\n", c.Do, c.What)
	}
	for _, p := range principals {
		fmt.Fprintln(io.out, principalText(p))
	}
	return nil
}

func principalText(principal string) string {
	if principal == "" {
		return "(no principal)"
	}
	return principal
}

func patternsText(patterns []string) string {
	if len(patterns) == 0 {
		return "nothing"
	}
	return strings.Join(patterns, " ")
}
