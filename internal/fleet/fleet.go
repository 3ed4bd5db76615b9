// Package fleet describes a running deployment from outside: its members, the workers that serve
// each partition, and backlogs.
package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/status"
	"github.com/settlehq/settle/worker/roster"
)

// Bus is the bus that this package uses.
type Bus = port.Survey

// State of a member.
type State string

const (
	// Here means that its process answers.
	Here State = "here"
	// Leaving means that it answers and hands its partitions over.
	Leaving State = "leaving"
	// Silent means that it is still connected, or was disconnected without leaving, and does not answer.
	Silent State = "silent"
	// Gone means that no process listens under its name.
	Gone State = "gone"
)

// Fleet is the state of a deployment at one moment.
type Fleet struct {
	At           time.Time   `json:"at"`
	Workers      []Member    `json:"workers"`
	Coordinators []Member    `json:"coordinators"`
	Partitions   []Partition `json:"partitions"`
	// Stuck are the spaces that have held back the saved position of their partition for
	// longest, and StuckCount is their number.
	Stuck      []Stuck `json:"stuck"`
	StuckCount int     `json:"stuck_count"`
	// Rewinds are the streams that have gone back within the last 7 days, as processes have noted it,
	// the oldest first, without those that an operator has acknowledged.
	Rewinds []model.RewindNote `json:"rewinds,omitzero"`

	noted []model.RewindNote // all recorded rewinds
}

// Stuck is a space that makes no progress, as its worker reports it.
type Stuck struct {
	status.Stuck
	Worker string `json:"worker"`
}

// maxStuck is the largest number of stuck spaces that are shown.
const maxStuck = 20

// Member is a process of the deployment.
type Member struct {
	ID         string          `json:"id"`
	State      State           `json:"state"`
	Host       string          `json:"host,omitzero"`
	Version    string          `json:"version,omitzero"`
	Program    string          `json:"program,omitzero"`
	Connection string          `json:"connection,omitzero"`
	Since      time.Time       `json:"since,omitzero"`
	Weight     float64         `json:"weight"`
	Holds      []int           `json:"holds,omitzero"`
	Figures    *status.Figures `json:"figures,omitzero"`
	// Ahead is the smallest possible difference between the worker's clock and this one's: the time that
	// the answer may have taken is not counted.
	Ahead time.Duration `json:"ahead_ns,omitzero"`
	// Unreleased is the number of log sequences that a coordinator has not processed.
	Unreleased uint64 `json:"unreleased,omitzero"`
	// Noticed are the figures of a coordinator; nil if it reports none.
	Noticed *coordinator.Figures `json:"noticed,omitzero"`
	// Full are the lanes without room for the events that a coordinator has to release.
	Full []model.FullLane `json:"full,omitzero"`

	announced model.Member
}

// Coordinates reports whether the member is a coordinator, which has no partitions.
func (m *Member) Coordinates() bool { return m.announced.Role == model.RoleCoordinator }

// Partition is the state of a partition.
type Partition struct {
	Number int `json:"number"`
	// Owner is the worker that should serve it, given the present members. Served are the workers that answer
	// and report that they serve it; Silent are those that last reported it and do not answer: their processes hang, or
	// are disconnected, and others take the partition over.
	Owner  string   `json:"owner"`
	Served []string `json:"served"`
	Silent []string `json:"silent,omitzero"`
	// Events is the number of events of the lane that are not known to be handled and saved: the last
	// of them are usually being handled. For spaces that have been blocked for a while, only their
	// own events count, and not those of other spaces after them. Oldest is when the first of them was stored, if
	// events wait.
	Events uint64    `json:"events"`
	Oldest time.Time `json:"oldest,omitzero"`
	// Busiest is the space with most of these events, as far as its worker reports it, and
	// BusiestEvents their number.
	Busiest       string `json:"busiest,omitzero"`
	BusiestEvents uint64 `json:"busiest_events,omitzero"`
	// Waiting events were read by the worker and are not handled.
	Waiting int `json:"waiting"`
	// Unreleased is the number of log sequences that no coordinator is known to have processed.
	Unreleased uint64 `json:"unreleased"`
	// Released is the last log sequence that a coordinator is known to have processed.
	Released uint64 `json:"-"`
	// Unsaved is the number of spaces with work to do or changes to save.
	Unsaved int `json:"unsaved"`
	// Took is the duration of the last change of owner.
	Took time.Duration `json:"took_ns,omitzero"`
	// Unread is the reason why the partition's streams could not be read; then Events, Oldest, Busiest and Unreleased are not
	// known.
	Unread string `json:"unread,omitzero"`

	logEnd uint64
	lost   []Stuck
}

// youngWorker is the age below which a worker may have replaced one that has just ended.
const youngWorker = 10 * time.Minute

// patience is the time limit for the answer of a member, measurePatience that for reading the streams of a partition.
const (
	patience        = time.Second
	measurePatience = 10 * time.Second
)

// Look queries every member, and reads the streams of every partition. It fails if the members could not be read or
// ctx has ended; a partition whose streams cannot be read has the reason in Partition.Unread.
func Look(ctx context.Context, b Bus) (*Fleet, error) {
	said, err := announcements(ctx, b)
	if err != nil {
		return nil, err
	}
	f := &Fleet{At: time.Now().UTC(), Workers: []Member{}, Coordinators: []Member{}}
	members := make([]*Member, 0, len(said))
	var asking sync.WaitGroup
	for _, m := range said {
		if roster.HasLeft(&m) {
			continue
		}
		seen := &Member{
			ID: m.ID, Host: m.Host, Version: m.Version, Program: m.Program, Connection: m.Connection,
			Since: m.Since, Weight: cmp.Or(m.Weight, 1), Holds: m.Holds, Full: m.Full, announced: m,
		}
		members = append(members, seen)
		asking.Go(func() { seen.ask(ctx, b) }) // ends within the patience
	}
	asking.Wait()
	for _, m := range members {
		if m.announced.Role == model.RoleCoordinator {
			f.Coordinators = append(f.Coordinators, *m)
		} else if m.announced.Role == "" || m.announced.Role == model.RoleOrdered {
			f.Workers = append(f.Workers, *m)
		}
	}
	f.rewinds(ctx, b)
	f.measure(ctx, b)
	f.gatherStuck()
	return f, ctx.Err()
}

// gatherStuck collects the stuck spaces from the figures of the workers, and from the logged attempts that ended with their
// process, the oldest first.
func (f *Fleet) gatherStuck() {
	f.Stuck = []Stuck{}
	for _, m := range f.Workers {
		if m.Figures == nil {
			continue
		}
		f.StuckCount += m.Figures.StuckCount
		for _, s := range m.Figures.Stuck {
			f.Stuck = append(f.Stuck, Stuck{s, m.ID})
		}
	}
	for _, p := range f.Partitions {
		for _, s := range p.lost {
			if !slices.ContainsFunc(f.Stuck, func(of Stuck) bool { return of.Space == s.Space }) {
				f.StuckCount++
				f.Stuck = append(f.Stuck, s)
			}
		}
	}
	slices.SortFunc(f.Stuck, func(a, b Stuck) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Space, b.Space)) })
	f.Stuck = f.Stuck[:min(len(f.Stuck), maxStuck)]
}

// announcements returns the last announcements of all members.
func announcements(ctx context.Context, b Bus) ([]model.Member, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var out []model.Member
	ready := false
	err := b.FollowMembers(ctx, func(m model.Member) {
		if !ready {
			out = append(out, m)
		}
	}, func() { ready = true; cancel() })
	if !ready {
		return nil, fmt.Errorf("read the members: %w", err)
	}
	slices.SortFunc(out, func(a, b model.Member) int { return cmp.Compare(a.Key(), b.Key()) })
	return out, nil
}

// ask determines the state of a member.
func (m *Member) ask(ctx context.Context, b Bus) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	alive, err := m.answers(ctx, b)
	switch {
	case err != nil:
		m.State = Silent
		return
	case !alive:
		m.State = Gone
		return
	case m.announced.Leaving:
		m.State = Leaving
	default:
		m.State = Here
	}
	if m.announced.Role != "" && m.announced.Role != model.RoleOrdered {
		return
	}
	asked := time.Now()
	reply, err := b.Ask(ctx, status.Endpoint(m.ID), nil)
	if err != nil {
		return // an older version, or it is just leaving
	}
	var f status.Figures
	if json.Unmarshal(reply, &f) == nil {
		m.Figures = &f
		m.Ahead = ahead(f.Now, asked, time.Now())
	}
}

// ahead returns by how much a clock, which was read between two times of this process, is outside of them.
func ahead(theirs, asked, answered time.Time) time.Duration {
	switch {
	case theirs.IsZero():
		return 0
	case theirs.Before(asked):
		return theirs.Sub(asked)
	case theirs.After(answered):
		return theirs.Sub(answered)
	}
	return 0
}

// answers reports whether a member's process answers; an error means that it listens and
// does not answer.
func (m *Member) answers(ctx context.Context, b Bus) (bool, error) {
	if m.announced.Role != model.RoleCoordinator {
		return b.Ping(ctx, m.ID)
	}
	reply, err := b.Ask(ctx, coordinator.Endpoint(m.ID), nil)
	if errors.Is(err, model.ErrNoResponder) {
		return false, nil
	}
	var f coordinator.Figures
	if err == nil && json.Unmarshal(reply, &f) == nil { // one of an earlier version answers nothing
		m.Noticed = &f
	}
	return err == nil, err
}

// Staying returns the workers among which the partitions are divided.
func (f *Fleet) Staying() (out []model.Member) {
	for _, m := range f.Workers {
		if m.State == Here {
			out = append(out, m.announced)
		}
	}
	return out
}

// measure fills in the partitions.
func (f *Fleet) measure(ctx context.Context, b Bus) {
	n := b.Partitions()
	f.Partitions = make([]Partition, n)
	for p, owner := range roster.Divide(n, f.Staying()) {
		f.Partitions[p] = Partition{Number: p, Owner: owner, Served: f.serving(p, Here, Leaving), Silent: f.serving(p, Silent)}
	}
	slots := make(chan struct{}, 16)
	var measuring sync.WaitGroup
	for p := range n {
		slots <- struct{}{}
		measuring.Go(func() { // ends when the store has answered, or with its time
			within, end := context.WithTimeout(ctx, measurePatience)
			defer end()
			if err := f.Partitions[p].measure(within, b, f); err != nil {
				f.Partitions[p].Unread = err.Error()
			}
			<-slots
		})
	}
	measuring.Wait()
	for i := range f.Coordinators {
		c := &f.Coordinators[i]
		for p, done := range c.announced.Done {
			if p < n && f.Partitions[p].logEnd > done {
				c.Unreleased += f.Partitions[p].logEnd - done
			}
		}
	}
}

// serving returns the workers in one of these states that report that they serve a partition.
func (f *Fleet) serving(p int, states ...State) []string {
	out := []string{}
	for _, m := range f.Workers {
		if slices.Contains(states, m.State) && slices.Contains(m.Holds, p) {
			out = append(out, m.ID)
		}
	}
	return out
}

// measure fills in the partition from its streams and the figures of its worker. It fails if a stream cannot be read.
func (p *Partition) measure(ctx context.Context, b Bus, f *Fleet) error {
	for _, m := range f.Workers {
		p.add(m.Figures)
	}
	end, err := b.LaneEnd(ctx, p.Number)
	if err != nil {
		return err
	}
	done, err := b.LoadPosition(ctx, p.Number, "lane")
	if err != nil {
		return err
	}
	released, err := b.LoadPosition(ctx, p.Number, coordinator.Position)
	if err != nil {
		return err
	}
	for _, c := range f.Coordinators {
		if p.Number < len(c.announced.Done) {
			released = max(released, c.announced.Done[p.Number])
		}
	}
	state, err := b.LogState(ctx, p.Number, 0)
	if err != nil {
		return err
	}
	p.Released = released
	if p.logEnd = state.Last; p.logEnd > released {
		p.Unreleased = p.logEnd - released
	}
	if end > done {
		p.Oldest = oldest(ctx, b, p.Number, done)
		if f.endedProcess(p) {
			p.lost = p.lostAttempts(ctx, b)
		}
	}
	if err := p.count(ctx, b, done, end); err != nil || p.Events == 0 {
		return err
	}
	return p.findBusiest(ctx, b, f, done, end)
}

// findBusiest determines the space with most of the unhandled events: among those with the most waiting events
// in the workers, the one with the most events in the lane.
func (p *Partition) findBusiest(ctx context.Context, b Bus, f *Fleet, done, end uint64) error {
	for _, m := range f.Workers {
		if m.Figures == nil {
			continue
		}
		for _, of := range m.Figures.Busiest {
			if of.Partition != p.Number {
				continue
			}
			n, err := b.CountLane(ctx, of.Space, done, end)
			if err != nil {
				return err
			}
			if uint64(n) > p.BusiestEvents {
				p.Busiest, p.BusiestEvents = of.Space, uint64(n)
			}
		}
	}
	return nil
}

// count counts the events that are not known to be handled: those after the position of all spaces
// or, if some are set aside, those after that of the others and those that these have left before it.
func (p *Partition) count(ctx context.Context, b Bus, done, end uint64) error {
	ahead, err := b.LoadAhead(ctx, p.Number)
	if err != nil {
		return err
	}
	if ahead.UpTo <= done {
		ahead = model.Ahead{UpTo: done}
	}
	p.Events = end - min(end, ahead.UpTo)
	for _, s := range ahead.Aside {
		from := max(s.Done, done)
		if s.Last <= from {
			continue
		}
		n, err := b.CountLane(ctx, s.Space, from, ahead.UpTo)
		if err != nil {
			return err
		}
		p.Events += uint64(n)
	}
	return nil
}

// add adds the figures of a worker for the partition.
func (p *Partition) add(f *status.Figures) {
	if f == nil {
		return
	}
	for _, of := range f.Partitions {
		if of.Partition == p.Number && of.State != "waiting" {
			p.Waiting += of.Events
			p.Unsaved += of.Unsaved
			p.Took = of.Took
		}
	}
}

// oldest returns when the first event after a position was stored.
func oldest(ctx context.Context, b Bus, partition int, after uint64) (stored time.Time) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	first := sync.OnceFunc(cancel)
	_ = b.FollowLane(ctx, partition, after, func(m model.Message) {
		if stored.IsZero() {
			stored = m.Stored
		}
		first()
	})
	return stored
}
