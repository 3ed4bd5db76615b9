package membus

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
)

// state is a STATE bucket: the last value of every key, each with the revision of the bucket at which it was
// put.
type state struct {
	spaces   map[string]map[string]model.StateDoc
	revision uint64
	// history is every put, in order, if it is recorded.
	history  []put
	remember bool
	marked   map[string]time.Time // when the mark of a space was put
	// replaced are the items that the last put of their key has replaced, by space and key; see RebuildState.
	replaced map[string]model.StateDoc
	purged   map[string]bool // keys whose last item was purged
}

// stateStore stores the saved documents and positions of all partitions.
type stateStore struct{ *data }

// mark is the key of a space's checkpoint mark. No document can have this name.
const mark = ""

func newState() state {
	return state{spaces: map[string]map[string]model.StateDoc{}, marked: map[string]time.Time{}, replaced: map[string]model.StateDoc{}, purged: map[string]bool{}}
}

// SaveDoc stores a document of a space, or returns model.ErrOutdated if the stored one is as new or newer. It
// returns the stored revision in both cases.
func (s *stateStore) SaveDoc(space string, d model.StateDoc) (rev uint64, err error) {
	return s.put(space, d.Doc, d)
}

// SaveMark is SaveDoc for the checkpoint mark.
func (s *stateStore) SaveMark(space string, m model.StateDoc) (rev uint64, err error) {
	return s.put(space, mark, m)
}

// put compares only Seq. A real bucket compares revisions, and its client reads and retries when they differ,
// with the same result.
func (s *stateStore) put(space, key string, d model.StateDoc) (uint64, error) {
	if docSize(d) > s.maxPayload {
		return d.Rev, model.ErrTooLarge
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	state := &s.of(space).state
	if old, there := state.spaces[space][key]; there && old.Seq >= d.Seq || d.Kept.Rev > 0 && old.Rev != d.Rev {
		return old.Rev, &model.OutdatedError{Have: old.Seq, Rev: old.Rev, Want: d.Seq}
	}
	if key == mark {
		state.marked[space] = s.time()
	}
	return state.put(space, key, d), nil
}

// marked returns when the mark of a space was put.
func (s *stateStore) marked(space string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of(space).state.marked[space]
}

func (st *state) put(space, key string, d model.StateDoc) uint64 {
	st.revision++
	d.Rev, d.Data = st.revision, bytes.Clone(d.Data)
	if old, there := st.spaces[space][key]; there {
		st.replaced[space+"."+key] = old
	}
	st.keep(space, key, d)
	if st.remember {
		d.Doc = key
		st.history = append(st.history, put{space, d})
	}
	return d.Rev
}

func (st *state) keep(space, key string, d model.StateDoc) {
	if st.spaces[space] == nil {
		st.spaces[space] = map[string]model.StateDoc{}
	}
	st.spaces[space][key] = d
}

// Saved returns the stored document of a space, and false if there is none. The name of the mark is "".
func (s *stateStore) Saved(space, doc string) (model.StateDoc, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, there := s.of(space).state.spaces[space][doc]
	d.Data = bytes.Clone(d.Data)
	return d, there
}

// LoadState returns everything that is stored of a space, its documents sorted by name.
func (s *stateStore) LoadState(space string) model.SpaceState {
	s.mu.Lock()
	defer s.mu.Unlock()
	var loaded model.SpaceState
	// any order: they are sorted below
	for key, d := range s.of(space).state.spaces[space] {
		d.Data = bytes.Clone(d.Data)
		if key == mark {
			loaded.Mark = d
			continue
		}
		list := loaded.ListOf(key)
		*list = append(*list, d)
	}
	slices.SortFunc(loaded.Docs, byKey)
	slices.SortFunc(loaded.Observations, byKey)
	slices.SortFunc(loaded.Pieces, byKey)
	slices.SortFunc(loaded.Later, byKey)
	return loaded
}

func byKey(a, b model.StateDoc) int { return cmp.Compare(a.Doc, b.Doc) }

// LoadPosition returns the number stored under a name, 0 if there is none.
func (s *stateStore) LoadPosition(partition int, name string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.partitions[partition].positions[name].seq
}

// SavePosition stores the larger of the stored number and seq.
func (s *stateStore) SavePosition(partition int, name string, seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if positions := s.partitions[partition].positions; seq > positions[name].seq {
		positions[name] = position{seq, s.time()}
	}
}

// LoadAhead returns what SaveAhead has stored.
func (s *stateStore) LoadAhead(partition int) model.Ahead {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.partitions[partition].ahead
	if a.UpTo != s.partitions[partition].positions[model.AheadPosition].seq {
		return model.Ahead{} // the position was moved since
	}
	a.Aside = slices.Clone(a.Aside)
	return a
}

// SaveAhead stores a if it reaches further than what is stored.
func (s *stateStore) SaveAhead(partition int, a model.Ahead) {
	a.Aside = slices.Clone(a.Aside)
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.partitions[partition]; a.UpTo > p.positions[model.AheadPosition].seq {
		p.ahead, p.positions[model.AheadPosition] = a, position{a.UpTo, s.time()}
	}
}

// Remember records every put into the STATE buckets from now on, so that replicas can lag. Without it they
// never lag.
func (s *stateStore) Remember() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.partitions {
		p.state.remember = true
	}
}

func (s *stateStore) loadStateBehind(space string, n int) model.SpaceState {
	if n <= 0 || !s.remembers(space) {
		return s.LoadState(space)
	}
	return s.stateBehind(space, n).LoadState(space)
}

// stateBehind returns a store of one partition that has the space's bucket as of n changes ago.
func (s *stateStore) stateBehind(space string, n int) *stateStore {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := &s.of(space).state
	old := newPartition()
	for _, p := range st.history[:max(0, len(st.history)-n)] {
		if p.doc.Rev == purgedRev {
			delete(old.state.spaces[p.space], p.doc.Doc)
			continue
		}
		old.state.keep(p.space, p.doc.Doc, p.doc)
	}
	return &stateStore{&data{partitions: []*partition{old}}}
}

func (s *stateStore) remembers(space string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of(space).state.remember
}

// DueSpaces lists the spaces of a partition that have a wakeup, sorted by name.
func (s *stateStore) DueSpaces(partition int) []model.Due {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []model.Due
	for space, items := range s.partitions[partition].state.spaces { // any order: sorted below
		at, err := strconv.ParseInt(string(items[model.DueKey].Data), 10, 64)
		if err == nil && at > 0 {
			list = append(list, model.Due{Space: space, At: at})
		}
	}
	slices.SortFunc(list, func(a, b model.Due) int { return cmp.Compare(a.Space, b.Space) })
	return list
}

// dueBehind is DueSpaces as it was n changes of the bucket ago.
func (s *stateStore) dueBehind(number, n int) []model.Due {
	s.mu.Lock()
	st := &s.partitions[number].state
	if n <= 0 || !st.remember {
		s.mu.Unlock()
		return s.DueSpaces(number)
	}
	old := newPartition()
	for _, p := range st.history[:max(0, len(st.history)-n)] {
		old.state.keep(p.space, p.doc.Doc, p.doc)
	}
	s.mu.Unlock()
	return (&stateStore{&data{partitions: []*partition{old}}}).DueSpaces(0)
}

// MovePosition stores a number under a name, even a smaller one.
func (s *stateStore) MovePosition(partition int, name string, seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.partitions[partition].positions[name] = position{seq, s.time()}
}

// ForgetState removes everything that is saved of a space, like the restore of an old backup.
func (s *stateStore) ForgetState(space string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of(space).state.spaces, space)
}

// PurgeState removes the marker of a deleted item, if that is still what is stored.
func (s *stateStore) PurgeState(space string, marker model.StateDoc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := &s.of(space).state
	if d, there := st.spaces[space][marker.Doc]; there && d.Data == nil && d.Rev == marker.Rev {
		delete(st.spaces[space], marker.Doc)
		st.purged[space+"."+marker.Doc] = true
		if st.remember {
			st.history = append(st.history, put{space, model.StateDoc{Doc: marker.Doc, Rev: purgedRev}})
		}
	}
}

// RebuildState restores what the purged markers of a partition had replaced, as a server does that is killed: its files have it,
// and no note that it was removed. It returns how many documents are back.
func (s *stateStore) RebuildState(partition int) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := &s.partitions[partition].state
	for name, d := range st.replaced { // any order: each key once
		space, key, _ := strings.Cut(name, ".")
		if _, there := st.spaces[space][key]; !there && st.purged[name] {
			st.keep(space, key, d)
			n++
			if st.remember {
				d.Doc = key
				st.history = append(st.history, put{space, d})
			}
		}
	}
	return n
}

// put is an entry of a bucket's history.
type put struct {
	space string
	doc   model.StateDoc // its name is the key, for the mark too
}

// purgedRev marks a removal in a bucket's history.
const purgedRev = 0
