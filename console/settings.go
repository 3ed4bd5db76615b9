package console

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/access"
	"github.com/settlehq/settle/bus/roles"
	"github.com/settlehq/settle/internal/audit"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/options"
)

func settingsPage() page {
	return page{
		name: "settings", pattern: "/settings", nav: "Settings", icon: "M3 4h10M3 8h10M3 12h10M6 2v4M10 6v4M5 10v4", params: []string{"q"},
		open: func(c *Console, q *query) (view, error) {
			return view{load: func(ctx context.Context) (*shown, error) { return c.settings(ctx, q) }, every: 10 * time.Second}, nil
		},
	}
}

// optionRow is an option of a worker.
type optionRow struct{ Path, Flag, Env, Help, Default string }

// settingsData is what the page shows.
type settingsData struct {
	Prefix     string
	Partitions int
	Horizon    time.Duration
	Version    string
	Closed     bool
	Rules      []access.Rule
	Broken     string // rules that cannot be decoded
	// Disallowed are the last events that no rule allows.
	Disallowed []denial
	Roles      []roles.Role
	Options    []optionRow
	All        int
	Query      string
}

func (c *Console) settings(ctx context.Context, q *query) (*shown, error) {
	rules, err := access.List(ctx, c.cfg.Bus)
	if rules == nil {
		return nil, err
	}
	b := c.cfg.Bus
	d := &settingsData{Prefix: b.Prefix(), Partitions: b.Partitions(), Horizon: b.Horizon(), Version: c.cfg.Version, Closed: rules.Closed(), Rules: rules.All(), Roles: roles.Of(b.Prefix(), b.Partitions()), Query: q.Param("q")}
	if err != nil {
		d.Broken = err.Error()
	}
	f, err := c.shared.Fleet(ctx, time.Second)
	if err != nil {
		return nil, err
	}
	d.Disallowed = denialsOf(f)
	find := strings.ToLower(d.Query)
	for _, o := range options.Of(&settle.WorkerConfig{}) {
		d.All++
		if find == "" || strings.Contains(strings.ToLower(o.Path+" "+o.Flag+" "+o.Help), find) {
			d.Options = append(d.Options, optionRow{o.Path, o.Flag, o.Env, o.Help, o.Default})
		}
	}
	s := &shown{Name: "Settings", CLI: "settle who-may", Data: d, State: "clean", Parts: []part{{ID: "deployment", Template: "settings-deployment", Data: d}, {ID: "rules", Template: "settings-rules", Data: d}, {ID: "disallowed", Template: "settings-disallowed", Data: d}, {ID: "roles", Template: "settings-roles", Data: d}, {ID: "options", Template: "settings-options", Data: d}}}
	switch {
	case d.Broken != "":
		s.Title, s.State = "Rules about access cannot be read, and allow nothing", "failed"
	case !d.Closed:
		s.Title, s.State = "There is no rule about access: what the servers let through is allowed", "dormant"
	default:
		s.Title = fmt.Sprintf("%s about access: what none allows is refused", display.Count(len(d.Rules), "rule"))
	}
	return s, nil
}

func auditPage() page {
	return page{
		name: "audit", pattern: "/audit", nav: "Audit", icon: "M4 2h8v12H4zM6 5h4M6 8h4M6 11h2", params: []string{"q", "before"},
		open: func(c *Console, q *query) (view, error) {
			return view{load: func(ctx context.Context) (*shown, error) { return c.audit(ctx, q) }, every: 3 * time.Second}, nil
		},
	}
}

// auditPerPage is how many entries a page lists.
const auditPerPage = 100

// auditData is the trail, the newest entry first.
type auditData struct {
	Entries    []audit.Entry
	Total, All int
	Query      string
	Older      string
	Newest     bool
	NewestURL  string
}

func (c *Console) audit(ctx context.Context, q *query) (*shown, error) {
	all, err := audit.List(ctx, c.cfg.Bus)
	if err != nil {
		return nil, err
	}
	d := &auditData{All: len(all), Query: q.Param("q"), Newest: q.Param("before") == "", NewestURL: q.Address("before", "")}
	find := strings.ToLower(d.Query)
	slices.Reverse(all)
	before, err := time.Parse(time.RFC3339Nano, q.Param("before"))
	for _, e := range all {
		if find != "" && !strings.Contains(strings.ToLower(e.Command+" "+e.By+" "+e.User), find) {
			continue
		}
		if d.Total++; err == nil && !e.At.Before(before) {
			continue
		}
		if len(d.Entries) == auditPerPage {
			if d.Older == "" {
				d.Older = q.Address("before", d.Entries[auditPerPage-1].At.Format(time.RFC3339Nano))
			}
			continue
		}
		d.Entries = append(d.Entries, e)
	}
	s := &shown{Name: "Audit", CLI: "settle audit", Data: d, Parts: []part{{ID: "entries", Template: "audit-entries", Data: d}}}
	switch {
	case d.All == 0:
		s.Title, s.State = "No command has changed the deployment", "dormant"
	case d.Total == 0:
		s.Title, s.State = "No entry matches", "dormant"
	default:
		s.Title, s.State = display.Count(d.Total, "command")+" changed the deployment", ""
	}
	return s, nil
}
