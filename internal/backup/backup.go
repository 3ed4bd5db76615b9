package backup

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/bus/streamcopy"
	"github.com/settlehq/settle/model"
)

// Progress receives the progress of a backup or a restore. It may be zero.
type Progress struct {
	// Begin is called at the begin of a step, with its name and the approximate number of messages or bytes.
	Begin func(what string, of int64)
	// Add is called with the amount of work done since the last call.
	Add func(n int64)
}

func (p Progress) begin(what string, of int64) {
	if p.Begin != nil {
		p.Begin(what, of)
	}
}

func (p Progress) add(n int64) {
	if p.Add != nil {
		p.Add(n)
	}
}

// The steps that Progress.Begin receives besides the names of streams.
const (
	StepChecksums = "checksums"
	StepLogEnds   = "the ends of the logs"
	StepBehind    = "messages stored meanwhile"
	StepCompare   = "compare with the existing streams"
)

// errMoved is returned if messages were purged during the copy that the copy needs.
var errMoved = errors.New("messages that the copy needs were purged meanwhile")

// attempts is the number of attempts if messages are purged during the copy. That takes a copy that
// lasts for minutes, and a small history.
const attempts = 3

// Make copies the deployment of b into dir, which must be empty or not be there.
func Make(ctx context.Context, b *bus.Bus, dir string, progress Progress) (*Manifest, error) {
	if err := prepare(dir); err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		m, err := makeOnce(ctx, b, dir, progress)
		if err == nil {
			return m, nil
		}
		if left := empty(dir); left != nil {
			return nil, errors.Join(err, left)
		}
		if !errors.Is(err, errMoved) {
			return nil, err
		}
		if try == attempts {
			return nil, fmt.Errorf("%w, %d times: let the workers keep more history (--history-bytes) than is written during a backup", err, attempts)
		}
	}
}

// prepare creates the directory of a backup, private to the user because it contains all data.
func prepare(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	found, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return fmt.Errorf("%s is not empty (%s): name a new directory", dir, found[0].Name())
	}
	return nil
}

// empty removes the files of a failed attempt.
func empty(dir string) error {
	found, err := os.ReadDir(dir)
	for _, f := range found {
		err = errors.Join(err, os.Remove(dir+string(os.PathSeparator)+f.Name()))
	}
	return err
}

func makeOnce(ctx context.Context, b *bus.Bus, dir string, progress Progress) (_ *Manifest, err error) {
	c := &copier{b: b, dir: dir, progress: progress, singles: map[string]*file{}}
	c.m = &Manifest{
		Version: Version, ID: rand.Text(), Program: b.ProgramVersion(), Schema: provision.Schema,
		Deployment: b.Prefix(), Partitions: b.Partitions(), Horizon: b.Horizon(), Began: time.Now().UTC(),
	}
	defer func() {
		if err != nil {
			c.abandon()
		}
	}()
	if err := c.create(); err != nil {
		return nil, err
	}
	steps := []func(context.Context) error{c.copyPartitions, c.copyDead, c.chooseEnds, c.copyBehind, c.cutAndAdd, c.copyPrograms}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	if err := c.finish(); err != nil {
		return nil, err
	}
	c.m.Ended = time.Now().UTC()
	return c.m, c.m.write(dir)
}

// copier is a backup in progress.
type copier struct {
	b        *bus.Bus
	dir      string
	m        *Manifest
	progress Progress
	parts    []*part
	singles  map[string]*file // by component
}

// part is the copied data of one partition.
type part struct {
	number           int
	state, log, lane *file
	// known is, for each space, the log sequence that the copy reaches: its mark, then its commits.
	known map[string]uint64
	// laneSaved is the lane position in the copied state.
	laneSaved, laneFirst uint64
	// handled is, for each space, the lane sequence up to which commits in the copy have handled its events.
	handled map[string]uint64
	// laneEnd and logEnd are the chosen ends.
	laneEnd, logEnd uint64
	// events and commits were stored after them.
	events  []event
	commits []commit
}

func (c *copier) create() error {
	for range c.m.Partitions {
		c.parts = append(c.parts, &part{number: len(c.parts), known: map[string]uint64{}, handled: map[string]uint64{}})
	}
	for _, a := range c.b.Assets() {
		if a.Component == provision.ComponentWorkers {
			continue // members announce themselves
		}
		f, err := create(c.dir, a)
		if err != nil {
			return err
		}
		switch a.Component {
		case provision.ComponentState:
			c.parts[a.Partition].state = f
		case provision.ComponentLog:
			c.parts[a.Partition].log = f
		case provision.ComponentLane:
			c.parts[a.Partition].lane = f
		default:
			c.singles[a.Component] = f
		}
	}
	return nil
}

// files returns all files, in the order of the manifest.
func (c *copier) files() (all []*file) {
	for _, component := range []string{provision.ComponentPrograms, provision.ComponentDead} {
		all = append(all, c.singles[component])
	}
	for _, p := range c.parts {
		all = append(all, p.state, p.log, p.lane)
	}
	return all
}

// abandon closes the open files after an error.
func (c *copier) abandon() {
	for _, f := range c.files() {
		if f != nil {
			_ = f.out.Close() // it is removed
		}
	}
}

// copyPartitions copies the state of every partition, and most of its streams.
func (c *copier) copyPartitions(ctx context.Context) error {
	for _, p := range c.parts {
		if err := c.copyState(ctx, p); err != nil {
			return err
		}
		reach, err := streamcopy.Reach(ctx, c.b, p.log.Stream)
		if err == nil {
			err = c.copyLog(ctx, p, reach.Last, reach.Messages, false)
		}
		if err == nil {
			reach, err = streamcopy.Reach(ctx, c.b, p.lane.Stream)
		}
		if err == nil {
			p.lane.MaxBytes = reach.MaxBytes
			err = c.copyLane(ctx, p, reach.Last, reach.Messages)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) copyState(ctx context.Context, p *part) error {
	reach, err := streamcopy.Reach(ctx, c.b, p.state.Stream)
	if err != nil {
		return err
	}
	lane, err := streamcopy.Reach(ctx, c.b, p.lane.Stream)
	if err != nil {
		return err
	}
	p.laneFirst = lane.First
	c.progress.begin(p.state.Stream, int64(reach.Messages))
	return p.state.copyExactly(ctx, c.b, func(s *streamcopy.Stored) error {
		if space := streamcopy.MarkOf(c.b, p.number, s); space != "" {
			p.known[space] = s.Reflects
		}
		if streamcopy.PositionOf(c.b, p.number, s) == lanePosition {
			p.laneSaved = s.Reflects
		}
		c.progress.add(1)
		return nil
	})
}

// lanePosition returns the saved position up to which the events of a lane are handled.
const lanePosition = "lane"

// copyLog copies the log up to a sequence. With deep, it decodes which events the commits have handled.
func (c *copier) copyLog(ctx context.Context, p *part, upTo, about uint64, deep bool) error {
	c.progress.begin(p.log.Stream, int64(about))
	return streamcopy.Copy(ctx, c.b, p.log.Stream, p.log.Last, upTo, func(s *streamcopy.Stored) error {
		if err := p.follows(s); err != nil {
			return err
		}
		if deep {
			d, err := readCommit(s)
			if err != nil {
				return err
			}
			d.noteHandled(p.handled)
		}
		c.progress.add(1)
		return p.log.add(s)
	})
}

// follows returns an error if a commit is missing from both the copied state and the copied log.
func (p *part) follows(s *streamcopy.Stored) error {
	space := streamcopy.SpaceOfCommit(s)
	if s.Seq <= p.known[space] {
		return nil
	}
	e := model.LogEntry{Space: space, Seq: s.Seq, Prev: s.Expected}
	if err := e.Follows(p.known[space]); err != nil {
		return fmt.Errorf("%w: %w", errMoved, err)
	}
	p.known[space] = s.Seq
	return nil
}

func (c *copier) copyLane(ctx context.Context, p *part, upTo, about uint64) error {
	c.progress.begin(p.lane.Stream, int64(about))
	return streamcopy.Copy(ctx, c.b, p.lane.Stream, p.lane.Last, upTo, func(s *streamcopy.Stored) error {
		if p.lane.First == 0 && s.Seq > p.laneFirst && s.Seq > p.laneSaved+1 && p.laneFirst <= p.laneSaved {
			return fmt.Errorf("%w: %s begins at %d, and the saved state reaches %d", errMoved, p.lane.Stream, s.Seq, p.laneSaved)
		}
		c.progress.add(1)
		return p.lane.add(s)
	})
}

func (c *copier) copyDead(ctx context.Context) error {
	return c.copySingle(ctx, provision.ComponentDead)
}

func (c *copier) copyPrograms(ctx context.Context) error {
	return c.copySingle(ctx, provision.ComponentPrograms)
}

func (c *copier) copySingle(ctx context.Context, component string) error {
	f := c.singles[component]
	reach, err := streamcopy.Reach(ctx, c.b, f.Stream)
	if err != nil {
		return err
	}
	c.progress.begin(f.Stream, int64(reach.Messages))
	return f.copyExactly(ctx, c.b, func(*streamcopy.Stored) error { c.progress.add(1); return nil })
}

// chooseEnds reads the ends of the lanes, then those of the logs, and copies up to them.
func (c *copier) chooseEnds(ctx context.Context) error {
	c.m.AsOf = time.Now().UTC()
	for _, p := range c.parts {
		reach, err := streamcopy.Reach(ctx, c.b, p.lane.Stream)
		if err != nil {
			return err
		}
		p.laneEnd = reach.Last
	}
	for _, p := range c.parts {
		c.progress.begin(StepLogEnds, 0)
		reach, err := streamcopy.Reach(ctx, c.b, p.log.Stream)
		if err != nil {
			return err
		}
		p.logEnd = reach.Last
	}
	for _, p := range c.parts {
		if err := c.copyLane(ctx, p, p.laneEnd, p.laneEnd-min(p.laneEnd, p.lane.Last)); err != nil {
			return err
		}
		if err := c.copyLog(ctx, p, p.logEnd, p.logEnd-min(p.logEnd, p.log.Last), true); err != nil {
			return err
		}
	}
	return nil
}

// copyBehind reads the messages after the chosen ends into memory, first those of the lanes and then
// those of the logs, so that every commit that sent one of these events is read.
func (c *copier) copyBehind(ctx context.Context) error {
	c.progress.begin(StepBehind, 0)
	for _, p := range c.parts {
		reach, err := streamcopy.Reach(ctx, c.b, p.lane.Stream)
		if err != nil {
			return err
		}
		err = streamcopy.Copy(ctx, c.b, p.lane.Stream, p.laneEnd, reach.Last, func(s *streamcopy.Stored) error {
			p.events = append(p.events, readEvent(s))
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, p := range c.parts {
		reach, err := streamcopy.Reach(ctx, c.b, p.log.Stream)
		if err != nil {
			return err
		}
		err = streamcopy.Copy(ctx, c.b, p.log.Stream, p.logEnd, reach.Last, func(s *streamcopy.Stored) error {
			d, err := readCommit(s)
			p.commits = append(p.commits, d)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// cutAndAdd adds the messages after the chosen ends that the copy needs.
func (c *copier) cutAndAdd(context.Context) error {
	cut(c.parts)
	for _, p := range c.parts {
		for i := range p.commits {
			if p.commits[i].Seq > p.logEnd {
				continue
			}
			if err := errors.Join(p.follows(p.commits[i].Stored), p.log.add(p.commits[i].Stored)); err != nil {
				return err
			}
		}
		for i := range p.events {
			if !p.events[i].taken {
				continue
			}
			if err := p.lane.add(p.events[i].Stored); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *copier) finish() error {
	for _, p := range c.parts {
		// No event may get a sequence that counts as handled.
		for _, seq := range p.handled { // any order: the largest
			p.laneEnd = max(p.laneEnd, seq)
		}
		p.log.Last, p.lane.Last = max(p.log.Last, p.logEnd), max(p.lane.Last, p.laneEnd)
	}
	for _, f := range c.files() {
		done, err := f.finish()
		if err != nil {
			return err
		}
		c.m.Files = append(c.m.Files, done)
	}
	return nil
}
