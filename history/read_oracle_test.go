package history_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/replica"
)

// oracle is a space whose owner commits, saves, is evicted and deposed, and whose store is purged, lags and goes back, between any two
// requests of a reader. It remembers what each document was after each commit.
type oracle struct {
	*testing.T
	port.Client // nil: for methods that reads do not call
	rng         *rand.Rand

	stored
	shown []stored // every state so far of the store in this epoch, which a replica that lags may still show
	epoch uint64
	// truth has for each epoch the values after each commit, the newest commit last.
	truth []map[uint64]map[string]replica.Doc

	owner  *replica.Replica
	saving []model.StateDoc   // of a checkpoint, in order, the mark last: its key is ""
	stale  [][]model.StateDoc // of owners that were deposed while they saved
	moves  int                // until the world is quiet
	lags   int                // until replicas are up to date
	tally  map[string]int
}

// stored is what one moment of the store has.
type stored struct {
	log   []model.LogEntry
	state map[string]model.StateDoc
	rev   uint64
	seq   uint64 // the last sequence of the log
}

func (s *stored) clone() stored {
	return stored{slices.Clone(s.log), maps.Clone(s.state), s.rev, s.seq}
}

func (s *stored) head() uint64 {
	if len(s.log) == 0 {
		return 0
	}
	return s.log[len(s.log)-1].Seq
}

func (s *stored) space() model.SpaceState {
	st := model.SpaceState{Mark: s.state[""]}
	for _, key := range slices.Sorted(maps.Keys(s.state)) {
		if key != "" {
			list := st.ListOf(key)
			*list = append(*list, s.state[key])
		}
	}
	return st
}

// put stores an item unless what is stored is as new.
func (s *stored) put(d model.StateDoc) bool {
	if have, there := s.state[d.Doc]; there && have.Seq >= d.Seq {
		return false
	}
	s.rev++
	d.Rev = s.rev
	s.state[d.Doc] = d
	return true
}

var oracleDocs = []string{"a", "b", "c", "d"}

func newOracle(t *testing.T, seed uint64) *oracle {
	o := &oracle{T: t, rng: rand.New(rand.NewPCG(seed, 17)), tally: map[string]int{}}
	o.state = map[string]model.StateDoc{}
	o.truth = []map[uint64]map[string]replica.Doc{{0: {}}}
	o.takeOver()
	o.shown = []stored{o.clone()}
	return o
}

func (o *oracle) must(err error) {
	o.Helper()
	if err != nil {
		o.Fatal(err)
	}
}

// load is what a new owner does: it loads the whole space.
func (o *oracle) load() *replica.Replica {
	r, err := replica.Load("s", o.space())
	o.must(err)
	for i := range o.log {
		e := &o.log[i]
		if e.Seq <= r.Seq {
			continue
		}
		o.must(e.Follows(r.Seq))
		c, err := e.Commit()
		o.must(err)
		_, err = r.Apply(e.Seq, c)
		o.must(err)
	}
	return r
}

func (o *oracle) takeOver() {
	if len(o.saving) > 0 {
		o.stale, o.saving = append(o.stale, o.saving), nil
	}
	o.owner = o.load()
	o.commit(&model.Commit{Takeover: true})
}

func (o *oracle) commit(c *model.Commit) {
	c.Version, c.Space, c.Runtime = model.CommitVersion, "s", "w"
	if !c.Takeover {
		c.Epoch = o.owner.Epoch
	}
	var txs []byte
	for i := range c.Txs {
		txs = model.AppendTx(txs, &c.Txs[i])
	}
	o.seq += 1 + o.rng.Uint64N(2) // other spaces have commits, too
	e := model.LogEntry{Space: "s", Seq: o.seq, Prev: o.head(), ID: c.ID(), Data: model.AppendCommit(nil, c, txs)}
	after := maps.Clone(o.truth[o.epoch][e.Prev])
	for _, tx := range c.Txs {
		for _, w := range tx.Writes {
			v, err := w.Apply(after[w.Doc].Value)
			o.must(err)
			after[w.Doc] = replica.Doc{Value: v, Seq: e.Seq}
		}
	}
	o.truth[o.epoch][e.Seq] = after
	o.log = append(o.log, e)
	_, err := o.owner.Apply(e.Seq, c)
	o.must(err)
}

func (o *oracle) write() {
	tx := model.Tx{N: o.seq + 1, By: "test"}
	for range 1 + o.rng.IntN(2) {
		w := model.Write{Doc: oracleDocs[o.rng.IntN(len(oracleDocs))], Value: model.Int(o.rng.Int64N(1000))}
		w.Delete = o.rng.IntN(4) == 0
		tx.Writes = append(tx.Writes, w)
	}
	o.commit(&model.Commit{Txs: []model.Tx{tx}})
}

// save stores the next item of a checkpoint, or begins one.
func (o *oracle) save() {
	if len(o.saving) == 0 {
		c, err := o.owner.Checkpoint()
		o.must(err)
		o.saving = append(c.Docs, c.Mark)
		return
	}
	next := o.saving[0]
	o.saving = o.saving[1:]
	if o.put(next) && next.Doc == "" {
		o.owner.MarkStored(model.MarkPosition{Rev: o.rev, Seq: next.Seq})
		o.tally["checkpoints"]++
	}
}

// saveLate stores the next item of an owner that was deposed: its mark only if no item was refused.
func (o *oracle) saveLate() {
	if len(o.stale) == 0 {
		return
	}
	n := o.rng.IntN(len(o.stale))
	next, rest := o.stale[n][0], o.stale[n][1:]
	if stored := o.put(next); !stored && len(rest) > 0 {
		rest = rest[:len(rest)-1]
	} else if stored && next.Data != nil && next.Seq < o.owner.Epoch {
		o.tally["late saves"]++
	}
	if o.stale[n] = rest; len(rest) == 0 {
		o.stale = slices.Delete(o.stale, n, n+1)
	}
}

func (o *oracle) purge() {
	mark := o.state[""].Seq
	o.log = slices.DeleteFunc(slices.Clone(o.log), func(e model.LogEntry) bool { return e.Seq < mark && e.Seq < o.head() })
}

// forget removes the markers of deleted documents that the mark covers. An owner that was deposed may restore them, and be noticed: this owner has
// saved a mark.
func (o *oracle) forget() {
	if mark := o.state[""].Seq; mark < o.owner.Epoch || len(o.saving) > 0 {
		return
	}
	for key, d := range o.state { // any order: each on its own
		if key != "" && d.Data == nil && d.Seq <= o.state[""].Seq {
			o.state = maps.Clone(o.state)
			delete(o.state, key)
			o.tally["markers forgotten"]++
		}
	}
}

// goBack restores the store as it was.
func (o *oracle) goBack() {
	back := o.shown[o.rng.IntN(len(o.shown))]
	o.stored, o.shown = back.clone(), []stored{back}
	truth := map[uint64]map[string]replica.Doc{}
	for seq, docs := range o.truth[o.epoch] { // any order: into a map
		if seq <= o.head() {
			truth[seq] = docs
		}
	}
	o.truth = append(o.truth, truth)
	o.epoch++
	o.saving, o.stale = nil, nil
	o.owner = o.load()
	o.commit(&model.Commit{Takeover: true})
	o.tally["rewinds"]++
}

// move lets the world go on.
func (o *oracle) move() {
	most := 5
	if o.rng.IntN(12) == 0 {
		most = 30 // a process that reads may stand still
	}
	for n := o.rng.IntN(most); n > 0 && o.moves > 0; n-- {
		o.moves--
		switch k := o.rng.IntN(40); {
		case k < 10:
			o.write()
		case k < 30:
			o.save()
		case k < 32:
			o.purge()
		case k < 33:
			o.saveLate()
		case k < 38:
			o.forget()
		case k == 38 && o.rng.IntN(2) == 0:
			o.goBack()
		default:
			o.takeOver()
		}
		o.shown = append(o.shown, o.clone())
	}
}

// replica returns what one of the servers shows.
func (o *oracle) replica() *stored {
	if o.lags == 0 || o.rng.IntN(2) == 0 {
		return &o.stored
	}
	o.lags--
	o.tally["lagging answers"]++
	return &o.shown[len(o.shown)-1-o.rng.IntN(min(len(o.shown), 12))]
}

func (o *oracle) Epoch() uint64 { return o.epoch }

func (o *oracle) Head(context.Context, string) (uint64, error) {
	o.move()
	return o.head(), nil
}

func (o *oracle) LoadMark(context.Context, string) (model.StateDoc, time.Time, error) {
	o.move()
	return o.state[""], time.Time{}, nil
}

func (o *oracle) LoadPart(_ context.Context, _, key string) (model.SpaceState, error) {
	o.move()
	st := o.replica().space()
	return st.Part(key), nil
}

func (o *oracle) ReadLog(_ context.Context, _ string, after uint64, limit int) (found []model.LogEntry, err error) {
	o.move()
	for _, e := range o.replica().log {
		if e.Seq > after && len(found) < limit {
			found = append(found, e)
		}
	}
	return found, nil
}

// at returns a document after the last commit up to a sequence.
func (o *oracle) at(epoch, seq uint64, doc string) replica.Doc {
	var last uint64
	for s := range o.truth[epoch] { // any order: the greatest
		if s <= seq {
			last = max(last, s)
		}
	}
	return o.truth[epoch][last][doc]
}

// check reads a document while the world goes on, and compares it with what it was at the position that the read reports, in a state of the store
// since the read began.
func (o *oracle) check(doc string) {
	o.Helper()
	o.moves, o.lags = o.rng.IntN(60), o.rng.IntN(6)
	head, epoch := o.head(), o.epoch
	d, err := history.Read(o.Context(), o, "s", doc)
	o.must(err)
	if d.Read < head && o.epoch == epoch {
		o.Fatalf("%s was read up to %d, and the head was %d", doc, d.Read, head)
	}
	var was []string
	for e := epoch; e <= o.epoch; e++ {
		want := o.at(e, d.Read, doc)
		forgotten := d.Value.IsAbsent() && d.Seq <= want.Seq // the last deletion, maybe not all
		if model.Equal(d.Value, want.Value) && (d.Seq == want.Seq || forgotten) {
			return
		}
		was = append(was, fmt.Sprintf("%v@%d", want.Value, want.Seq))
	}
	o.Fatalf("%s was read as %v@%d at %d, and was there %v", doc, d.Value, d.Seq, d.Read, was)
}

// A document is read as it was after one commit, at the position that the read reports and not before the head at its begin,
// whatever happens between the requests of the read: commits, each step of a checkpoint, takeovers, saves of owners that are deposed,
// purges, a store that goes back, and replicas that lag.
func TestRead_IsWhatAFullLoadSaysAtThePositionOfTheRead(t *testing.T) {
	tally := map[string]int{}
	for seed := range uint64(300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOracle(t, seed)
				for range 40 {
					o.moves = 10
					o.move()
					o.check(oracleDocs[o.rng.IntN(len(oracleDocs))])
				}
				full := o.load() // the whole of it agrees with the oracle, too
				for _, doc := range oracleDocs {
					if want := o.at(o.epoch, full.Seq, doc); !model.Equal(full.Doc(doc).Value, want.Value) {
						t.Errorf("%s is loaded as %v, and is %v", doc, full.Doc(doc), want)
					}
				}
				for what, n := range o.tally { // any order: sums
					tally[what] += n
				}
			})
		})
	}
	for _, what := range []string{"checkpoints", "late saves", "markers forgotten", "rewinds", "lagging answers"} {
		if tally[what] < 100 {
			t.Errorf("%s: %d", what, tally[what])
		}
	}
}
