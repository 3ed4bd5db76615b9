package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/status"
)

// fleetActions are the operations on the fleet.
func fleetActions() []action {
	return []action{{name: "drain", may: func(a *act) error { return a.Visitor.MayOperate("") }, preview: previewDrain, do: doDrain}}
}

// previewDrain says what draining a worker would do now, or why it is refused.
func previewDrain(ctx context.Context, a *act) (*preview, error) {
	id := a.Get("worker")
	if err := need("worker", id); err != nil {
		return nil, err
	}
	f, err := fleet.Look(ctx, a.cfg.Bus)
	if err != nil {
		return nil, err
	}
	m, err := f.MayDrain(id, false)
	if err != nil {
		return nil, drainError(err)
	}
	held := display.Count(len(m.Holds), "partition")
	return &preview{
		Title: fmt.Sprintf("Drain worker %s, which serves %s", id, held), Button: "Drain " + id, CLI: "settle drain " + id, Back: "/fleet?worker=" + id,
		Text: "It finishes running work, saves, and hands its partitions over to the other workers, one after the other. Then its process ends, and stays out of the fleet until it is started again.",
	}, nil
}

func doDrain(ctx context.Context, a *act) (*done, error) {
	id := a.Get("worker")
	m, err := fleet.Drain(ctx, a.cfg.Bus, id, cmp.Or(a.Visitor.Name(), "console"), false)
	if err != nil {
		return nil, drainError(err)
	}
	return &done{Text: fmt.Sprintf("Worker %s hands over its %s and leaves", id, display.Count(len(m.Holds), "partition")), To: "/fleet", Command: "settle drain " + id}, nil
}

// drainError is the error for a page: a worker is forced to leave in a terminal only.
func drainError(err error) error {
	if refused, is := errors.AsType[*fleet.Refusal](err); is {
		return invalidForm("%s", strings.Replace(refused.Text, "or force it", "or use settle drain --force", 1))
	}
	return err
}

func fleetPage() page {
	return page{
		name: "fleet", pattern: "/fleet", nav: "Fleet", icon: "M2 3h12v4H2zM2 9h12v4H2zM4 5h2M4 11h2", params: []string{"worker"},
		open: func(c *Console, q *query) (view, error) {
			return view{load: func(ctx context.Context) (*shown, error) { return c.fleetNow(ctx, q) }, every: time.Second}, nil
		},
	}
}

// memberRow is a process of the deployment.
type memberRow struct {
	*fleet.Member
	Mark, Word string
	Partitions string // it serves
	Lost       string // what has become of those of a worker that does not answer
	Waiting    int    // events that it has read and not handled
	Handled    uint64
	URL        string
	Here       bool
	Takeover   time.Duration // the longest of its partitions
}

// partitionRow is a partition.
type partitionRow struct {
	*fleet.Partition
	Mark, Word string
	By         string
	Most       string
	// Stalled is how far behind its coordinators are, nil if they are not.
	Stalled *stall
}

// fleetData is what the page shows.
type fleetData struct {
	Fleet        *fleet.Fleet
	Workers      []memberRow
	Coordinators []memberRow
	Partitions   []partitionRow
	Rewinds      []string
	Worker       *memberRow
	Grid         bool // there are many partitions
	Binaries     []string
	Takes        *takesData
}

// manyPartitions is from how many partitions on they are a grid.
const manyPartitions = 64

func (c *Console) fleetNow(ctx context.Context, q *query) (*shown, error) {
	f, err := c.shared.Fleet(ctx, time.Second)
	if err != nil {
		return nil, err
	}
	d := &fleetData{Fleet: f, Grid: len(f.Partitions) > manyPartitions}
	if all := f.Binaries(); len(all) > 1 {
		d.Binaries = all
	}
	lost := map[string]string{}
	for _, h := range f.Hanging() {
		lost[h.Worker] = h.String()
	}
	for i := range f.Workers {
		r := rowOfMember(&f.Workers[i], q)
		r.Lost = lost[r.ID]
		d.Workers = append(d.Workers, r)
		if r.Here {
			d.Worker = &d.Workers[len(d.Workers)-1]
		}
	}
	stalled := c.stalled(ctx, f)
	for i := range f.Coordinators {
		r := rowOfMember(&f.Coordinators[i], q)
		if r.Word = string(r.State); r.State == fleet.Here && len(stalled) > 0 && r.Unreleased > 0 {
			r.Mark, r.Word = "parked", "behind"
		}
		d.Coordinators = append(d.Coordinators, r)
	}
	for i := range f.Partitions {
		r := rowOfPartition(&f.Partitions[i])
		if r.Stalled = stalled[r.Number]; r.Stalled != nil && r.Mark == "clean" {
			r.Mark, r.Word = "parked", "not released"
		}
		d.Partitions = append(d.Partitions, r)
	}
	_, d.Rewinds = fleet.RewindText(f.Rewinds)
	d.Takes = c.takes.now(ctx, c, f)
	if d.Worker != nil { // the slice has stopped growing
		d.Worker = &d.Workers[slices.IndexFunc(d.Workers, func(r memberRow) bool { return r.Here })]
	}
	s := &shown{Name: "Fleet", CLI: "settle fleet", Data: d, Parts: []part{
		{ID: "workers", Template: "fleet-workers", Data: d},
		{ID: "worker", Template: "fleet-worker", Data: d},
		{ID: "coordinators", Template: "fleet-coordinators", Data: d},
		{ID: "partitions", Template: "fleet-partitions", Data: d},
		{ID: "stuck", Template: "fleet-stuck", Data: d},
		{ID: "takes", Template: "fleet-takes", Data: d.Takes},
	}}
	s.Title, s.State = d.title()
	return s, nil
}

func rowOfMember(m *fleet.Member, q *query) memberRow {
	r := memberRow{Member: m, Mark: workerState(m.State), Partitions: fleet.Ranges(m.Holds), URL: q.Address("worker", m.ID) + "#worker", Here: q.Param("worker") == m.ID}
	if g := m.Figures; g != nil {
		for i := range g.Partitions {
			r.Waiting += g.Partitions[i].Events
			r.Takeover = max(r.Takeover, g.Partitions[i].Took)
		}
		r.Handled = g.Receipts - min(g.Failed, g.Receipts)
	}
	return r
}

func rowOfPartition(p *fleet.Partition) partitionRow {
	r := partitionRow{Partition: p, Mark: "clean", Word: "served", By: strings.Join(p.Served, ", ")}
	switch {
	case p.Unread != "":
		r.Mark, r.Word = "failed", "unreadable"
	case len(p.Served) == 0 && len(p.Silent) > 0:
		r.Mark, r.Word, r.By = "failed", "not served", strings.Join(p.Silent, ", ")+" does not answer"
	case len(p.Served) == 0 && p.Owner == "":
		r.Mark, r.Word, r.By = "failed", "not served", "no worker"
	case len(p.Served) == 0:
		r.Mark, r.Word, r.By = "waiting", "changing hands", "next: "+p.Owner
	case !slices.Contains(p.Served, p.Owner):
		r.Mark, r.Word = "waiting", "changing hands"
		r.By += ", moves to " + p.Owner
	case p.Events > 0 && time.Since(p.Oldest) > 5*time.Second:
		r.Mark, r.Word = "parked", "behind"
	}
	if p.Events >= 10 && p.BusiestEvents > p.Events/2 {
		r.Most = p.Busiest
	}
	return r
}

// Up is how long a process has been up, 0 if that is not known.
func (r *memberRow) Up() time.Time {
	if r.Figures != nil {
		return r.Figures.Since
	}
	return r.Since
}

// OfPartitions are the partitions of a worker as it reports them.
func (r *memberRow) OfPartitions() []status.Partition {
	if r.Figures == nil {
		return nil
	}
	return r.Figures.Partitions
}

// Noted are remarks about a worker or a coordinator.
func (r *memberRow) Noted() (list []string) {
	if n := r.Noticed; n != nil {
		if n.Denied != "" {
			list = append(list, "its NATS user lacks a permission: "+n.Denied)
		}
		for _, p := range n.PassedOver {
			list = append(list, fmt.Sprintf("it has passed over %s that it cannot read: %s", display.Count(int(p.Count), "message"), p.Reason)) //nolint:gosec // a count
		}
	}
	for _, l := range r.Full {
		list = append(list, fmt.Sprintf("%s, the first of them to space %s, wait for room in the lane of partition %d", display.Count(l.Waiting, "event"), l.Space, l.Partition))
	}
	g := r.Figures
	if g == nil {
		return list
	}
	if g.Unstored != "" {
		list = append(list, "the store refuses to store: "+g.Unstored)
	}
	if g.Denied != "" {
		list = append(list, "its NATS user lacks a permission: "+g.Denied)
	}
	if g.Abandoned > 0 {
		list = append(list, abandonedText(g.Abandoned))
	}
	list = append(list, g.Unrunnable...)
	if r.Ahead > time.Second {
		list = append(list, "its clock is ahead by at least "+duration(r.Ahead))
	}
	return list
}

// Stalled is the partition whose sends have waited for longest, nil if there is none.
func (d *fleetData) Stalled() (p *partitionRow) {
	for i := range d.Partitions {
		if r := &d.Partitions[i]; r.Stalled != nil && (p == nil || r.Stalled.Since.Before(p.Stalled.Since)) {
			p = r
		}
	}
	return p
}

func (d *fleetData) title() (title, state string) {
	silent, unserved, behind := []string{}, 0, 0
	here := 0
	for i := range d.Workers {
		switch d.Workers[i].State {
		case fleet.Here:
			here++
		case fleet.Silent:
			silent = append(silent, d.Workers[i].ID)
		}
	}
	for i := range d.Partitions {
		switch d.Partitions[i].Word {
		case "not served", "unreadable":
			unserved++
		case "behind":
			behind++
		}
	}
	coordinators := slices.ContainsFunc(d.Coordinators, func(r memberRow) bool { return r.State == fleet.Here })
	switch {
	case len(d.Workers) == 0:
		return "No worker has joined", "failed"
	case unserved > 0:
		return fmt.Sprintf("%s not served", isAre(unserved, "partition")), "failed"
	case len(silent) > 0:
		return strings.Join(silent, ", ") + " does not answer; other workers have its partitions", "failed"
	case !coordinators:
		return "No coordinator answers: spaces do not receive what others send", "failed"
	case d.Stalled() != nil:
		p := d.Stalled()
		return p.Stalled.title(p.Partition), "parked"
	case d.Fleet.StuckCount > 0:
		return fmt.Sprintf("%s stuck, of %s", isAre(d.Fleet.StuckCount, "space"), display.Count(here, "worker")), "parked"
	case behind > 0:
		return fmt.Sprintf("%s behind", isAre(behind, "partition")), "parked"
	}
	return fmt.Sprintf("%s %s all %s", display.Count(here, "worker"), map[bool]string{true: "serves", false: "serve"}[here == 1], display.Count(len(d.Partitions), "partition")), "clean"
}
