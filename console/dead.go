package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program"
)

const (
	// deadRead bounds the open letters that a console reads, the oldest first.
	deadRead = 20_000
	// deadAge is how old a reading of them may be while their number changes.
	deadAge = 5 * time.Second
	// deadGroups and deadPerPage bound the rows of the page.
	deadGroups, deadPerPage = 50, 100
)

func deadPage() page {
	return page{
		name: "dead", pattern: "/dead", nav: "Dead letters", icon: "M2 4h12v9H2zM2 4l6 5 6-5", params: []string{"group", "space", "stream", "q", "page"}, everyone: true,
		open: func(c *Console, q *query) (view, error) {
			return view{load: func(ctx context.Context) (*shown, error) { return c.deadLetters(ctx, q) }, every: 2 * time.Second}, nil
		},
	}
}

// fewDead is up to how many open letters are read to say on the overview what most of them failed with.
const fewDead = 1000

// mostDead says what most of the open letters failed with, as the end of a sentence; "" if there is none, or if there are too many to read.
func (c *Console) mostDead(ctx context.Context, q *query, counts *history.DeadCounts) string {
	if counts.Open == 0 || counts.Open > fewDead {
		return ""
	}
	rows, _, err := c.openDead(ctx)
	if err != nil {
		return "" // their number is known
	}
	d := &deadData{}
	d.group(q, matchDead(rows, q.visitor.MayReadAll, "", "", "", ""))
	if len(d.Groups) == 0 {
		return ""
	}
	g, most := d.Groups[0], ""
	if len(d.Groups) > 1 {
		most = display.Grouped(g.Count) + " of "
	}
	return "; " + most + g.Stream + ": " + cut(g.Example, 160)
}

// deadRow is an open letter.
type deadRow struct {
	Space, Stream, Event string
	Outcome              model.Outcome
	Error                string // its first line
	Attempts             int
	Ended                time.Time
	cause                string
	key                  string // of its group
}

// deadState is the mark of an outcome.
func deadState(o model.Outcome) string {
	if o == model.Refused {
		return "quarantined"
	}
	return "failed"
}

// deadCache has the open letters. They are read again when their number has changed.
type deadCache struct {
	mu     sync.Mutex
	counts history.DeadCounts
	rows   []deadRow
	at     time.Time
}

// openDead returns the open letters, at most deadRead of them, and the counts of all.
func (c *Console) openDead(ctx context.Context) ([]deadRow, history.DeadCounts, error) {
	counts, err := c.shared.Dead(ctx, time.Second)
	if err != nil {
		return nil, counts, err
	}
	d := &c.operations.dead
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.at.IsZero() && (counts == d.counts || time.Since(d.at) < deadAge) {
		return d.rows, counts, nil
	}
	at := time.Now()
	open, err := history.SelectDead(ctx, c.cfg.Bus, history.DeadFilter{})
	if err != nil {
		return nil, counts, err
	}
	var rows []deadRow
	err = open.List(ctx, func(l history.Dead) error {
		if len(rows) == deadRead {
			return errEnough
		}
		rows = append(rows, rowOfLetter(&l.DeadLetter))
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, counts, err
	}
	d.rows, d.counts, d.at = rows, counts, at
	return rows, counts, nil
}

var errEnough = errors.New("enough")

func rowOfLetter(l *model.DeadLetter) deadRow {
	r := deadRow{Space: l.Space, Stream: l.Stream, Event: l.Event, Outcome: l.Outcome, Error: cut(display.FirstLine(l.Error), 300), Attempts: l.Attempts, Ended: l.Ended}
	r.cause = causeOf(r.Error)
	h := fnv.New64a()
	_, _ = h.Write([]byte(r.Stream + "\x00" + string(r.Outcome) + "\x00" + r.cause)) // never fails
	r.key = fmt.Sprintf("%016x", h.Sum64())
	return r
}

var (
	quotedText = regexp.MustCompile(`"[^"]*"|'[^']*'`)
	hexes      = regexp.MustCompile(`\b[0-9a-fA-F-]{8,}\b`)
	numbers    = regexp.MustCompile(`[0-9]+`)
)

// causeOf is an error without what differs from one event to the next: numbers, ids, quotedText texts.
func causeOf(text string) string {
	return cut(numbers.ReplaceAllString(hexes.ReplaceAllString(quotedText.ReplaceAllString(text, "“…”"), "#"), "#"), 160)
}

// deadGroup are letters with the same cause.
type deadGroup struct {
	Key, Stream, Cause, Example string
	Outcome                     model.Outcome
	Count, Spaces               int
	First, Last                 time.Time
	URL, Space, Event           string // of the oldest
	Here                        bool
	// After is the version that was deployed not long before the first of them, "" if none was, AfterURL its page, and Deployed when.
	After, AfterURL string
	Deployed        time.Time
	names           map[string]bool
}

// deadData is what the page shows.
type deadData struct {
	Counts        history.DeadCounts
	Space, Stream string
	Query         string
	Groups        []*deadGroup
	More          int // groups that are not shown
	Matching      int
	Unseen        int // letters of spaces that the visitor may not read
	Read          int // letters that were read
	Group         *deadGroup
	Rows          []deadRow
	From, To      int
	Before, After string
	Jobs          []*job
	AllURL        string
	Handled       uint64
}

func (c *Console) deadLetters(ctx context.Context, q *query) (*shown, error) {
	rows, counts, err := c.openDead(ctx)
	if err != nil {
		return nil, err
	}
	d := &deadData{Counts: counts, Space: q.Param("space"), Stream: q.Param("stream"), Query: q.Param("q"), Read: len(rows), AllURL: q.Address("group", "", "page", "")}
	matching := matchDead(rows, q.visitor.MayReadAll, d.Space, d.Stream, d.Query, "")
	d.Matching = len(matching)
	d.Unseen = len(rows) - len(matchDead(rows, q.visitor.MayReadAll, "", "", "", ""))
	d.group(q, matching)
	if d.Group == nil && len(matching) <= deadPerPage || d.Group != nil {
		d.list(q, matching)
	}
	if rules, err := c.shared.Rules(ctx, 5*time.Second); err == nil { // the list is complete without it
		for _, g := range d.Groups {
			g.deployed(rules)
		}
	}
	d.Jobs = c.jobs.of(q.visitor.Key())
	if f, err := c.shared.Fleet(ctx, 5*time.Second); err == nil {
		for i := range f.Workers {
			if fig := f.Workers[i].Figures; fig != nil {
				d.Handled += fig.Receipts
			}
		}
	}
	s := &shown{Name: "Dead letters", CLI: deadCommand("settle dead --open", d.Space, d.Stream, d.Query), Data: d, Parts: []part{
		{ID: "tally", Template: "dead-tally", Data: d}, {ID: "jobs", Template: "dead-jobs", Data: d}, {ID: "groups", Template: "dead-groups", Data: d}, {ID: "letters", Template: "dead-letters", Data: d},
	}}
	s.Title, s.State = d.title()
	return s, nil
}

// soonAfter is how long after a deployment the first failure of a kind is shown with it.
const soonAfter = 15 * time.Minute

// deployed notes which version was deployed to the space of the oldest letter shortly before it: perhaps the letters are what has changed.
func (g *deadGroup) deployed(rules *program.Table) {
	rule := rules.Rule(g.Space)
	if rule == nil {
		return
	}
	if since := g.First.Sub(rule.At); since >= 0 && since < soonAfter {
		of := rule.Choice.Of(g.Space)
		g.After, g.AfterURL, g.Deployed = of.String(), pathOf("programs", of.Program, of.Version), rule.At
		if was, had := rule.Before(); had && was.Program == of.Program && was.Version != of.Version {
			g.AfterURL += "?against=" + was.Version
		}
	}
}

// deadCommand adds a selection to a command.
func deadCommand(command, space, stream, text string) string {
	if space != "" {
		command += " " + shellWord(space)
	}
	if stream != "" {
		command += " --stream " + shellWord(stream)
	}
	if text != "" {
		command += " --error " + shellWord(text)
	}
	return command
}

// matchDead returns the rows of a selection that a visitor may see.
func matchDead(rows []deadRow, may func(space string) error, space, stream, text, group string) (list []deadRow) {
	known := map[string]bool{}
	text = strings.ToLower(text)
	for i := range rows {
		r := &rows[i]
		if group != "" && r.key != group || space != "" && r.Space != space || stream != "" && r.Stream != stream {
			continue
		}
		if text != "" && !strings.Contains(strings.ToLower(r.Error), text) {
			continue
		}
		allowed, asked := known[r.Space]
		if !asked {
			allowed = may(r.Space) == nil
			known[r.Space] = allowed
		}
		if allowed {
			list = append(list, *r)
		}
	}
	return list
}

// group groups the letters by cause, the largest group first.
func (d *deadData) group(q *query, rows []deadRow) {
	index := map[string]*deadGroup{}
	for i := range rows {
		r := &rows[i]
		g := index[r.key]
		if g == nil {
			g = &deadGroup{Key: r.key, Stream: r.Stream, Cause: r.cause, Example: r.Error, Outcome: r.Outcome, First: r.Ended, Space: r.Space, Event: r.Event, names: map[string]bool{}}
			g.URL = q.Address("group", r.key, "page", "") + "#letters"
			index[r.key] = g
			d.Groups = append(d.Groups, g)
		}
		g.Count++
		g.names[r.Space] = true
		if r.Ended.After(g.Last) {
			g.Last = r.Ended
		}
		if r.Ended.Before(g.First) {
			g.First = r.Ended
		}
	}
	for _, g := range d.Groups {
		g.Spaces = len(g.names)
		if g.Key == q.Param("group") {
			g.Here, d.Group = true, g
		}
		if g.Count == 1 || g.Example == g.Cause {
			g.Cause = g.Example
		}
	}
	slices.SortStableFunc(d.Groups, func(a, b *deadGroup) int {
		return cmp.Or(b.Count-a.Count, b.Last.Compare(a.Last), cmp.Compare(a.Key, b.Key))
	})
	if len(d.Groups) > deadGroups {
		d.More, d.Groups = len(d.Groups)-deadGroups, d.Groups[:deadGroups]
	}
}

// list cuts a page out of the letters of the group, the newest first.
func (d *deadData) list(q *query, rows []deadRow) {
	if d.Group != nil {
		rows = matchDead(rows, func(string) error { return nil }, "", "", "", d.Group.Key)
	}
	rows = slices.Clone(rows)
	slices.Reverse(rows)
	n, _ := strconv.Atoi(q.Param("page")) // 0 for what is no number
	pages := max(1, (len(rows)+deadPerPage-1)/deadPerPage)
	n = min(max(1, n), pages)
	from := (n - 1) * deadPerPage
	d.Rows = rows[from:min(from+deadPerPage, len(rows))]
	d.From, d.To = from+1, from+len(d.Rows)
	if n > 1 {
		d.Before = q.Address("page", strconv.Itoa(n-1)) + "#letters"
	}
	if n < pages {
		d.After = q.Address("page", strconv.Itoa(n+1)) + "#letters"
	}
}

func (d *deadData) title() (title, state string) {
	switch {
	case d.Counts.Letters == 0:
		return "No event has failed", "clean"
	case d.Counts.Open == 0:
		return "No dead letter is open", "clean"
	case d.Unseen == d.Read && d.Read > 0:
		return "Open dead letters are in spaces that you may not read", "dormant"
	case d.Matching == 0:
		return "No open dead letter matches", "dormant"
	case d.Matching == 1:
		return fmt.Sprintf("1 event of %s failed: %s", d.Groups[0].Stream, cut(d.Groups[0].Cause, 80)), "failed"
	case len(d.Groups) == 1:
		return fmt.Sprintf("%s of %s failed alike: %s", display.Count(d.Matching, "event"), d.Groups[0].Stream, cut(d.Groups[0].Cause, 80)), "failed"
	}
	return fmt.Sprintf("%s failed, for %d reasons", display.Count(d.Matching, "event"), len(d.Groups)+d.More), "failed"
}

// deadActions are what a visitor can do about many letters.
func deadActions() []action {
	someone := func(*act) error { return nil } // each letter is checked when the set is made
	return []action{
		{name: "dead-redrive", may: someone, preview: previewDead("redrive"), do: startJob},
		{name: "dead-dismiss", may: someone, preview: previewDead("dismiss"), do: startJob},
		{name: "job-stop", may: someone, do: stopJob},
	}
}

// previewDead makes a set of the letters of a selection, which does not change any more.
func previewDead(verb string) func(context.Context, *act) (*preview, error) {
	return func(ctx context.Context, a *act) (*preview, error) {
		rows, _, err := a.openDead(ctx)
		if err != nil {
			return nil, err
		}
		group, space, stream, text := a.Get("group"), a.Get("space"), a.Get("stream"), a.Get("q")
		set := frozen{verb: verb, back: "/dead", command: deadCommand("settle "+verb+" --all", space, stream, text)}
		for _, r := range matchDead(rows, a.Visitor.MayOperate, space, stream, text, group) {
			set.letters = append(set.letters, model.DeadName{Space: r.Space, Stream: r.Stream, Event: r.Event})
		}
		what := "all that is open" + chosen(space, stream, text)
		if group != "" && len(set.letters) > 0 {
			r := matchDead(rows, a.Visitor.MayOperate, space, stream, text, group)[0]
			what = fmt.Sprintf("%s: %s", r.Stream, r.cause)
			set.command = deadCommand("settle "+verb+" --all", space, r.Stream, longestPart(r.cause))
		}
		return a.freeze(set, what)
	}
}

// chosen says by what letters were chosen.
func chosen(space, stream, text string) (words string) {
	if stream != "" {
		words += " of stream " + stream
	}
	if space != "" {
		words += " in space " + space
	}
	if text != "" {
		words += fmt.Sprintf(" with %q in the error", text)
	}
	return words
}

// longestPart is the longest part of a cause that all its errors contain.
func longestPart(cause string) (part string) {
	for p := range strings.FieldsFuncSeq(strings.TrimSuffix(cause, "…"), func(r rune) bool { return strings.ContainsRune("#“…”", r) }) {
		if p = strings.TrimSpace(p); len(p) > len(part) {
			part = p
		}
	}
	return part
}
