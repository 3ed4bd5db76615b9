package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/internal/audit"
)

// audited are the commands that change a deployment other than by an event, each with its subcommands that do, if not all do.
var audited = map[string][]string{
	"deploy": nil, "rollback": nil, "pin": nil, "unpin": nil, "redrive": nil, "dismiss": nil, "cancel": nil, "skip": nil, "import": nil, "delete": nil,
	"accept-loss": nil, "drain": nil, "allow": nil, "disallow": nil, "quarantine": {"skip", "restore"},
}

// isAudited reports whether a command line is to be recorded.
func isAudited(args []string) bool {
	if len(args) == 0 {
		return false
	}
	only, is := audited[args[0]]
	return is && (only == nil || slices.ContainsFunc(args[1:], func(a string) bool { return slices.Contains(only, a) }))
}

// recordCommand adds a command that has succeeded to the audit trail. The command has had its effect: what fails here is a warning.
func recordCommand(ctx context.Context, io streams, b *bus.Bus) {
	if !isAudited(io.args) {
		return
	}
	e := audit.Entry{At: io.now().UTC(), By: author(""), Command: "settle " + strings.Join(io.args, " ")}
	if u, err := b.Streams().AskUser(ctx); err == nil {
		e.User, e.Account = u.User, u.Account
	}
	if err := audit.Add(ctx, b, e); err != nil {
		fmt.Fprintln(io.err, "settle: this command is not in the audit trail:", err)
	}
}

// auditCmd is `settle audit`.
type auditCmd struct {
	connection
	Last    int           `help:"How many to list, the newest." default:"50"`
	Timeout time.Duration `help:"How long the command may take." default:"20s"`
	JSON    bool          `name:"json" help:"Print JSON lines."`
}

// Help returns the long help.
func (auditCmd) Help() string {
	return "Each command records itself when it has succeeded, with the NATS user as the server names it. Other programs that change the deployment do not."
}

// Run prints the newest entries, the newest last.
func (c *auditCmd) Run(ctx context.Context, io streams) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	return c.use(ctx, io, need{shared: []string{provision.ComponentPrograms}, patience: c.Timeout}, func(b *bus.Bus, _ *settle.Client) error {
		all, err := audit.List(ctx, b)
		if err != nil {
			return err
		}
		all = all[max(0, len(all)-max(0, c.Last)):]
		if c.JSON {
			out := json.NewEncoder(io.out)
			out.SetEscapeHTML(false)
			for i := range all {
				if err := out.Encode(&all[i]); err != nil {
					return err
				}
			}
			return nil
		}
		w := tabwriter.NewWriter(io.out, 0, 0, 2, ' ', 0)
		for i := range all {
			e := &all[i]
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", e.At.Format(time.RFC3339), e.UserText(), e.By, e.Command)
		}
		return w.Flush()
	})
}
