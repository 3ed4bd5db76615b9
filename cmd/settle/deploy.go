package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program"
	"github.com/settlehq/settle/program/star"
)

// deployCmd is `settle deploy`.
type deployCmd struct {
	connection
	File    string        `arg:"" help:"The file of the program; files that it loads are in the same directory." type:"existingfile"`
	Name    string        `help:"The name of the program. Default: the name of the file." placeholder:"NAME"`
	Space   []string      `help:"Spaces that run it: one (airport-1), a prefix (airport-*), or all others (*). Repeatable. Default: the spaces that run the program now; for a new program, the spaces whose names begin with its name." placeholder:"SPACES"`
	Canary  int           `help:"Percentage of those spaces that run the new version; the others keep theirs. Deploy again without this flag to include all." placeholder:"N"`
	Note    string        `help:"The reason, for the history." placeholder:"TEXT"`
	By      string        `help:"Your name, for the history. Default: this user at this host." placeholder:"NAME"`
	Timeout time.Duration `help:"How long the command may take." default:"20s"`
	DryRun  bool          `help:"Compile, compare and print; store nothing."`
	JSON    bool          `name:"json" help:"Print JSON."`
}

// deployment is what a deployment does, or would do.
type deployment struct {
	Program string       `json:"program"`
	Version string       `json:"version"`
	New     bool         `json:"new"` // false: this version had been deployed before
	Bytes   int          `json:"bytes"`
	Nodes   int          `json:"nodes"`
	Streams []string     `json:"streams"`
	Before  string       `json:"before,omitzero"` // the version with which it is compared
	Diff    program.Diff `json:"diff"`
	Spaces  []concerned  `json:"spaces"`
	Canary  int          `json:"canary_percent,omitzero"`
	DryRun  bool         `json:"dry_run,omitzero"`

	uncompared error // why there is no Diff although there is something before
}

// concerned is a rule that changes, and the spaces that exist by it.
type concerned struct {
	Spaces string   `json:"spaces"`
	Before string   `json:"before,omitzero"` // program@version
	There  []string `json:"there"`           // that exist and change over
	fresh  bool
}

// Run deploys a file.
func (c *deployCmd) Run(ctx context.Context, io streams) error {
	name := c.Name
	if name == "" {
		name = program.NameOf(c.File)
	}
	if err := model.CheckName("program", name); err != nil {
		return usage(fmt.Errorf("%w; give it a name: --name NAME", err))
	}
	for _, s := range c.Space {
		if err := program.CheckSpaces(s); err != nil {
			return usage(err)
		}
	}
	if c.Canary < 0 || c.Canary > 99 {
		return usage(fmt.Errorf("--canary %d: use 1 to 99 percent, or leave it out for all", c.Canary))
	}
	source, err := program.Read(name, c.File)
	if err != nil {
		return err
	}
	compiled, err := star.Compile(source, star.Options{})
	if err != nil {
		return fmt.Errorf("the program was not deployed:\n%w", err)
	}
	if compiled.Empty() {
		return fmt.Errorf("the program was not deployed: %s registers nothing; a program has a handle, compute, each or effect", c.File)
	}
	v, err := program.NewVersion(source, c.by(), c.Note, time.Now())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	return c.use(ctx, io, need{shared: []string{provision.ComponentPrograms}, patience: c.Timeout}, func(b *bus.Bus, _ *settle.Client) error {
		d, err := c.plan(ctx, b, v, compiled)
		if err == nil && !c.DryRun {
			err = c.carryOut(ctx, b, v, d)
		}
		if err != nil {
			return err
		}
		if c.JSON {
			return fleetJSON(io.out, d)
		}
		d.print(io)
		return nil
	})
}

func (c *deployCmd) by() string { return author(c.By) }

// author returns the name of the user for the history.
func author(by string) string {
	if by != "" {
		return by
	}
	if u, err := user.Current(); err == nil {
		by = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		by += "@" + host
	}
	return by
}

// plan determines the effect of the deployment.
func (c *deployCmd) plan(ctx context.Context, b *bus.Bus, v program.Version, compiled *star.Program) (*deployment, error) {
	table, err := program.Rules(ctx, b)
	if err != nil {
		return nil, err
	}
	spaces, err := b.Spaces(ctx)
	if err != nil && !errors.Is(err, model.ErrNoStream) { // those of partitions whose log is missing are not listed
		return nil, err
	}
	d := &deployment{
		Program: v.Program, Version: v.ID, Bytes: v.Size(), Nodes: len(compiled.Nodes()), Streams: compiled.Streams(),
		Canary: c.Canary, DryRun: c.DryRun,
	}
	before := program.Target{}
	for _, pattern := range c.patterns(table, v.Program) {
		x := concerned{Spaces: pattern, fresh: true}
		for _, r := range table.All() {
			if r.Spaces == pattern {
				x.Before, x.fresh = r.Target.String(), false
				if r.Program == v.Program {
					before = r.Target
				}
			}
		}
		d.Spaces = append(d.Spaces, x)
	}
	if err := c.checkCanary(d, before); err != nil {
		return nil, err
	}
	d.compare(ctx, b, before, compiled)
	d.findConcerned(table, v, spaces)
	return d, nil
}

// patterns returns the spaces that the deployment applies to.
func (c *deployCmd) patterns(table *program.Table, name string) []string {
	if len(c.Space) > 0 {
		return slices.Compact(slices.Sorted(slices.Values(c.Space)))
	}
	var patterns []string
	for _, r := range table.About(name) {
		if !r.Pinned {
			patterns = append(patterns, r.Spaces)
		}
	}
	if len(patterns) == 0 {
		return []string{name + "*"}
	}
	return patterns
}

// checkCanary refuses a canary if the other spaces have no version to keep.
func (c *deployCmd) checkCanary(d *deployment, before program.Target) error {
	if c.Canary == 0 {
		return nil
	}
	for _, x := range d.Spaces {
		if !strings.HasPrefix(x.Before, d.Program+"@") {
			return usage(fmt.Errorf("--canary %d: spaces %s do not run program %s, so there is nothing for the others to stay with; deploy a first version without --canary", c.Canary, x.Spaces, d.Program))
		}
	}
	if before.Version == d.Version {
		return usage(fmt.Errorf("--canary %d: %s is what the spaces run already", c.Canary, before))
	}
	return nil
}

// compare compares with the previous version; a previous version that does not compile is no error.
func (d *deployment) compare(ctx context.Context, b *bus.Bus, before program.Target, compiled *star.Program) {
	d.Diff = program.Compare(nil, compiled.Nodes())
	if before.Version == "" {
		return
	}
	d.Before = before.Version
	old, err := program.Load(ctx, b, before)
	if err == nil {
		var was *star.Program
		if was, err = star.Compile(old.Source(), star.Options{}); err == nil {
			d.Diff = program.Compare(was.Nodes(), compiled.Nodes()).WithStreams(was.Streams(), compiled.Streams())
		}
	}
	d.uncompared = err
}

// findConcerned lists the spaces whose version changes.
func (d *deployment) findConcerned(table *program.Table, v program.Version, spaces []string) {
	after := table
	for _, x := range d.Spaces {
		after = after.With(x.Spaces, d.choice(after.Exactly(x.Spaces), v))
	}
	for i := range d.Spaces {
		x := &d.Spaces[i]
		x.There = []string{}
		for _, s := range spaces {
			was, _ := table.Of(s)
			if is, _ := after.Of(s); is != was && after.Rule(s).Spaces == x.Spaces {
				x.There = append(x.There, s)
			}
		}
	}
}

// choice returns the new contents of a rule.
func (d *deployment) choice(r program.Choice, v program.Version) program.Choice {
	c := program.Choice{Target: v.Target(), By: v.By, At: v.At, Note: v.Note}
	if d.Canary > 0 {
		c.Target, c.Canary = r.Target, &program.Canary{Version: v.ID, Percent: d.Canary}
	}
	return c
}

// errMoved is returned if another deployment was made after the plan.
var errMoved = errors.New("another deployment was made in the meantime; check it, and deploy again")

func (c *deployCmd) carryOut(ctx context.Context, b *bus.Bus, v program.Version, d *deployment) error {
	stored, created, err := program.Publish(ctx, b, v)
	if err != nil {
		return operators(err)
	}
	d.New = created
	stored.By, stored.At, stored.Note = v.By, v.At, v.Note // of this deployment, not of the first
	for _, x := range d.Spaces {
		_, err := program.Decide(ctx, b, x.Spaces, func(r program.Rule) (program.Choice, error) {
			is := ""
			if r.Target != (program.Target{}) {
				is = r.Target.String()
			}
			if is != x.Before {
				return program.Choice{}, fmt.Errorf("spaces %s run %s now, not %s: %w", x.Spaces, or(is, "nothing"), or(x.Before, "nothing"), errMoved)
			}
			return d.choice(r.Choice, stored), nil
		})
		if err != nil {
			return operators(err)
		}
	}
	return nil
}

func or(s, instead string) string {
	if s == "" {
		return instead
	}
	return s
}

// operators adds the required role to a permissions error.
func operators(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, model.ErrForbidden) || strings.Contains(strings.ToLower(err.Error()), "permissions violation") {
		return fmt.Errorf("%w; that needs the role operator (settle permissions)", err)
	}
	return err
}

func (d *deployment) print(io streams) {
	s, _ := sheetFor(io.out)
	line := func(what, text string) {
		fmt.Fprintf(io.out, "  %s %s\n", s.paint(faint, fmt.Sprintf("%-9s", what)), text)
	}
	fmt.Fprintf(io.out, "%s  %s, %s, %s\n", s.paint(bold, d.Program+"@"+d.Version), display.Count(d.Nodes, "node"), display.Count(len(d.Streams), "stream"), size(d.Bytes))
	switch {
	case d.Before == "":
	case d.Before == d.Version:
		line("before", "the same version")
	case d.uncompared != nil:
		line("before", fmt.Sprintf("%s, which cannot be compared: %v", d.Before, d.uncompared))
	default:
		line("before", d.Before+": "+d.Diff.String())
		for what, nodes := range d.Diff.Lists() {
			line(what, strings.Join(nodes, ", "))
		}
	}
	for _, x := range d.Spaces {
		line("spaces", x.String(d.Canary))
	}
	switch {
	case d.DryRun:
		fmt.Fprintln(io.out, "nothing was stored (--dry-run)")
	case d.Canary > 0:
		fmt.Fprintf(io.out, "deployed to %d percent. All: settle deploy without --canary; back: settle rollback %s\n", d.Canary, d.Program)
	case d.Before == "" || d.Before == d.Version:
		fmt.Fprintln(io.out, "deployed; workers load it as they are notified")
	default:
		fmt.Fprintf(io.out, "deployed; workers load it as they are notified. Back: settle rollback %s\n", d.Program)
	}
}

func (x *concerned) String(canary int) string {
	text := x.Spaces
	switch {
	case x.fresh:
		text += " (a new rule)"
	case x.Before != "":
		text += ", which ran " + x.Before
	}
	switch n := len(x.There); {
	case n == 0 && canary > 0:
		text += "; none of those that exist is among the canaries"
	case n == 0:
		text += "; none exists that changes over"
	case n <= 5:
		text += "; " + strings.Join(x.There, ", ") + " changes over"
		if n > 1 {
			text = strings.TrimSuffix(text, "changes over") + "change over"
		}
	default:
		text += fmt.Sprintf("; %d change over (%s, ...)", n, strings.Join(x.There[:3], ", "))
	}
	return text
}

func size(bytes int) string {
	if bytes < 10_000 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%d KB", (bytes+500)/1000)
}
