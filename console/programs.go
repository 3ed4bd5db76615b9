package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/program"
	"github.com/settlehq/settle/program/star"
)

func programsPage() page {
	return page{
		name: "programs", pattern: "/programs", nav: "Programs", icon: "M5 4L1 8l4 4M11 4l4 4-4 4M9 2L7 14",
		open: func(c *Console, q *query) (view, error) {
			return view{load: func(ctx context.Context) (*shown, error) { return c.listPrograms(ctx, "", q) }, every: 3 * time.Second}, nil
		},
	}
}

func programPage() page {
	return page{
		name: "program", pattern: "/programs/{program}", under: "programs",
		open: func(c *Console, q *query) (view, error) {
			if err := need("program", q.Path("program")); err != nil {
				return view{}, err
			}
			return view{load: func(ctx context.Context) (*shown, error) { return c.listPrograms(ctx, q.Path("program"), q) }, every: 3 * time.Second}, nil
		},
	}
}

func programURL(name string) string { return pathOf("programs", name) }

func sourceURL(name, version string) string { return pathOf("programs", name, version) }

// versionRow is a version of a program.
type versionRow struct {
	Program, Version string
	At               time.Time
	By, Note         string
	Bytes            int
	RunBy            []string // the patterns of the rules that name it
	Spaces           int      // that run it
	Before           string   // the version deployed before it
}

// ruleRow is a rule that assigns spaces to a version.
type ruleRow struct {
	*program.Rule
	Matching int // spaces that exist by it
	Back     program.Target
	CanBack  bool
}

// Part is what the names of the spaces have in common, for a search.
func (r *ruleRow) Part() string { return strings.Trim(r.Spaces, "*") }

// programsData is what the pages of programs show.
type programsData struct {
	Name     string
	Versions []versionRow
	Rules    []ruleRow
	Problems []string
	Labels   []string // names of programs that workers announce
	Spaces   int
	History  []choiceRow
}

// choiceRow is a former choice of a rule.
type choiceRow struct {
	Spaces string
	program.Choice
}

// programs loads the list of versions and rules, of one program or of all.
func (c *Console) listPrograms(ctx context.Context, name string, q *query) (*shown, error) {
	all, err := program.Versions(ctx, c.cfg.Bus, name)
	if err != nil {
		return nil, err
	}
	if name != "" && len(all) == 0 {
		return nil, &missing{fmt.Sprintf("No program %s was deployed here", name)}
	}
	table, err := program.Rules(ctx, c.cfg.Bus)
	if err != nil {
		return nil, err
	}
	names, err := c.shared.Spaces(ctx, 5*time.Second)
	if err != nil {
		return nil, err
	}
	d := &programsData{Name: name, Spaces: len(names)}
	d.fill(all, table, names)
	if f, err := c.shared.Fleet(ctx, 5*time.Second); err == nil {
		d.Labels = f.Programs()
		for i := range f.Workers {
			if fig := f.Workers[i].Figures; fig != nil {
				for _, p := range fig.Unrunnable {
					d.Problems = append(d.Problems, f.Workers[i].ID+": "+p)
				}
			}
		}
	}
	s := &shown{Name: "Programs", CLI: "settle versions", Data: d, Parts: []part{{ID: "rules", Template: "programs-rules", Data: d}, {ID: "versions", Template: "programs-versions", Data: d}, {ID: "history", Template: "programs-history", Data: d}}}
	if name != "" {
		s.Name, s.CLI, s.Crumbs = name, "settle versions "+name, []crumb{{"Programs", "/programs"}}
	}
	s.Title, s.State = d.title()
	return s, nil
}

func (d *programsData) title() (title, state string) {
	running := map[program.Target]bool{}
	for i := range d.Versions {
		if v := &d.Versions[i]; v.Spaces > 0 {
			running[program.Target{Program: v.Program, Version: v.Version}] = true
		}
	}
	what := "No space runs a deployed program"
	if d.Name != "" {
		what = "No space runs " + d.Name
	}
	switch {
	case len(d.Problems) > 0:
		return display.Count(len(d.Problems), "version") + " cannot run on a worker", "failed"
	case len(d.Versions) == 0:
		return "No program was deployed", "dormant"
	case len(running) == 0:
		return what, "dormant"
	}
	n := 0
	for i := range d.Versions {
		n += d.Versions[i].Spaces
	}
	name := d.Name
	if name == "" {
		name = "deployed programs"
	}
	return fmt.Sprintf("%s %s %s, in %s", display.Count(n, "space"), map[bool]string{true: "runs", false: "run"}[n == 1], name, display.Count(len(running), "version")), "clean"
}

// fill fills in the rows.
func (d *programsData) fill(all []program.Version, table *program.Table, spaces []string) {
	run, by, matching := map[program.Target]int{}, map[program.Target][]string{}, map[string]int{}
	for _, s := range spaces {
		if r := table.Rule(s); r != nil {
			run[r.Choice.Of(s)]++
			matching[r.Spaces]++
		}
	}
	for _, r := range table.All() {
		if d.Name != "" && r.Program != d.Name {
			continue
		}
		text := r.Spaces
		if r.Canary != nil {
			canary := program.Target{Program: r.Program, Version: r.Canary.Version}
			by[canary] = append(by[canary], fmt.Sprintf("%s (%d %%)", r.Spaces, r.Canary.Percent))
			text += fmt.Sprintf(" (%d %%)", 100-r.Canary.Percent)
		}
		by[r.Target] = append(by[r.Target], text)
		row := ruleRow{Rule: r, Matching: matching[r.Spaces]}
		row.Back, row.CanBack = r.Before()
		d.Rules = append(d.Rules, row)
		for _, h := range r.History {
			if d.Name != "" && h.Target != (program.Target{}) {
				d.History = append(d.History, choiceRow{r.Spaces, h})
			}
		}
	}
	before := map[string]string{}
	for i := range all {
		v := &all[i]
		t := v.Target()
		d.Versions = append(d.Versions, versionRow{v.Program, v.ID, v.At, v.By, v.Note, v.Size(), by[t], run[t], before[v.Program]})
		before[v.Program] = v.ID
	}
	slices.SortStableFunc(d.Versions, func(a, b versionRow) int { return b.At.Compare(a.At) })
	slices.SortStableFunc(d.History, func(a, b choiceRow) int { return b.At.Compare(a.At) })
}

func sourcePage() page {
	return page{
		name: "source", pattern: "/programs/{program}/{version}", under: "programs", params: []string{"against", "node"},
		open: func(c *Console, q *query) (view, error) {
			if err := need("program", q.Path("program")); err != nil {
				return view{}, err
			}
			return view{load: func(ctx context.Context) (*shown, error) { return c.source(ctx, q) }}, nil
		},
	}
}

// compiled are nodes and streams of a version, which never change.
type compiled struct {
	nodes   []star.Node
	streams []string
	err     string
}

// compilations are compiled versions.
type compilations struct {
	mu  sync.Mutex
	all map[program.Target]*compiled
}

// maxCompiled bounds the versions that are remembered.
const maxCompiled = 50

func (x *compilations) of(v *program.Version) *compiled {
	x.mu.Lock()
	defer x.mu.Unlock()
	if c := x.all[v.Target()]; c != nil {
		return c
	}
	if x.all == nil || len(x.all) >= maxCompiled {
		x.all = map[program.Target]*compiled{}
	}
	c := &compiled{}
	if p, err := star.Compile(v.Source(), star.Options{}); err != nil {
		c.err = err.Error()
	} else {
		c.nodes, c.streams = p.Nodes(), p.Streams()
	}
	x.all[v.Target()] = c
	return c
}

// sourceData is what the page of a version shows.
type sourceData struct {
	Version  *program.Version
	Against  *program.Version
	Files    []sourceFile
	Nodes    []nodeRow
	Streams  []string
	Diff     *program.Diff
	Others   []versionRow
	Broken   string
	Compared string // why there is no Diff
	q        *query
}

// nodeRow is a node of a program, and where it is.
type nodeRow struct {
	star.Node
	URL  string
	Here bool
	New  string // changed or new, against the other version
}

// sourceFile is a file with its lines.
type sourceFile struct {
	Name    string
	Lines   []sourceLine
	Changed int
}

// sourceLine is a line. Old and New are its numbers in the two versions, 0 for none; Key is the id of its element.
type sourceLine struct {
	Old, New int
	Key      string
	Text     string
	Kind     string // same, added, gone
	Node     string // that is declared there
	Here     bool
	Skipped  int // lines that are the same and not shown stand for themselves
}

func (c *Console) source(ctx context.Context, q *query) (*shown, error) {
	t := program.Target{Program: q.Path("program"), Version: q.Path("version")}
	v, err := program.Find(ctx, c.cfg.Bus, t)
	if _, is := errors.AsType[*program.MissingError](err); is {
		return nil, &missing{err.Error()}
	}
	if err != nil {
		return nil, err
	}
	d := &sourceData{Version: &v, q: q}
	if against := q.Param("against"); against != "" {
		a, err := program.Find(ctx, c.cfg.Bus, program.Target{Program: t.Program, Version: against})
		if _, is := errors.AsType[*program.MissingError](err); is {
			return nil, &missing{err.Error()}
		}
		if err != nil {
			return nil, err
		}
		d.Against = &a
	}
	all, err := program.Versions(ctx, c.cfg.Bus, t.Program)
	if err != nil {
		return nil, err
	}
	for i := range slices.Backward(all) {
		if all[i].ID != v.ID {
			d.Others = append(d.Others, versionRow{Program: all[i].Program, Version: all[i].ID, At: all[i].At})
		}
	}
	d.fill(&c.compilations)
	s := &shown{
		Name: v.Target().String(), CLI: "settle versions " + v.Program, Data: d, Crumbs: []crumb{{"Programs", "/programs"}, {v.Program, programURL(v.Program)}},
		Title: fmt.Sprintf("%s, deployed %s", v.Target(), v.At.UTC().Format("2006-01-02 15:04")), Parts: []part{{ID: "source", Template: "source-files", Data: d}},
	}
	if d.Against != nil {
		s.Title = fmt.Sprintf("%s against %s", v.Target(), d.Against.ID)
		if d.Diff != nil {
			s.Title = fmt.Sprintf("%s against %s: %s changed; %s", v.Target(), d.Against.ID, display.Count(d.changed(), "line"), d.Diff)
		}
	}
	if d.Broken != "" {
		s.State = "failed"
	}
	return s, nil
}

// changed is the number of lines that are different from those of the other version.
func (d *sourceData) changed() (n int) {
	for i := range d.Files {
		n += d.Files[i].Changed
	}
	return n
}

// fill compares the versions, and finds the lines of nodes.
func (d *sourceData) fill(cache *compilations) {
	now := cache.of(d.Version)
	d.Broken, d.Streams = now.err, slices.Clone(now.streams)
	slices.SortStableFunc(d.Streams, func(a, b string) int { return cmp.Compare(rankOfStream(a), rankOfStream(b)) })
	var before *compiled
	if d.Against != nil {
		if before = cache.of(d.Against); before.err == "" && now.err == "" {
			diff := program.Compare(before.nodes, now.nodes).WithStreams(before.streams, now.streams)
			d.Diff = &diff
		} else {
			d.Compared = "the nodes cannot be compared, since one of the versions does not compile here"
		}
	}
	places := map[string]string{}
	for _, name := range slices.Sorted(mapKeys(d.Version.Files, d.Against)) {
		f := sourceFile{Name: name}
		was := ""
		if d.Against != nil {
			was = d.Against.Files[name]
		}
		f.Lines = diffLines(linesOf(was), linesOf(d.Version.Files[name]), d.Against != nil)
		for i := range f.Lines {
			l := &f.Lines[i]
			l.Key = fmt.Sprintf("L%d", l.New)
			if name != d.Version.Entry {
				l.Key = fmt.Sprintf("%s-L%d", name, l.New)
			}
			if l.Kind != "same" {
				f.Changed++
			}
			if l.Kind == "gone" {
				l.Key = fmt.Sprintf("%s-gone-%d", name, l.Old)
				continue
			}
			if id := declared(l.Text, now.nodes); id != "" && places[id] == "" {
				places[id], l.Node = l.Key, id
				l.Here = id == d.q.Param("node")
			}
		}
		d.Files = append(d.Files, f)
	}
	for _, n := range now.nodes {
		r := nodeRow{Node: n, Here: n.ID == d.q.Param("node")}
		if key := places[n.ID]; key != "" {
			r.URL = "#" + key
		}
		if d.Diff != nil {
			switch {
			case slices.Contains(d.Diff.Changed, n.ID):
				r.New = "changed"
			case slices.Contains(d.Diff.New, n.ID):
				r.New = "new"
			}
		}
		d.Nodes = append(d.Nodes, r)
	}
}

// mapKeys iterates over the names of the files of two versions.
func mapKeys(files map[string]string, other *program.Version) func(func(string) bool) {
	return func(yield func(string) bool) {
		for name := range files { // any order: it is sorted
			if !yield(name) {
				return
			}
		}
		if other == nil {
			return
		}
		for name := range other.Files { // any order: it is sorted
			if _, is := files[name]; !is && !yield(name) {
				return
			}
		}
	}
}

// declaration matches what declares a node, with its name.
var declaration = regexp.MustCompile(`\b(?:compute|each|effect)\(\s*["']([^"']+)["']`)

// declared returns the node that a line declares, "" if it declares none.
func declared(line string, nodes []star.Node) string {
	m := declaration.FindStringSubmatch(line)
	if m == nil || !slices.ContainsFunc(nodes, func(n star.Node) bool { return n.ID == m[1] }) {
		return ""
	}
	return m[1]
}

// programActions is the rollback.
func programActions() []action {
	return []action{{name: "rollback", may: func(a *act) error { return a.Visitor.MayOperate("") }, preview: previewRollback, do: doRollback}}
}

// back returns the rules that a rollback changes, with what they are to be, and the number of spaces.
func (a *act) backRules(ctx context.Context) (list []ruleRow, spaces int, err error) {
	name := a.Get("program")
	if err := need("program", name); err != nil {
		return nil, 0, err
	}
	table, err := program.Rules(ctx, a.cfg.Bus)
	if err != nil {
		return nil, 0, err
	}
	names, err := a.shared.Spaces(ctx, 5*time.Second)
	if err != nil {
		return nil, 0, err
	}
	var to program.Target
	if version := a.Get("version"); version != "" {
		v, err := program.Find(ctx, a.cfg.Bus, program.Target{Program: name, Version: version})
		if err != nil {
			return nil, 0, invalidForm("%v", err)
		}
		to = v.Target()
	}
	for _, r := range table.About(name) {
		if only := a.Get("spaces"); only != r.Spaces && (only != "" || r.Pinned) {
			continue
		}
		row := ruleRow{Rule: r, Back: to, CanBack: true}
		if to == (program.Target{}) {
			if row.Back, row.CanBack = r.Before(); !row.CanBack {
				continue
			}
		}
		for _, s := range names {
			if table.Rule(s) == r && r.Choice.Of(s) != row.Back {
				row.Matching++
			}
		}
		spaces += row.Matching
		list = append(list, row)
	}
	if len(list) == 0 {
		return nil, 0, invalidForm("There is nothing to go back to: no rule has spaces run program %s, or none has run another version", name)
	}
	return list, spaces, nil
}

func (a *act) rollbackCommand() string {
	command := "settle rollback " + a.Get("program")
	if v := a.Get("version"); v != "" {
		command += " " + v
	}
	if s := a.Get("spaces"); s != "" {
		command += " --space " + shellWord(s)
	}
	return command
}

func previewRollback(ctx context.Context, a *act) (*preview, error) {
	rules, spaces, err := a.backRules(ctx)
	if err != nil {
		return nil, err
	}
	text := ""
	for i := range rules {
		r := &rules[i]
		text += fmt.Sprintf("Spaces %s: %s, in place of %s. ", r.Spaces, r.Back, r.Target)
		if warning := program.UnreadableText(r.Back, program.Unreadable(ctx, a.cfg.Bus, r.Targets(), r.Back)); warning != "" {
			text += "Warning: " + warning + ". "
		}
	}
	return &preview{
		Title: fmt.Sprintf("Roll %s back in %s", a.Get("program"), display.Count(spaces, "space")), Button: "Roll back", Back: programURL(a.Get("program")), CLI: a.rollbackCommand(),
		Text: text + "State stays: documents, timers, watches. Nodes with other code run again where they are needed.",
		Ask:  []field{{Name: "note", Label: "Reason", Hint: "for the history"}},
	}, nil
}

func doRollback(ctx context.Context, a *act) (*done, error) {
	rules, spaces, err := a.backRules(ctx)
	if err != nil {
		return nil, err
	}
	by := a.Visitor.Name()
	if by == "" {
		by = "console"
	}
	for i := range rules {
		r := &rules[i]
		_, err := program.Decide(ctx, a.cfg.Bus, r.Spaces, func(is program.Rule) (program.Choice, error) {
			if is.Program != a.Get("program") {
				return program.Choice{}, invalidForm("Spaces %s run %s meanwhile", r.Spaces, is.Target)
			}
			return program.Choice{Target: r.Back, Pinned: is.Pinned, By: by, At: time.Now(), Note: a.Get("note")}, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return &done{Text: fmt.Sprintf("%s changes over", display.Count(spaces, "space")), To: programURL(a.Get("program")), Command: a.rollbackCommand()}, nil
}
