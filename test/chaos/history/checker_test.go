package history

import (
	"slices"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
)

func TestAFaultlessRunIsSound(t *testing.T) {
	s := faultless(40)
	s.compute("s00", 1, 1)
	s.takeOver("s00", "w2")
	s.compute("s00", 1, 2)
	c := s.check()
	for rule, n := range c.Violations {
		t.Errorf("%s: %d: %v", rule, n, c.Examples[rule])
	}
	n := c.Counts
	if n.Acked != 480 || n.FromClients != 480 || n.Crossed == 0 || n.Own == 0 || n.Notices == 0 || n.Jobs == 0 || n.Waited == 0 || n.Failed == 0 || n.Refused == 0 || n.Letters != n.Failed+n.Refused {
		t.Errorf("the run lacks something that it is to show: %+v", n)
	}
	if n.Handled != n.FromClients+n.Crossed+n.Own+n.Notices+n.Jobs || n.Takeovers != 5 || n.Sessions != 2 {
		t.Errorf("counts %+v", n)
	}
}

// spoilLater changes an event of another space that came before its time.
func spoilLater(f func(*model.Waiting)) func(*testing.T, *synthetic) {
	return func(t *testing.T, s *synthetic) {
		for p, log := range s.logs {
			for i, e := range log {
				if c, err := model.DecodeCommit(e.Data); err == nil && len(c.Txs) > 0 && c.Txs[0].Later != nil {
					s.change(t, p, i, func(c *model.Commit) { f(c.Txs[0].Later) })
					return
				}
			}
		}
		t.Fatal("nothing waits for its time")
	}
}

// A timer that is set again replaces the previous one, which is not handled.
func TestATimerThatIsSetAgainIsNotLost(t *testing.T) {
	s := newSynthetic()
	s.takeOver("s00", "w1")
	s.put(waiting{space: "s00", stream: Alarm, id: s.alarm(0, 1)})
	s.handle(s.waiting[0])
	first := s.waiting[1].id
	s.waiting = nil
	s.put(waiting{space: "s00", stream: Alarm, id: s.alarm(0, 2)})
	s.drain()
	if c := s.check(); c.Violations[Lost] != 1 {
		t.Errorf("a timer is not handled, and was not cancelled: found %v %v", c.Violations, c.Examples)
	}
	p := model.PartitionOf("s00", s.parts)
	s.change(t, p, 2, func(c *model.Commit) { c.Txs[0].Cancels = []model.Cancel{{ID: first, Slot: 1}} })
	if c := s.check(); !c.Sound() || c.Counts.Superseded != 1 {
		t.Errorf("a timer that was set again: found %v %v, %d superseded", c.Violations, c.Examples, c.Counts.Superseded)
	}
}

// Each case spoils one thing in a faultless run, and the checker must report it.
func TestEverySpoiltRunIsFound(t *testing.T) {
	drop := func(stream string) func(*testing.T, *synthetic) {
		return func(t *testing.T, s *synthetic) {
			p, i := s.at(t, stream)
			s.logs[p] = slices.Delete(s.logs[p], i, i+1)
		}
	}
	repeat := func(stream string) func(*testing.T, *synthetic) {
		return func(t *testing.T, s *synthetic) {
			p, i := s.at(t, stream)
			last := s.logs[p][len(s.logs[p])-1]
			again := s.logs[p][i]
			again.Seq, again.Stored = last.Seq+1, last.Stored
			s.logs[p] = append(s.logs[p], again)
		}
	}
	for name, c := range map[string]struct {
		want  Rule
		spoil func(*testing.T, *synthetic)
	}{
		"a client's event has no receipt":           {Lost, drop(Add)},
		"a hop has no receipt":                      {Lost, drop(Hop)},
		"the end of a task has no receipt":          {Lost, drop(Job)},
		"the end of a task has two":                 {Duplicates, repeat(Job)},
		"a task that was never started":             {Duplicates, drop(Work)},
		"a deletion is missing":                     {Sums, spoilLast(func(tx *model.Tx) { tx.Writes = append(tx.Writes, model.Write{Doc: DocMark, Value: model.Int(1)}) })},
		"a timer is none":                           {Effects, spoilTx(Alarm, func(tx *model.Tx) { tx.Sends[0].Timer = "" })},
		"an event waits that should not":            {Effects, spoilTx(Echo, func(tx *model.Tx) { tx.Sends[0].NotBefore = 1 })},
		"an event does not wait":                    {Effects, spoilTx(Later, func(tx *model.Tx) { tx.Sends[0].NotBefore = 0 })},
		"a timer before its time":                   {Early, spoilTx(Alarm, func(tx *model.Tx) { tx.Sends[0].NotBefore += 60_000 })},
		"an event of another space before its time": {Early, spoilLater(func(w *model.Waiting) { w.NotBefore += 60_000 })},
		"a waiting event is cancelled":              {Lost, spoilTx(Add, func(tx *model.Tx) { tx.Cancels = []model.Cancel{{ID: "s01:1:1:0", Slot: 1}} })},
		"a follow-up has no receipt":                {Lost, drop(Own)},
		"a notice has no receipt":                   {Lost, drop(model.Undelivered)},
		"a client's event has two":                  {Duplicates, repeat(Add)},
		"a leaf has two":                            {Duplicates, repeat(Leaf)},
		"a follow-up has two":                       {Duplicates, repeat(Own)},
		"a notice has two":                          {Duplicates, repeat(model.Undelivered)},
		"an event that failed was handled":          {Effects, spoilTx(Fail, func(tx *model.Tx) { tx.Receipt.Outcome = model.Handled })},
		"an event failed that should not":           {Effects, spoilTx(Add, func(tx *model.Tx) { tx.Receipt.Outcome = model.Failed })},
		"a failed event has an effect":              {Effects, spoilTx(Fail, func(tx *model.Tx) { tx.Writes = []model.Write{{Doc: DocSum, Value: model.Int(1)}} })},
		"a send is missing":                         {Effects, spoilTx(Fan, func(tx *model.Tx) { tx.Sends = tx.Sends[:3] })},
		"a send goes elsewhere":                     {Effects, spoilTx(Chain, func(tx *model.Tx) { tx.Sends[0].Stream = Leaf })},
		"a position is left out":                    {Effects, spoilTx(Chain, func(tx *model.Tx) { tx.Sends[0].Position++ })},
		"a handler saw another sum":                 {Sums, spoilTx(Add, func(tx *model.Tx) { tx.Receipt.Result = Sum{7, 7}.Value() })},
		"a write is missing":                        {Sums, spoilLast(func(tx *model.Tx) { tx.Writes = nil })},
		"a receipt names another place":             {OutOfOrder, spoilTx(Add, func(tx *model.Tx) { tx.Receipt.Lane++ })},
		"an event that was not sent":                {Unsent, spoilTx(Add, func(tx *model.Tx) { tx.Receipt.Event = EventID(1, 4000) })},
		"events in the wrong order": {OutOfOrder, func(t *testing.T, s *synthetic) {
			var of []int // of one client and space
			p := model.PartitionOf("s01", s.parts)
			for i := range s.logs[p] {
				if commit, _ := model.DecodeCommit(s.logs[p][i].Data); s.logs[p][i].Space == "s01" && len(commit.Txs) > 0 && commit.Txs[0].Receipt != nil {
					if client, _, ok := ParseEventID(commit.Txs[0].Receipt.Event); ok && client == 1 && commit.Txs[0].By == "handle "+Add {
						of = append(of, i)
					}
				}
			}
			a, b := of[0], of[1]
			s.logs[p][a].Data, s.logs[p][b].Data = s.logs[p][b].Data, s.logs[p][a].Data
		}},
		"a deposed owner commits": {Fencing, func(t *testing.T, s *synthetic) {
			s.takeOver("s00", "w2")
			s.state["s00"].owner = "w1"
			s.send(0, 0, 41)
			s.drain()
		}},
		"an epoch that is over": {Fencing, func(t *testing.T, s *synthetic) {
			s.send(0, 0, 41)
			s.drain()
			p := model.PartitionOf("s00", s.parts)
			s.change(t, p, len(s.logs[p])-1, func(c *model.Commit) { c.Epoch-- })
		}},
		"a commit behind another than it says": {Fencing, func(t *testing.T, s *synthetic) {
			p, i := s.at(t, Hop)
			s.logs[p][i].Prev--
		}},
		"a cursor goes back": {Fencing, func(t *testing.T, s *synthetic) {
			p, i := s.at(t, Add)
			s.change(t, p, i, func(c *model.Commit) { c.Cursor.Floor = 1 << 40 })
		}},
		"handled before the commit that sent it": {Causality, func(t *testing.T, s *synthetic) {
			p, i := s.at(t, Hop)
			s.logs[p][i].Stored = s.logs[p][i].Stored.Add(-time.Hour)
		}},
		"acknowledged and not in the lane": {Lost, func(t *testing.T, s *synthetic) {
			s.acks = append(s.acks, ack{client: 2, space: 3, n: 41, lane: 999})
		}},
		"acknowledged at another place": {Lost, func(t *testing.T, s *synthetic) { s.acks[0].lane++ }},
		"acknowledged twice, at two places": {Duplicates, func(t *testing.T, s *synthetic) {
			s.acks = append(s.acks, ack{s.acks[5].client, s.acks[5].space, s.acks[5].n, s.acks[5].lane + 1, s.now})
		}},
		"twice in a lane": {Duplicates, func(t *testing.T, s *synthetic) {
			m := s.lanes[0][0]
			m.Seq = uint64(len(s.lanes[0]) + 1)
			s.lanes[0] = append(s.lanes[0], m)
		}},
		"a letter is missing":          {Dead, func(t *testing.T, s *synthetic) { s.letters = s.letters[1:] }},
		"a letter too many":            {Dead, func(t *testing.T, s *synthetic) { s.letters = append(s.letters, s.letters[0]) }},
		"computed without an observer": {Unwatched, func(t *testing.T, s *synthetic) { s.compute("s02", 1, 1); s.watched = nil }},
		"a watch goes back":            {Regression, watching(func(s *synthetic, d []delivery) []delivery { return []delivery{d[0], d[1], d[0]} })},
		"a watch skips":                {Watches, watching(func(s *synthetic, d []delivery) []delivery { return []delivery{d[0], d[2]} })},
		"a watch stays behind":         {Watches, watching(func(s *synthetic, d []delivery) []delivery { return d[:2] })},
		"a watch invents": {Watches, watching(func(s *synthetic, d []delivery) []delivery {
			d[1].value++
			return d
		})},
		"a watch goes on behind the end of the log": {Watches, watching(func(s *synthetic, d []delivery) []delivery {
			for range 2 {
				last := d[len(d)-1]
				last.revision += 1 << 40
				d = append(d, last)
			}
			return d
		})},
		"the next watch begins in the past": {Regression, watching(func(s *synthetic, d []delivery) []delivery {
			again := d[1]
			again.session = 2
			last := d[2]
			last.session = 2
			return append(d, again, last)
		})},
	} {
		t.Run(name, func(t *testing.T) {
			s := faultless(40)
			c.spoil(t, s)
			checker := s.check()
			if checker.Violations[c.want] == 0 {
				t.Errorf("found %v, want %q", checker.Violations, c.want)
			}
			if name == "a client's event has two" && checker.Violations[Duplicates] != 1 {
				t.Errorf("%d duplicates, want 1", checker.Violations[Duplicates])
			}
		})
	}
}

// spoilTx changes the first handling of a stream.
func spoilTx(stream string, f func(*model.Tx)) func(*testing.T, *synthetic) {
	return func(t *testing.T, s *synthetic) {
		p, i := s.at(t, stream)
		s.change(t, p, i, func(c *model.Commit) { f(&c.Txs[0]) })
	}
}

// spoilLast changes the last handling of a log.
func spoilLast(f func(*model.Tx)) func(*testing.T, *synthetic) {
	return func(t *testing.T, s *synthetic) {
		for i := len(s.logs[0]) - 1; ; i-- {
			done := false
			s.change(t, 0, i, func(c *model.Commit) {
				if done = len(c.Txs) > 0 && len(c.Txs[0].Writes) > 0; done {
					f(&c.Txs[0])
				}
			})
			if done {
				return
			}
		}
	}
}

// watching makes an observer receive three versions, and then changes the deliveries. A watch over HTTP
// shows the newest value when its reader is ready.
func TestAWatchThatShowsTheNewestMayLeaveSomeOut(t *testing.T) {
	s := faultless(2)
	for range 3 {
		s.compute("s00", 1, 1)
	}
	s.watched = []delivery{s.watched[0], s.watched[2]}
	s.newest = []int{1}
	if c := s.check(); !c.Sound() {
		t.Errorf("found %v %v", c.Violations, c.Examples)
	}
}

func watching(f func(*synthetic, []delivery) []delivery) func(*testing.T, *synthetic) {
	return func(t *testing.T, s *synthetic) {
		for k := range 3 {
			s.compute("s03", 1, 1)
			s.send(0, 3, uint32(41+k))
			s.drain()
		}
		s.compute("s03", 1, 1)
		s.watched = f(s, s.watched[:3:3])
	}
}

func TestABucketThatDiffersFromTheLogIsFound(t *testing.T) {
	for name, spoil := range map[string]func(*model.SpaceState){
		"behind":             func(st *model.SpaceState) { st.Mark.Seq-- },
		"another value":      func(st *model.SpaceState) { st.Docs[0].Data = []byte("7") },
		"a document missing": func(st *model.SpaceState) { st.Docs = st.Docs[1:] },
		"one too many":       func(st *model.SpaceState) { st.Docs = append(st.Docs, model.StateDoc{Doc: "x", Data: []byte("1")}) },
		"unreadable":         func(st *model.SpaceState) { st.Docs[0].Data = []byte("{") },
	} {
		s := faultless(3)
		c := s.check()
		st := s.saved("s01", c.spaces["s01"])
		spoil(&st)
		c.Saved("s01", st)
		if c.Violations[State] == 0 {
			t.Errorf("%s: not found", name)
		}
	}
}

func TestAnAnswerThatIsNotInTheLogIsFound(t *testing.T) {
	for _, a := range []Answer{{model.Failed, 0}, {model.Handled, 77}} {
		s := faultless(2)
		c := New(s.work, s.parts)
		c.Received(1, 1, 1, a, time.Time{})
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
		c.Finish()
		if c.Violations[Answers] != 1 {
			t.Errorf("%v: %d violations, want 1", a, c.Violations[Answers])
		}
	}
	c := New(Workload{Spaces: 2, Clients: 1}, 1)
	c.Received(0, 1, 1, Answer{Outcome: model.Handled}, time.Time{})
	c.Received(0, 1, 1, Answer{Outcome: model.Failed}, time.Time{})
	if c.Violations[Answers] != 1 {
		t.Error("two answers to one question are not found")
	}
}

func TestTakeoversAreMeasuredFromTheKillToTheFirstCommitOfTheNextOwner(t *testing.T) {
	s := faultless(3)
	killed := s.now
	s.kills = []Kill{{"w1", killed}}
	s.now = killed.Add(2 * time.Second)
	p := model.PartitionOf("s00", s.parts)
	var others []string
	for i := 1; i < s.work.Spaces; i++ {
		if name := s.work.Space(i); model.PartitionOf(name, s.parts) == p {
			others = append(others, name)
		}
	}
	s.takeOver("s00", "w2")
	for _, name := range others {
		s.takeOver(name, "w2")
	}
	c := s.check()
	if len(c.Counts.TakeOver) != 1 {
		t.Fatalf("%d takeovers, want 1: %+v", len(c.Counts.TakeOver), c.Counts.TakeOver)
	}
	got := c.Counts.TakeOver[0]
	want := Takeover{Kill: s.kills[0], Partition: p, Spaces: len(others) + 1, After: 2001 * time.Millisecond, Slowest: time.Duration(2001+len(others)) * time.Millisecond}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// The link of a mark moves between the next spaces; their views are observed as long as a document that
// reads the link is watched.
func TestTheLinkOfAMarkMoves(t *testing.T) {
	w := Workload{Seed: 9, Spaces: 24, Clients: 16, Hosted: 4}
	c := New(w, 1)
	c.Asked("s19", DocMarked)
	led := map[string]bool{}
	for n := range uint32(50) {
		to := Linked(w.MarkOf("s19", EventID(3, n+1)))
		if led[to] = true; !c.wanted(to, DocView) {
			t.Errorf("a link leads to the view of %q, which is not wanted", to)
		}
	}
	if len(led) != 3 || led["s19"] || c.wanted("s23", DocView) {
		t.Errorf("the links lead to %v", led)
	}
	if to := Linked(w.MarkOf("s20", EventID(3, 1))); to != "" {
		t.Errorf("a mark of the program in Starlark leads to %q", to)
	}
	if to := Linked((Workload{Spaces: 2}).MarkOf("s01", EventID(3, 1))); to != "s00" {
		t.Errorf("one of two spaces links to %q", to)
	}
}

func TestTheWorkloadFollowsFromItsSeed(t *testing.T) {
	w := Workload{Seed: 9, Spaces: 24, Clients: 16}
	counts := map[string]int{}
	for n := range uint32(10_000) {
		counts[w.Stream(3, 7, n)]++
	}
	for _, s := range shares {
		if n := counts[s.stream]; n < int(s.of)*7 || n > int(s.of)*13 {
			t.Errorf("%d of 10,000 events are of stream %s, want about %d", n, s.stream, 10*s.of)
		}
	}
	for _, sent := range w.Sends("s07", Fan, "k003-9", 0) {
		if _, ok := w.SpaceNumber(sent.To); !ok || sent.To == "s07" {
			t.Errorf("a leaf goes to %s", sent.To)
		}
	}
	for _, id := range []string{"", "k1-2", "k001-", "k001-02", "x001-2", "k001-2-3", "s00:1:2:0"} {
		if _, _, ok := ParseEventID(id); ok {
			t.Errorf("%q passes for a client's id", id)
		}
	}
	if client, n, ok := ParseEventID(EventID(12, 345)); !ok || client != 12 || n != 345 {
		t.Errorf("%d %d %v", client, n, ok)
	}
}
