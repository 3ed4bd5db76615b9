package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program"
)

func spacesPage() page {
	return page{
		name: "spaces", pattern: "/spaces", nav: "Spaces", icon: "M2 3h5v4H2zM9 3h5v4H9zM2 9h5v4H2zM9 9h5v4H9z",
		params: []string{"q", "state", "page"}, everyone: true,
		open: func(c *Console, q *query) (view, error) {
			return view{load: func(ctx context.Context) (*shown, error) { return c.spaces(ctx, q) }, every: 2 * time.Second}, nil
		},
	}
}

// spaceRow is a space in the list.
type spaceRow struct {
	Name      string
	State     string // of its mark
	Word      string
	Text      string // why it is in that state
	Since     time.Time
	Partition int
	Owner     string
	Runs      string // the deployed program
	Rule      string
}

// rowsPerPage is how many spaces a page lists.
const rowsPerPage = 100

// spacesData is the list.
type spacesData struct {
	Query            string
	State            string
	Rows             []spaceRow
	Total, All       int // that match, and that there are
	Pages, Page      int
	Before, After    string
	From, To         int
	Filters          []filter
	Hosted, Deployed bool
	// Unnamed is how many spaces are stuck besides those in the list: some of their workers did not answer.
	Unnamed int
	// Events are those whose id is the query, if no space is called so.
	Events []history.EventRef
}

// filter is a link that filters the list.
type filter struct {
	Label, URL string
	Count      int
	Here       bool
}

// spaces loads the list of spaces.
func (c *Console) spaces(ctx context.Context, q *query) (*shown, error) {
	var names []string
	var f *fleet.Fleet
	var rules *program.Table
	err := atOnce(
		func() (err error) { names, err = c.shared.Spaces(ctx, 2*time.Second); return err },
		func() (err error) { f, err = c.shared.Fleet(ctx, 2*time.Second); return err },
		func() (err error) {
			if rules, err = c.shared.Rules(ctx, 5*time.Second); err != nil {
				rules = nil // the list is complete without it
			}
			return nil
		},
	)
	if err != nil {
		return nil, err
	}
	text := strings.ToLower(strings.TrimSpace(q.Param("q")))
	all := c.shared.Stuck(ctx, f, stuckAge)
	marks := markedSpaces(f, all, q.visitor.SeesSpace)
	d := &spacesData{Query: q.Param("q"), State: q.Param("state")}
	counts := map[string]int{}
	var found []spaceRow
	for _, name := range names {
		if !q.visitor.SeesSpace(name) {
			continue
		}
		d.All++
		if text != "" && !strings.Contains(strings.ToLower(name), text) {
			continue
		}
		row, marked := marks[name]
		if !marked {
			row = spaceRow{State: "clean", Word: "well"}
		}
		counts[row.Word]++
		if d.State != "" && d.State != row.Word {
			continue
		}
		row.Name = name
		found = append(found, row)
	}
	if q.visitor.SeesDeployment() == nil && text == "" {
		d.Unnamed = max(0, f.StuckCount-max(len(f.Stuck), len(all)))
		counts["stuck"] += d.Unnamed
		counts["well"] = max(0, counts["well"]-d.Unnamed)
	}
	slices.SortStableFunc(found, func(a, b spaceRow) int { return rank(&a) - rank(&b) })
	d.Total = len(found)
	d.page(q, found)
	for i := range d.Rows {
		d.Rows[i].place(f, rules)
		d.Hosted = d.Hosted || d.Rows[i].Runs != ""
	}
	d.filters(q, counts)
	stuck := counts["stuck"]
	s := &shown{Title: "No space is stuck", State: "clean", Name: "Spaces", CLI: "settle ls", Parts: []part{{ID: "list", Template: "spaces-list", Data: d}}, Data: d}
	switch {
	case d.All == 0:
		s.Title, s.State = "There are no spaces yet", "dormant"
	case text != "" && len(found) == 0:
		if d.Events = c.eventsCalled(ctx, strings.TrimSpace(q.Param("q")), q.visitor); len(d.Events) > 0 {
			s.Title, s.State = fmt.Sprintf("“%s” is an event", cut(q.Param("q"), 40)), "clean"
			break
		}
		s.Title, s.State = fmt.Sprintf("No space or event is called like “%s”", cut(q.Param("q"), 40)), "dormant"
	case stuck == 1:
		s.Title, s.State = "1 space is stuck", "parked"
	case stuck > 1:
		s.Title, s.State = display.Grouped(stuck)+" spaces are stuck", "parked"
	case counts[wordComputing] == 1:
		s.Title, s.State = "A computation of 1 space fails", "failed"
	case counts[wordComputing] > 1:
		s.Title, s.State = "Computations of "+display.Grouped(counts[wordComputing])+" spaces fail", "failed"
	}
	if text != "" && program.CheckSpaces(q.Param("q")+"*") == nil {
		s.CLI += " '" + q.Param("q") + "*'"
	}
	return s, nil
}

// maxFound is how many events of one id are listed, and findPatience how long they are looked for in the lanes.
const maxFound, findPatience = 20, 2 * time.Second

// eventsCalled returns the events in lanes that have an id, of spaces that the visitor may read. One that a space has sent to itself is in no lane.
func (c *Console) eventsCalled(ctx context.Context, id string, v sight) (list []history.EventRef) {
	if model.CheckAnyEventID(id) != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, findPatience)
	defer cancel()
	found, _ := c.cfg.Bus.FindEvents(ctx, "", id) // those of the lanes that could be read
	for i := range found {
		if m := &found[i]; v.SeesSpace(m.Space) && v.MayReadAll(m.Space) == nil && len(list) < maxFound {
			list = append(list, history.EventRef{Space: m.Space, Stream: m.Stream, Event: m.ID})
		}
	}
	slices.SortFunc(list, func(a, b history.EventRef) int {
		return cmp.Or(cmp.Compare(a.Space, b.Space), cmp.Compare(a.Stream, b.Stream))
	})
	return list
}

// Words for how spaces are.
const (
	wordComputing = "computation fails"
	wordUnsettled = "does not converge"
	wordFailing   = "task fails"
)

// spaceWords are the words for how spaces are, the worst first.
var spaceWords = []string{"stuck", wordComputing, wordUnsettled, wordFailing, "late", "busy", "well"}

// rank orders rows: those that need attention first.
func rank(r *spaceRow) int {
	return slices.Index(spaceWords, r.Word)
}

// stuckAge is how old the list of all stuck spaces may be, if there are more than workers name anyway.
const stuckAge = 5 * time.Second

// markedSpaces returns the spaces that processes report to be other than well; stuck are those that are stuck. The texts of a space name no other space that
// the visitor does not see.
func markedSpaces(f *fleet.Fleet, stuck []fleet.Stuck, sees func(space string) bool) map[string]spaceRow {
	all := map[string]spaceRow{}
	for i := range f.Workers {
		fig := f.Workers[i].Figures
		if fig == nil {
			continue
		}
		for _, b := range fig.Busiest {
			if b.Events == 0 {
				continue
			}
			all[b.Space] = spaceRow{State: "running", Word: "busy", Text: display.Count(b.Events, "event") + " wait"}
		}
		for _, l := range fig.Late {
			all[l.Space] = spaceRow{State: "waiting", Word: "late", Text: "timers or delayed events are due and not handled", Since: l.Since}
		}
		for i := range fig.Failing {
			if a := &fig.Failing[i]; a.GivenUp == 0 || !a.Handled && f.At.Sub(a.At) <= fleet.FailingFor {
				all[a.Space] = spaceRow{State: "failed", Word: wordFailing, Text: fleet.FailingText(a), Since: a.Since}
			}
		}
		for i := range fig.Unsettled {
			u := &fig.Unsettled[i]
			of, text := spacesOf(u), u.Round()
			if slices.ContainsFunc(of, func(space string) bool { return !sees(space) }) {
				text = ""
			}
			for _, space := range of {
				all[space] = spaceRow{State: "invalid", Word: wordUnsettled, Text: text, Since: u.Since}
			}
		}
	}
	markComputing(f, all, sees)
	for i := range stuck {
		s := &stuck[i]
		all[s.Space] = spaceRow{State: stateOfCause(s.Cause), Word: "stuck", Text: s.Reason, Since: s.Since}
	}
	return all
}

// markComputing marks the spaces with computations that fail, and those that read what follows from them.
func markComputing(f *fleet.Fleet, all map[string]spaceRow, sees func(space string) bool) {
	list, _, _ := f.FailingNodes()
	for i := range list {
		s := &list[i]
		of := "another space"
		if sees(s.Space) {
			of = "space " + s.Space
		}
		for _, reader := range s.Readers {
			all[reader] = spaceRow{State: "waiting", Word: wordComputing, Text: "it reads what follows from a computation of " + of + " that fails", Since: s.Since}
		}
	}
	for i := range list {
		s := &list[i]
		if slices.ContainsFunc(s.Readers, func(reader string) bool { return !sees(reader) }) {
			s.Readers = nil
		}
		all[s.Space] = spaceRow{State: "failed", Word: wordComputing, Text: fleet.FailingNodesText(s), Since: s.Since}
	}
}

// place fills in where a space is served and what it runs.
func (r *spaceRow) place(f *fleet.Fleet, rules *program.Table) {
	r.Partition = model.PartitionOf(r.Name, len(f.Partitions))
	r.Owner = f.Partitions[r.Partition].Owner
	if rules == nil {
		return
	}
	if rule := rules.Rule(r.Name); rule != nil {
		r.Runs, r.Rule = rule.Choice.Of(r.Name).String(), rule.Spaces
	}
}

// page cuts a page out of the rows.
func (d *spacesData) page(q *query, rows []spaceRow) {
	d.Pages = max(1, (len(rows)+rowsPerPage-1)/rowsPerPage)
	d.Page, _ = strconv.Atoi(q.Param("page")) // 0 for what is no number
	d.Page = min(max(1, d.Page), d.Pages)
	from := (d.Page - 1) * rowsPerPage
	d.Rows = rows[from:min(from+rowsPerPage, len(rows))]
	if d.From, d.To = from+1, from+len(d.Rows); len(rows) == 0 {
		d.From = 0
	}
	if d.Page > 1 {
		d.Before = q.Address("page", strconv.Itoa(d.Page-1))
	}
	if d.Page < d.Pages {
		d.After = q.Address("page", strconv.Itoa(d.Page+1))
	}
}

// filters are the links to the states that spaces are in.
func (d *spacesData) filters(q *query, counts map[string]int) {
	sum := 0
	for _, n := range counts { // any order
		sum += n
	}
	d.Filters = []filter{{"all", q.Address("state", "", "page", ""), sum, d.State == ""}}
	for _, word := range spaceWords {
		if counts[word] > 0 || d.State == word {
			d.Filters = append(d.Filters, filter{word, q.Address("state", word, "page", ""), counts[word], d.State == word})
		}
	}
}
