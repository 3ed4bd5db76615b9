package membus

import (
	"maps"
	"slices"

	"github.com/settlehq/settle/model"
)

// Snapshot is the stored data of a server at one time.
type Snapshot struct {
	partitions []*partition
	members    members
	dead       dead
	records    records
}

// Snapshot returns a copy of the stored data.
func (s *Server) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return (&Snapshot{s.partitions, s.members, s.dead, s.records}).clone()
}

// Epoch returns how often the store has gone back.
func (s *Server) Epoch() uint64 { return s.epoch.Load() }

// GoBack replaces the stored data by a snapshot, like a machine that returns to an earlier state. Every
// connection breaks: messages in flight are lost. Every client notices before its next request (see
// port.Bus.Epoch): its subscriptions end with model.ErrRewound, and so do its writes that depend on what it
// had read.
func (s *Server) GoBack(to *Snapshot) {
	s.turning.Lock()
	defer s.turning.Unlock()
	to = to.clone()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch.Add(1)
	for i, p := range s.partitions {
		to.partitions[i].log.grown, to.partitions[i].lane.grown = p.log.grown, p.lane.grown
		*p = *to.partitions[i]
	}
	to.members.announced, to.dead.grown, to.records.stored = s.members.announced, s.dead.grown, s.records.stored
	s.members, s.dead, s.records = to.members, to.dead, to.records
	s.raiseAll()
}

// GoBackIn replaces the log and the state of one partition by those of a snapshot, and the lane if lane is
// set. The other partitions stay as they are: a power cut, or the copy of a few files, may affect each stream
// differently. Connections break as with GoBack.
func (s *Server) GoBackIn(partition int, to *Snapshot, lane bool) {
	s.turning.Lock()
	defer s.turning.Unlock()
	to = to.clone()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch.Add(1)
	now, then := s.partitions[partition], to.partitions[partition]
	then.log.grown, then.lane.grown = now.log.grown, now.lane.grown
	if !lane {
		then.lane = now.lane
	}
	*now = *then
	s.raiseAll()
}

// CutLane removes the events after a sequence from a partition's lane, as LoseLane does, and breaks every
// connection, as GoBack does: a power cut that truncates a lane.
func (s *Server) CutLane(partition int, behind uint64) {
	s.turning.Lock()
	defer s.turning.Unlock()
	s.LoseLane(partition, behind)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch.Add(1)
	s.raiseAll()
}

// raiseAll wakes all followers.
func (s *Server) raiseAll() {
	for _, p := range s.partitions {
		p.log.grown.raise()
		p.lane.grown.raise()
	}
	s.members.announced.raise()
	s.dead.grown.raise()
	s.records.stored.raise()
}

// clone returns a copy that shares no mutable data with the original. It has no waiters.
func (s *Snapshot) clone() *Snapshot {
	c := &Snapshot{
		members: members{last: maps.Clone(s.members.last), revision: s.members.revision},
		dead:    dead{stream: s.dead.stream.clone(), stored: maps.Clone(s.dead.stored)},
		records: records{last: maps.Clone(s.records.last), revision: s.records.revision},
	}
	for _, p := range s.partitions {
		c.partitions = append(c.partitions, p.clone())
	}
	return c
}

func (p *partition) clone() *partition {
	ahead := p.ahead
	ahead.Aside = slices.Clone(ahead.Aside)
	c := &partition{
		log:       commits{stream: p.log.stream.clone(), cuts: cloneLists(p.log.cuts), size: p.log.size, left: p.log.left},
		lane:      lane{stream: p.lane.stream.clone(), stored: maps.Clone(p.lane.stored)},
		state:     p.state,
		positions: maps.Clone(p.positions),
		ahead:     ahead,
	}
	c.state.history, c.state.marked = slices.Clone(p.state.history), maps.Clone(p.state.marked)
	c.state.replaced, c.state.purged = maps.Clone(p.state.replaced), maps.Clone(p.state.purged)
	c.state.spaces = map[string]map[string]model.StateDoc{}
	for space, items := range p.state.spaces { // any order: each on its own
		c.state.spaces[space] = maps.Clone(items)
	}
	return c
}

func (s *stream[T]) clone() stream[T] {
	return stream[T]{purged: s.purged, messages: slices.Clone(s.messages), spaces: cloneLists(s.spaces)}
}

func cloneLists[T any](lists map[string][]T) map[string][]T {
	c := make(map[string][]T, len(lists))
	for name, list := range lists { // any order: each on its own
		c[name] = slices.Clone(list)
	}
	return c
}
