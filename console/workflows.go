package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/runs"
)

const (
	// searched is how many spaces a search for runs or schedules reads, and searches how many at a time. A space is read for a single document,
	// from its checkpoint and the log after it.
	searched, searches = 300, 16
	// describedSpaces is in how many spaces a search reads the attributes of runs although it does not ask for any.
	describedSpaces = 40
	// runsPerPage is how many runs a page lists.
	runsPerPage = 100
	// withoutRuns is how long a space without runs is not read again by a search in all spaces.
	withoutRuns = 30 * time.Second
)

func workflowsPage() page {
	return page{
		name: "workflows", pattern: "/workflows", nav: "Workflows", icon: "M2 2h4v4H2zM10 10h4v4h-4zM4 6v6h6M10 2h4v4h-4z",
		params: []string{"space", "workflow", "state", "since", "attr", "q", "after"}, everyone: true,
		open: func(c *Console, q *query) (view, error) {
			if _, err := runFilter(q, time.Now()); err != nil {
				return view{}, &missing{err.Error()}
			}
			return view{load: func(ctx context.Context) (*shown, error) { return c.workflows(ctx, q) }, every: 2 * time.Second}, nil
		},
	}
}

// runRow is a run in a list.
type runRow struct {
	Space, Run, Workflow string
	State                string // of its mark
	Word                 string
	Started, Ended       time.Time
	Parent               *runs.RunName
	Attributes           string
	Took                 time.Duration // of one that has ended
}

func runURL(space, run string) string { return pathOf("spaces", space, "runs", run) }

// runState is the mark of a run.
func runState(s runs.State) string {
	switch s {
	case runs.Running:
		return "running"
	case runs.Done:
		return "clean"
	case runs.Failed:
		return "failed"
	}
	return "dormant"
}

func rowOfRun(space string, s *runs.Status) runRow {
	r := runRow{Space: space, Run: s.ID, Workflow: s.Workflow, State: runState(s.State), Word: string(s.State), Started: msTime(s.Started), Ended: msTime(s.Ended), Parent: s.Parent}
	if !r.Ended.IsZero() {
		r.Took = r.Ended.Sub(r.Started)
	}
	var list []string
	for k, v := range s.Attributes.All() {
		text, is := v.AsString()
		if !is {
			text = v.String()
		}
		list = append(list, k+"="+text)
	}
	slices.Sort(list)
	r.Attributes = cut(strings.Join(list, " "), maxInline)
	return r
}

// msTime is a time in milliseconds since 1970, zero for 0.
func msTime(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// runFilter is the filter of an address.
func runFilter(q *query, now time.Time) (*runs.Filter, error) {
	f := &runs.Filter{Workflow: q.Param("workflow"), State: runs.State(q.Param("state")), Limit: runs.MaxFound}
	if f.State != "" && !slices.Contains([]runs.State{runs.Running, runs.Done, runs.Failed, runs.Cancelled}, f.State) {
		return nil, fmt.Errorf("%q is no state of a run: use running, done, failed or cancelled", cut(string(f.State), 40))
	}
	if s := q.Param("since"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil || d <= 0 {
			return nil, fmt.Errorf("%q is no duration: write since=1h, or 30m", cut(s, 40))
		}
		f.Since = now.Add(-d).UnixMilli()
	}
	if a := q.Param("attr"); a != "" {
		key, text, is := strings.Cut(a, "=")
		if !is || key == "" {
			return nil, fmt.Errorf("%q is no attribute: write KEY=VALUE", cut(a, 40))
		}
		f.Attributes = map[string]model.Value{key: scalarOf(text)}
	}
	if s := q.Param("space"); s != "" {
		return f, model.CheckName("space", s)
	}
	return f, nil
}

// scalarOf reads an attribute as the command does: a scalar in JSON, or else a text.
func scalarOf(text string) model.Value {
	v, err := model.ParseValue([]byte(text))
	if err != nil || v.Kind() == model.KindObject || v.Kind() == model.KindArray || v.IsNull() {
		return model.String(text)
	}
	return v
}

// workflowsData is the list of runs.
type workflowsData struct {
	Space, Workflow, State, Since, Attr, Query string

	Rows           []runRow
	Total          int
	Filters, Kinds []filter
	Next           string
	Spaces         int // that were searched, of All
	All            int
	Unread         []string // why some were not
	One            bool     // of one space
	Any            bool     // there are runs, whatever the filter
}

// Attributed reports whether a run of the list has attributes, or a parent.
func (d *workflowsData) Attributed() bool {
	return slices.ContainsFunc(d.Rows, func(r runRow) bool { return r.Attributes != "" || r.Parent != nil })
}

// workflows loads the list of runs.
func (c *Console) workflows(ctx context.Context, q *query) (*shown, error) {
	f, err := runFilter(q, time.Now())
	if err != nil {
		return nil, err
	}
	d := &workflowsData{Space: q.Param("space"), Workflow: f.Workflow, State: string(f.State), Since: q.Param("since"), Attr: q.Param("attr"), Query: q.Param("q"), One: q.Param("space") != ""}
	found, err := c.searchRuns(ctx, q, f, d)
	if err != nil {
		return nil, err
	}
	d.filters(q, found)
	found = slices.DeleteFunc(found, func(r runRow) bool { return d.State != "" && r.Word != d.State })
	d.cutPage(q, found)
	s := &shown{Name: "Workflows", CLI: listCommand(d), Data: d, Parts: []part{{ID: "list", Template: "workflows-list", Data: d}}}
	s.Title, s.State = d.title()
	return s, nil
}

// listCommand is the command that prints the same.
func listCommand(d *workflowsData) string {
	text := "settle workflow list " + cmp.Or(d.Space, "SPACE")
	for _, f := range [][2]string{{"--workflow", d.Workflow}, {"--state", d.State}, {"--since", d.Since}, {"--attribute", d.Attr}} {
		if f[1] != "" {
			text += " " + f[0] + " " + shellWord(f[1])
		}
	}
	return text
}

// shellWord is a word of a command line.
func shellWord(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=@,%+", r))
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func (d *workflowsData) title() (title, state string) {
	n := func(word string) int {
		for _, f := range d.Filters {
			if f.Label == word {
				return f.Count
			}
		}
		return 0
	}
	switch failed, running := n("failed"), n("running"); {
	case !d.Any:
		return "No run of a workflow was started here", "dormant"
	case d.Total == 0:
		return "No run matches", "dormant"
	case failed > 0:
		return display.Count(failed, "run") + " failed", "failed"
	case running > 0:
		return display.Count(running, "run") + " under way, none has failed", "running"
	}
	return "No run has failed", "clean"
}

// searchRuns finds runs in a space, or in all that the visitor may read.
func (c *Console) searchRuns(ctx context.Context, q *query, f *runs.Filter, d *workflowsData) ([]runRow, error) {
	spaces, err := c.searchSpaces(ctx, q)
	if err != nil {
		return nil, err
	}
	d.All = len(spaces)
	spaces = spaces[:min(len(spaces), searched)]
	d.Spaces = len(spaces)
	every := *f
	every.State = "" // the links of the states count all
	text := strings.ToLower(d.Query)
	found := make([]foundRuns, len(spaces))
	d.Unread = eachSpace(ctx, spaces, func(ctx context.Context, i int) error {
		if !d.One && c.without.has("runs "+spaces[i]) {
			return nil
		}
		err := found[i].read(ctx, c.cfg.Bus, spaces[i], every, len(spaces) <= describedSpaces)
		if err == nil && !found[i].any {
			c.without.add("runs " + spaces[i])
		}
		return err
	})
	if len(d.Unread) > 0 && len(d.Unread) == len(spaces) {
		return nil, errors.New(d.Unread[0])
	}
	var all []runRow
	for i := range found {
		d.Any = d.Any || found[i].any
		for _, r := range found[i].rows {
			if text == "" || strings.Contains(strings.ToLower(r.Run), text) || strings.Contains(strings.ToLower(r.Space), text) {
				all = append(all, r)
			}
		}
	}
	slices.SortFunc(all, func(a, b runRow) int { return cmp.Compare(b.place(), a.place()) })
	return all, nil
}

// foundRuns are the runs of a space that a filter selects. any is set if the space has runs at all.
type foundRuns struct {
	rows []runRow
	any  bool
}

// read reads them; with attributes, if the filter needs them or whole is set.
func (f *foundRuns) read(ctx context.Context, bus Bus, space string, filter runs.Filter, whole bool) error {
	p, err := runs.Find(&filter, func(doc string) (model.Value, error) {
		if doc != runs.Index && !whole && filter.Attributes == nil {
			return model.Value{}, nil
		}
		d, err := history.Read(ctx, bus, space, doc)
		if err != nil {
			return model.Value{}, err
		}
		f.any = f.any || doc == runs.Index && d.Value.Len() > 0
		return d.Value, nil
	})
	if err != nil {
		return err
	}
	for _, s := range p.Runs {
		f.rows = append(f.rows, rowOfRun(space, s))
	}
	return nil
}

// filters are the links to the states and workflows of runs.
func (d *workflowsData) filters(q *query, found []runRow) {
	states, kinds := map[string]int{}, map[string]int{}
	for i := range found {
		states[found[i].Word]++
		kinds[found[i].Workflow]++
	}
	d.Filters = []filter{{"all", q.Address("state", "", "after", ""), len(found), d.State == ""}}
	for _, word := range []string{"failed", "running", "cancelled", "done"} {
		if states[word] > 0 || d.State == word {
			d.Filters = append(d.Filters, filter{word, q.Address("state", word, "after", ""), states[word], d.State == word})
		}
	}
	names := slices.Sorted(maps.Keys(kinds))
	if len(names) < 2 && d.Workflow == "" {
		return
	}
	if d.Workflow != "" {
		d.Kinds = append(d.Kinds, filter{"all workflows", q.Address("workflow", "", "after", ""), 0, false})
	}
	for _, name := range names[:min(len(names), 12)] {
		d.Kinds = append(d.Kinds, filter{name, q.Address("workflow", name, "after", ""), kinds[name], d.Workflow == name})
	}
}

// cutPage cuts the page out of the runs that comes after a run.
func (d *workflowsData) cutPage(q *query, found []runRow) {
	d.Total = len(found)
	from := 0
	if after := q.Param("after"); after != "" {
		from = slices.IndexFunc(found, func(r runRow) bool { return r.place() < after })
		if from < 0 {
			from = len(found)
		}
	}
	d.Rows = found[from:min(from+runsPerPage, len(found))]
	if from+runsPerPage < len(found) {
		d.Next = q.Address("after", d.Rows[len(d.Rows)-1].place())
	}
}

// place orders runs: later ones have larger places.
func (r *runRow) place() string {
	return fmt.Sprintf("%013d %s %s", max(0, r.Started.UnixMilli()), r.Space, r.Run)
}
