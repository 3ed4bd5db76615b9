package history

import (
	"testing"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// synthetic is a generated run: the streams of a faultless run, and the records of its clients. Tests
// spoil one thing in it.
type synthetic struct {
	work  Workload
	parts int
	now   time.Time

	lanes   [][]LaneMessage
	logs    [][]model.LogEntry
	acks    []ack
	watched []delivery
	state   map[string]*spaceState
	waiting []waiting
	letters []deadKey
	kills   []Kill
	newest  []int
	losses  []Loss
}

type ack struct {
	client, space int
	n             uint32
	lane          uint64
	at            time.Time
}

type delivery struct {
	observer, session int
	space, doc        string
	revision          uint64
	value             uint32
	at                time.Time
}

type spaceState struct {
	sum   Sum
	seen  map[string]int64
	epoch uint64
	owner string
	n     uint64
	lane  uint64
	out   map[string]uint64
	head  uint64
	mark  model.Value
}

type waiting struct {
	space, stream, id string
	pos, lane         uint64
	depth             int
	notBefore         int64
	slot              uint64 // once it waits
}

func newSynthetic() *synthetic {
	s := &synthetic{
		work: Workload{Seed: 5, Spaces: 4, Clients: 3}, parts: 2, now: time.Unix(1e9, 0),
		state: map[string]*spaceState{},
	}
	s.lanes, s.logs = make([][]LaneMessage, s.parts), make([][]model.LogEntry, s.parts)
	for i := range s.work.Spaces {
		s.state[s.work.Space(i)] = &spaceState{seen: map[string]int64{}, out: map[string]uint64{}}
	}
	return s
}

// faultless returns a run with n events per client and space.
func faultless(n int) *synthetic {
	s := newSynthetic()
	for i := range s.work.Spaces {
		s.takeOver(s.work.Space(i), "w1")
	}
	for k := range uint32(n) {
		for client := range s.work.Clients {
			for space := range s.work.Spaces {
				s.send(client, space, k+1)
				s.drain()
			}
		}
	}
	return s
}

func (s *synthetic) append(space string, c *model.Commit) {
	st := s.state[space]
	c.Version, c.Space, c.Runtime, c.Epoch = model.CommitVersion, space, st.owner, st.epoch
	c.Cursor = model.Cursor{Floor: st.lane}
	if c.Takeover {
		c.Epoch = 0
	}
	p := model.PartitionOf(space, s.parts)
	s.now = s.now.Add(time.Millisecond)
	data := model.AppendCommit(nil, c, nil)
	prev := st.head
	st.head = uint64(len(s.logs[p]) + 1)
	s.logs[p] = append(s.logs[p], model.LogEntry{Space: space, Seq: st.head, Prev: prev, Data: data, Stored: s.now})
	if c.Takeover {
		st.epoch, st.n = st.head, 0
	}
}

func (s *synthetic) takeOver(space, runtime string) {
	s.state[space].owner = runtime
	s.append(space, &model.Commit{Takeover: true})
}

// put stores an event in a lane.
func (s *synthetic) put(w waiting) {
	p := model.PartitionOf(w.space, s.parts)
	w.lane = uint64(len(s.lanes[p]) + 1)
	s.lanes[p] = append(s.lanes[p], LaneMessage{Seq: w.lane, Space: w.space, Stream: w.stream, ID: w.id})
	s.waiting = append(s.waiting, w)
}

func (s *synthetic) send(client, space int, n uint32) {
	name := s.work.Space(space)
	s.put(waiting{space: name, stream: s.work.Stream(client, space, n), id: EventID(client, n)})
	s.acks = append(s.acks, ack{client, space, n, s.waiting[len(s.waiting)-1].lane, s.now})
}

// drain handles everything.
func (s *synthetic) drain() {
	for len(s.waiting) > 0 {
		w := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.handle(w)
	}
}

func (s *synthetic) handle(w waiting) {
	st := s.state[w.space]
	if w.notBefore > 0 && w.slot == 0 && w.pos > 0 {
		st.n++
		st.lane = max(st.lane, w.lane)
		w.slot = 9
		later := model.Waiting{ID: w.id, Stream: w.stream, NotBefore: w.notBefore, Slot: w.slot, Lane: w.lane, Position: w.pos}
		s.append(w.space, &model.Commit{Txs: []model.Tx{{N: st.n, Later: &later}}})
	}
	s.now = s.now.Add(time.Duration(max(0, w.notBefore-s.now.UnixMilli())) * time.Millisecond)
	st.n++
	st.lane = max(st.lane, w.lane)
	tx := model.Tx{N: st.n, By: receipts.By(w.stream), Receipt: &model.Receipt{Event: w.id, Lane: w.lane, Pos: w.pos, Outcome: model.Handled}}
	switch w.stream {
	case Fail:
		tx.Receipt.Outcome, tx.Receipt.Error = model.Failed, FailText
	case Nobody, Nowhere:
		tx.Receipt.Outcome, tx.Receipt.Error = model.Refused, "no handler"
	}
	if tx.Receipt.Outcome != model.Handled {
		s.letters = append(s.letters, deadKey{w.space, w.stream, w.id})
		s.append(w.space, &model.Commit{Txs: []model.Tx{tx}})
		if w.stream == Nowhere {
			origin, _ := model.OriginOf(w.id)
			s.put(waiting{space: origin.Space, stream: model.Undelivered, id: model.NoticeID(w.id)})
		}
		return
	}
	st.sum = st.sum.Plus(w.stream, w.id)
	source := Source(w.stream, w.id)
	st.seen[source]++
	if tx.Receipt.Result = st.sum.Value(); w.stream == Job {
		tx.Receipt.Result = model.Value{}
	}
	tx.Writes = []model.Write{{Doc: DocSum, Value: st.sum.Value()}, {Doc: DocSeen, Path: model.Path{source}, Value: model.Int(st.seen[source])}}
	var next []waiting
	switch w.stream {
	case Mark:
		st.mark = s.work.MarkOf(w.space, w.id)
		tx.Writes = append(tx.Writes, model.Write{Doc: DocMark, Value: st.mark})
	case Unmark:
		st.mark = model.Value{}
		tx.Writes = append(tx.Writes, model.Write{Doc: DocMark})
	}
	for k, sent := range s.work.Sends(w.space, w.stream, w.id, w.depth) {
		id := (model.TxID{Space: w.space, Epoch: st.epoch, N: st.n}).Event(k)
		send := model.Send{ID: id, To: sent.To, Stream: sent.Stream, Payload: model.Object(model.F("d", sent.Depth))}
		if sent.To != w.space {
			st.out[sent.To]++
			send.Position = st.out[sent.To]
		}
		if send.Timer = sent.Timer; sent.After > 0 {
			send.NotBefore = s.now.UnixMilli() + sent.After
		}
		next = append(next, waiting{space: sent.To, stream: sent.Stream, id: id, pos: send.Position, depth: sent.Depth, notBefore: send.NotBefore})
		tx.Sends = append(tx.Sends, send)
	}
	s.append(w.space, &model.Commit{Txs: []model.Tx{tx}})
	switch {
	case w.stream != Work:
	case Hash(w.id)%2 == 0: // the owner reports it
		st.n++
		id := (model.TxID{Space: w.space, Epoch: st.epoch, N: st.n}).Event(0)
		end := model.Send{ID: id, To: w.space, Stream: Job, Payload: model.Object(model.F("key", w.id), model.F("n", 1))}
		s.append(w.space, &model.Commit{Txs: []model.Tx{{N: st.n, By: "perform " + Job, Sends: []model.Send{end}}}})
		s.waiting = append(s.waiting, waiting{space: w.space, stream: Job, id: id})
	default:
		s.put(waiting{space: w.space, stream: Job, id: "done:1-" + w.id})
	}
	for _, n := range next {
		if n.space == w.space {
			s.waiting = append(s.waiting, n)
		} else {
			s.put(n)
		}
	}
}

// compute adds a computation of the view of a space, and its delivery to an observer.
func (s *synthetic) compute(space string, observer, session int) {
	st := s.state[space]
	st.n++
	v := View(st.sum)
	s.append(space, &model.Commit{Txs: []model.Tx{{N: st.n, By: "compute " + DocView, Writes: []model.Write{{Doc: DocView, Value: v}}}}})
	s.watched = append(s.watched, delivery{observer, session, space, DocView, st.head, Hash(v.String()), s.now})
}

// check passes everything to a checker.
func (s *synthetic) check() *Checker {
	c := New(s.work, s.parts)
	c.Killed(s.kills)
	c.Losses = s.losses
	for _, a := range s.acks {
		c.Acked(a.client, a.space, a.n, a.lane, a.at)
	}
	for _, number := range s.newest {
		c.ShowsNewest(number)
	}
	for _, d := range s.watched {
		c.Watched(d.observer, d.session, d.space, d.doc, d.revision, d.value, d.at)
	}
	for _, lane := range s.lanes {
		for _, m := range lane {
			c.Lane(m)
		}
	}
	for p, log := range s.logs {
		for _, e := range log {
			c.Log(p, e)
		}
	}
	for _, l := range s.letters {
		c.Letter(l.space, l.stream, l.id)
	}
	for name, st := range c.spaces {
		c.Saved(name, s.saved(name, st))
	}
	c.Finish()
	return c
}

// saved returns the saved documents of a space.
func (s *synthetic) saved(name string, st *spaceHistory) model.SpaceState {
	out := model.SpaceState{Mark: model.StateDoc{Seq: st.rep.Seq}}
	for _, id := range st.rep.DocIDs() {
		out.Docs = append(out.Docs, model.StateDoc{Doc: id, Data: st.rep.Doc(id).Value.AppendJSON(nil)})
	}
	return out
}

// at finds the first entry of a log that handles an event of a stream.
func (s *synthetic) at(t *testing.T, stream string) (partition, index int) {
	t.Helper()
	for p, log := range s.logs {
		for i, e := range log {
			c, err := model.DecodeCommit(e.Data)
			if err != nil {
				t.Fatal(err)
			}
			if len(c.Txs) > 0 && c.Txs[0].By == receipts.By(stream) {
				return p, i
			}
		}
	}
	t.Fatalf("no event of stream %s", stream)
	return 0, 0
}

// change alters a commit.
func (s *synthetic) change(t *testing.T, p, i int, f func(*model.Commit)) {
	t.Helper()
	c, err := model.DecodeCommit(s.logs[p][i].Data)
	if err != nil {
		t.Fatal(err)
	}
	f(c)
	s.logs[p][i].Data = model.AppendCommit(nil, c, nil)
}

// alarm stores the n-th event of some client to a space that sets a timer, and returns its id.
func (s *synthetic) alarm(space, nth int) string {
	for n := uint32(1); ; n++ {
		if s.work.Stream(0, space, n) != Alarm {
			continue
		}
		if nth--; nth == 0 {
			return EventID(0, n)
		}
	}
}
