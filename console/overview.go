package console

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/model"
)

func overviewPage() page {
	return page{
		name: "overview", pattern: "/{$}", nav: "Overview", icon: "M2 13h12M4 10h8M6 7h4M7 4h2",
		open: func(c *Console, q *query) (view, error) {
			return view{load: func(ctx context.Context) (*shown, error) { return c.overview(ctx, q) }, every: 2 * time.Second}, nil
		},
	}
}

// concern is something that needs attention.
type concern struct {
	// Key is the same as long as it is the same concern.
	Key   string
	State string // its mark
	What  string // the thing it is about
	Title string // of the page, if it is the only one; default: what it is about, and the text
	URL   string
	Text  string
	Since time.Time
	Why   string // where the reason is explained, "" for nowhere
	CLI   string
}

// worry is the order of concerns: the first states are worse.
var worry = []string{"failed", "quarantined", "parked", "gated", "invalid", "waiting", "running", "dormant"}

// overviewData is what the page shows besides its parts.
type tally struct {
	Fleet    *fleet.Fleet
	Spaces   int
	Awake    int
	Lag      uint64
	Dead     history.DeadCounts
	DeadText string // "" if they could be counted
	DeadMost string // what most of the open ones failed with, "" if that is not known
	Here     int
	Oldest   time.Time
}

// cell is a partition in the strip.
type cell struct {
	Number int
	State  string
	Word   string
	Text   string
}

// overview loads the overview.
func (c *Console) overview(ctx context.Context, q *query) (*shown, error) {
	var f *fleet.Fleet
	var t tally
	err := atOnce(
		func() (err error) { f, err = c.shared.Fleet(ctx, time.Second); return err },
		func() error {
			names, err := c.shared.Spaces(ctx, 5*time.Second)
			t.Spaces = len(names)
			return err
		},
		func() (err error) {
			if t.Dead, err = c.shared.Dead(ctx, 5*time.Second); err != nil {
				t.DeadText = err.Error()
			}
			t.DeadMost = c.mostDead(ctx, q, &t.Dead)
			return nil
		},
	)
	if err != nil {
		return nil, err
	}
	t.Fleet = f
	for i := range f.Workers {
		w := &f.Workers[i]
		if w.State == fleet.Here {
			t.Here++
		}
		if w.Figures != nil {
			t.Awake += w.Figures.Awake
		}
	}
	for i := range f.Partitions {
		p := &f.Partitions[i]
		t.Lag += p.Events
		if !p.Oldest.IsZero() && (t.Oldest.IsZero() || p.Oldest.Before(t.Oldest)) {
			t.Oldest = p.Oldest
		}
	}
	stalled := c.stalled(ctx, f)
	list := concerns(f, c.shared.Stuck(ctx, f, stuckAge), &t, stalled)
	s := &shown{CLI: "settle fleet", Name: "Overview"}
	s.Title, s.State = health(f, &t, list)
	shownList, more := list, 0
	if len(list) > 20 {
		shownList, more = list[:20], len(list)-20
	}
	s.Parts = []part{
		{ID: "tally", Template: "overview-tally", Data: &t},
		{ID: "concerns", Template: "overview-concerns", Data: map[string]any{"List": shownList, "More": more, "Well": max(0, t.Spaces-unwell(f)), "Spaces": t.Spaces, "Workers": len(f.Workers)}},
		{ID: "rates", Template: "overview-rates", Data: c.memory.charts()},
		{ID: "workers", Template: "overview-workers", Data: f},
		{ID: "partitions", Template: "overview-partitions", Data: partitionCells(f, stalled)},
	}
	return s, nil
}

// health is the state of the deployment in a sentence.
func health(f *fleet.Fleet, t *tally, list []concern) (title, state string) {
	switch {
	case len(f.Workers) == 0:
		return "No worker runs here", "failed"
	case t.Here == 0:
		return "No worker answers", "failed"
	}
	list = slices.DeleteFunc(slices.Clone(list), func(c concern) bool { return c.State == "dormant" })
	stuck := f.StuckCount
	switch {
	case stuck == 1:
		return "1 space is stuck", "parked"
	case stuck > 1:
		return fmt.Sprintf("%s spaces are stuck", display.Grouped(stuck)), "parked"
	case len(list) == 1 && list[0].Title != "":
		return list[0].Title, list[0].State
	case len(list) == 1:
		return cut(display.FirstLine(list[0].What+": "+list[0].Text), 90), list[0].State
	case len(list) > 1:
		return fmt.Sprintf("%d things need attention", len(list)), list[0].State
	case t.Spaces == 0:
		return "All is well, and nothing has happened yet", "clean"
	}
	return "All is well", "clean"
}

// concerns lists what needs attention, the worst first. all are the spaces that are stuck, and stalled the partitions whose coordinators are behind.
func concerns(f *fleet.Fleet, all []fleet.Stuck, t *tally, stalled map[int]*stall) (list []concern) {
	add := func(c concern) { list = append(list, c) }
	if len(f.Workers) == 0 {
		add(concern{Key: "no worker", State: "failed", What: "workers", URL: "/fleet", Text: "none runs, and no event is handled", CLI: "spaceworker"})
	}
	if len(f.Coordinators) == 0 || !slices.ContainsFunc(f.Coordinators, func(m fleet.Member) bool { return m.State == fleet.Here }) {
		add(concern{Key: "no coordinator", State: "failed", What: "coordinators", URL: "/fleet", Text: "none answers: events that spaces send to each other are not delivered", CLI: "coordinator"})
	}
	for _, h := range f.Hanging() {
		add(concern{Key: "hanging " + h.Worker, State: "failed", What: h.Worker, URL: "/fleet", Text: strings.TrimSuffix("does not answer; "+h.String(), "; ")})
	}
	for i := range f.Partitions {
		p := &f.Partitions[i]
		switch {
		case p.Unread != "":
			add(concern{Key: fmt.Sprint("unread ", p.Number), State: "failed", What: fmt.Sprintf("partition %d", p.Number), URL: "/fleet", Text: "its streams cannot be read: " + p.Unread})
		case len(p.Served) == 0 && len(f.Workers) > 0:
			add(concern{Key: fmt.Sprint("unserved ", p.Number), State: "failed", What: fmt.Sprintf("partition %d", p.Number), URL: "/fleet", Text: "no worker serves it"})
		}
		if st := stalled[p.Number]; st != nil {
			add(st.concern(p))
		}
		if lags(f, p, all) {
			add(lagConcern(p))
		}
	}
	list = append(list, stuckConcerns(all, f.StuckCount)...)
	list = append(list, computingConcerns(f)...)
	list = append(list, unsettledConcerns(f)...)
	list = append(list, failingConcerns(f)...)
	for i := range f.Workers {
		list = append(list, workerConcerns(&f.Workers[i])...)
	}
	list = append(list, denialConcerns(f)...)
	list = append(list, unperformedConcerns(f)...)
	if t.Dead.Open > 0 {
		text := display.Count(t.Dead.Open, "event") + " failed or refused, neither redriven nor dismissed"
		add(concern{Key: "dead", State: "failed", What: "dead letters", URL: "/dead", Title: text, Text: text + t.DeadMost, CLI: "settle dead"})
	}
	slices.SortStableFunc(list, func(a, b concern) int {
		return cmp.Or(cmp.Compare(slices.Index(worry, a.State), slices.Index(worry, b.State)), timeless(&a)-timeless(&b), a.Since.Compare(b.Since))
	})
	return list
}

// lagsAfter is how long an event may wait behind others before its partition needs attention.
const lagsAfter = 10 * time.Second

// lags reports whether events of a partition wait for long although none of its spaces is stuck: more is to be done than its worker, or one of its
// spaces, can do.
func lags(f *fleet.Fleet, p *fleet.Partition, stuck []fleet.Stuck) bool {
	return p.Unread == "" && len(p.Served) > 0 && p.Waiting > 0 && p.Events > 0 && !p.Oldest.IsZero() && f.At.Sub(p.Oldest) > lagsAfter &&
		!slices.ContainsFunc(stuck, func(s fleet.Stuck) bool { return model.PartitionOf(s.Space, len(f.Partitions)) == p.Number })
}

// lagConcern is a partition whose events wait for long.
func lagConcern(p *fleet.Partition) concern {
	text := "1 event waits for its turn"
	if p.Events > 1 {
		text = display.Grouped(p.Events) + " events wait for their turn"
	}
	if p.Busiest != "" {
		text += ", most of them for space " + p.Busiest
	}
	return concern{
		Key: fmt.Sprint("lags ", p.Number), State: "parked", What: fmt.Sprintf("partition %d", p.Number), URL: "/fleet#what-takes-time", Text: text + "; the fleet says what takes time",
		Title: fmt.Sprintf("Partition %d is behind: %s", p.Number, text), Since: p.Oldest, CLI: "settle top",
	}
}

// timeless is 1 for a concern without a time, which comes after those with one.
func timeless(c *concern) int {
	if c.Since.IsZero() {
		return 1
	}
	return 0
}

// fewStuck is up to how many spaces that are stuck alike are listed one by one.
const fewStuck = 3

// stuckConcerns lists the spaces that are stuck: those with the same stream and reason, but for numbers, as one.
func stuckConcerns(stuck []fleet.Stuck, count int) (list []concern) {
	type kind struct{ stream, cause, reason string }
	alike := map[kind][]*fleet.Stuck{}
	var kinds []kind
	for i := range stuck {
		s := &stuck[i]
		k := kind{s.Stream, s.Cause, causeOf(s.Reason)}
		if alike[k] == nil {
			kinds = append(kinds, k)
		}
		alike[k] = append(alike[k], s)
	}
	for _, k := range kinds {
		all := alike[k]
		if len(all) <= fewStuck {
			for _, s := range all {
				list = append(list, stuckConcern(s))
			}
			continue
		}
		one := stuckConcern(all[0])
		one.Key, one.What, one.URL, one.CLI = "stuck "+k.stream+" "+k.reason, display.Count(len(all), "space"), stuckURL, "settle doctor"
		one.Text = "such as " + all[0].Space + ": " + one.Text
		list = append(list, one)
	}
	if more := count - len(stuck); more > 0 {
		list = append(list, concern{Key: "stuck more", State: "parked", What: display.Count(more, "more space"), URL: stuckURL, Text: "are stuck, too, and not named: some workers did not answer"})
	}
	return list
}

// Actions without a performer: after how long they need attention, and how many are named.
const (
	unperformedAfter = 3 * time.Second
	maxUnperformed   = 5
)

// unperformedConcerns lists the actions whose tasks no performer takes.
func unperformedConcerns(f *fleet.Fleet) (list []concern) {
	for _, u := range f.Unperformed() {
		if f.At.Sub(u.Since) < unperformedAfter || len(list) == maxUnperformed {
			continue
		}
		list = append(list, concern{
			Key: "unperformed " + u.Action + " " + u.Queue, State: "waiting", What: u.Action, URL: pathOf("spaces", u.Space), Since: u.Since, CLI: u.Advice(),
			Text: u.Reason() + "; " + display.Count(u.Tasks, "task") + " of space " + u.Space + " and perhaps of others wait",
		})
	}
	return list
}

// stuckURL is the list of the spaces that are stuck.
const stuckURL = "/spaces?state=stuck"

func stuckConcern(s *fleet.Stuck) concern {
	text := s.Reason
	if s.Event != "" {
		text = s.Stream + " " + s.Event + ": " + s.Reason
	}
	return concern{Key: "stuck " + s.Space, State: stateOfCause(s.Cause), What: s.Space, URL: pathOf("spaces", s.Space), Text: text, Since: s.Since, Why: pathOf("spaces", s.Space) + "#what-waits", CLI: "settle lane " + s.Space}
}

// workerConcerns lists what a worker reports.
func workerConcerns(w *fleet.Member) (list []concern) {
	fig := w.Figures
	if fig == nil {
		return nil
	}
	add := func(c concern) { list = append(list, c) }
	for i := range fig.Losses {
		l := &fig.Losses[i]
		add(concern{Key: "loss " + l.What(), State: "quarantined", What: l.What(), URL: "/doctor", Text: "set aside: " + l.Reason, Since: l.Since, CLI: "settle doctor"})
	}
	for _, l := range fig.Late {
		add(concern{Key: "late " + l.Space, State: "waiting", What: l.Space, URL: pathOf("spaces", l.Space), Text: "timers or delayed events are due and not handled", Since: l.Since, CLI: "settle timers " + l.Space})
	}
	for _, text := range fig.Unrunnable {
		add(concern{Key: "unrunnable " + text, State: "failed", What: w.ID, URL: "/programs", Text: "a deployed version cannot run here: " + text, CLI: "settle versions"})
	}
	if fig.Unstored != "" {
		add(concern{Key: "unstored " + w.ID, State: "failed", What: w.ID, URL: "/fleet", Text: "the store refuses to store: " + fig.Unstored})
	}
	if fig.Denied != "" {
		add(concern{Key: "denied " + w.ID, State: "failed", What: w.ID, URL: "/doctor", Text: "its NATS user lacks a permission: " + fig.Denied, CLI: "settle doctor"})
	}
	if fig.Abandoned > 0 {
		add(concern{Key: "abandoned " + w.ID, State: "running", What: w.ID, URL: "/fleet", Text: abandonedText(fig.Abandoned)})
	}
	return list
}

// abandonedText says how many calls of application code were given up.
func abandonedText(n int) string {
	if n == 1 {
		return "1 call of application code was given up and has not returned"
	}
	return display.Count(n, "call") + " of application code were given up and have not returned"
}

// stateOfCause is the mark of a stuck space.
func stateOfCause(cause string) string {
	switch cause {
	case "running", "not answering":
		return "running"
	case "gate", "turn":
		return "gated"
	case "document", "computation", "early", "queued", "loading":
		return "waiting"
	case "retry":
		return "parked"
	}
	return "failed"
}

// partitionCells is the strip of partitions.
func partitionCells(f *fleet.Fleet, stalled map[int]*stall) []cell {
	cells := make([]cell, len(f.Partitions))
	for i := range f.Partitions {
		p := &f.Partitions[i]
		at := cell{Number: p.Number, State: "clean", Word: "served"}
		switch {
		case p.Unread != "":
			at.State, at.Word = "failed", "unreadable"
		case len(p.Served) == 0:
			at.State, at.Word = "failed", "not served"
		case len(p.Served) > 1:
			at.State, at.Word = "waiting", "changing hands"
		case p.Events > 0 && time.Since(p.Oldest) > 5*time.Second:
			at.State, at.Word = "parked", "behind"
		case stalled[p.Number] != nil:
			at.State, at.Word = "parked", "not released"
		}
		at.Text = strings.Join(p.Served, ", ")
		if at.Text == "" {
			at.Text = "no worker"
		}
		cells[i] = at
	}
	return cells
}

// charts returns the pictures of the last hour.
func (m *memory) charts() []*chart {
	all := m.samples()
	events := make([]float64, len(all))
	failed := make([]float64, len(all))
	half, most := make([]float64, len(all)), make([]float64, len(all))
	for i := range all {
		s := &all[i]
		events[i], failed[i] = math.NaN(), math.NaN()
		if s.Known {
			events[i], failed[i] = s.Events, s.Failed
		}
		known := len(s.Waits) > 0
		half[i], most[i] = millis(quantile(s.Waits, 0.5), known), millis(quantile(s.Waits, 0.99), known)
	}
	perSecond := func(v float64) string { return rateText(v) + "/s" }
	span := spanOf(len(all))
	return []*chart{
		{Span: span, Label: "Events per second", Series: []series{{"handled", "c-running", events}, {"failed", "c-failed", failed}}, Text: perSecond, Note: "from the counts of the workers, every 12 s"},
		{Span: span, Label: "Time to receipt", Series: []series{{"p50", "c-running", half}, {"p99", "c-gated", most}}, Text: func(v float64) string { return duration(time.Duration(v * float64(time.Millisecond))) }, Note: "of a sample of at most 40 events every 12 s;", More: true},
	}
}
