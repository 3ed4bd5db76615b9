package bus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/internal/raced"
	"github.com/settlehq/settle/model"
)

// deadWorld is a deployment whose dead letters are stored directly, by the thousand.
type deadWorld struct {
	*testing.T
	ctx    context.Context
	b      *bus.Bus
	NC     *nats.Conn
	JS     jetstream.JetStream
	stored int
}

func newDeadWorld(t *testing.T, cfg bus.Config) *deadWorld {
	server := natstest.StartServer(t, embedded.Config{})
	cfg.Server = server
	ctx, cancel := contextOf(t)
	t.Cleanup(cancel)
	w := &deadWorld{T: t, ctx: ctx, b: provisioned(t, cfg)}
	var err error
	if w.NC, err = nats.Connect("", nats.InProcessServer(server)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.NC.Close)
	if w.JS, err = jetstream.New(w.NC); err != nil {
		t.Fatal(err)
	}
	return w
}

// deadLetterOf returns one of the letters of 5 streams and 7 spaces.
func deadLetterOf(i int) *model.DeadLetter {
	return &model.DeadLetter{
		Version: model.DeadVersion, Space: fmt.Sprint("s", i%7), Stream: fmt.Sprint("t", i%5), Event: fmt.Sprint("e", i),
		Outcome: model.Failed, Error: fmt.Sprint("no room in shelf ", i%3), Lane: uint64(i + 1), Commit: uint64(i + 1), Ended: time.Now(),
	}
}

// bury stores n more letters.
func (w *deadWorld) bury(n int) {
	w.Helper()
	for range n {
		w.store(deadLetterOf(w.stored))
		if w.stored++; w.stored%500 == 0 {
			w.flush()
		}
	}
	w.flush()
}

// note stores notes of a kind about the letters from one on, up to another.
func (w *deadWorld) note(kind model.Outcome, from, to int) {
	w.Helper()
	for i := from; i < to; i++ {
		d := deadLetterOf(i)
		if kind == model.Redriven {
			d.Event = model.RedriveID(d.Event)
		}
		d.Event, d.Outcome = model.NoteOf(d.Event, kind), kind
		w.store(d)
	}
	w.flush()
}

func (w *deadWorld) store(d *model.DeadLetter) {
	w.Helper()
	data, err := d.Encode()
	if err != nil {
		w.Fatal(err)
	}
	m := &nats.Msg{Subject: fmt.Sprintf("settle.dead.%s.%s.%s", d.Space, d.Stream, d.Event), Data: data, Header: nats.Header{}}
	m.Header.Set("Nats-Expected-Last-Subject-Sequence", "0")
	if _, err := w.JS.PublishMsgAsync(m); err != nil {
		w.Fatal(err)
	}
}

// flush waits until the server has answered every store request.
func (w *deadWorld) flush() {
	w.Helper()
	select {
	case <-w.JS.PublishAsyncComplete():
	case <-w.ctx.Done():
		w.Fatal(w.ctx.Err())
	}
}

func (w *deadWorld) keep() {
	w.Helper()
	if err := w.b.KeepDeadTotals(w.ctx); err != nil {
		w.Fatal(err)
	}
}

// totals returns the stored totals, nil if there are none.
func (w *deadWorld) totals() *model.DeadTotals {
	w.Helper()
	r, err := w.b.LoadRecord(w.ctx, "dead.totals")
	if err != nil || r.Data == nil {
		return nil
	}
	var t model.DeadTotals
	if err := json.Unmarshal(r.Data, &t); err != nil {
		w.Fatal(err)
	}
	return &t
}

// put stores totals.
func (w *deadWorld) put(t *model.DeadTotals) {
	w.Helper()
	data, err := json.Marshal(t)
	if err != nil {
		w.Fatal(err)
	}
	r, err := w.b.LoadRecord(w.ctx, "dead.totals")
	if err == nil {
		_, err = w.b.SaveRecord(w.ctx, model.Record{Key: "dead.totals", Data: data, Rev: r.Rev})
	}
	if err != nil {
		w.Fatal(err)
	}
}

// compare compares all counts (of everything, of each stream and space, and of both) with a listing of all
// names.
func (w *deadWorld) compare(when string) {
	w.Helper()
	names, err := w.b.ListDead(w.ctx, "")
	if err != nil {
		w.Fatal(err)
	}
	index := model.NewDeadIndex(names)
	for _, space := range []string{"", "s0", "s6", "other"} {
		for _, stream := range []string{"", "t0", "t4", "other"} {
			got, err := w.b.CountDead(w.ctx, space, stream)
			want := index.Count(func(n model.DeadName) bool {
				return (space == "" || n.Space == space) && (stream == "" || n.Stream == stream)
			})
			if err != nil || got != want {
				w.Errorf("%s, of space %q and stream %q: %+v, %v; there are %+v", when, space, stream, got, err, want)
			}
		}
	}
}

// traffic returns how many messages and bytes the connection sends and receives while do runs.
func (w *deadWorld) traffic(do func()) (messages, bytes uint64) {
	before := w.b.Traffic()
	do()
	after := w.b.Traffic()
	return after.InMsgs + after.OutMsgs - before.InMsgs - before.OutMsgs, after.InBytes + after.OutBytes - before.InBytes - before.OutBytes
}

// The count is right for letters that were stored before and after the totals.
func TestCountDead_CountsPresentLetters(t *testing.T) {
	t.Parallel()
	w := newDeadWorld(t, bus.Config{Partitions: 1})
	w.compare("before any letter")
	w.keep()
	w.compare("without totals")
	random := rand.New(rand.NewPCG(12, 7))
	redriven, dismissed := 0, 0
	for round := range raced.Fewer(12, 3) {
		w.bury(100 + random.IntN(400))
		if random.IntN(2) == 0 {
			upTo := redriven + random.IntN(w.stored-redriven)
			w.note(model.Redriven, redriven, upTo)
			redriven = upTo
		}
		if random.IntN(2) == 0 {
			upTo := dismissed + random.IntN(w.stored-dismissed)
			w.note(model.Dismissed, dismissed, upTo)
			dismissed = upTo
		}
		if random.IntN(2) == 0 {
			w.keep()
		}
		w.compare(fmt.Sprint("in round ", round))
	}
	w.keep()
	if k := w.totals(); k == nil || k.All.Letters == 0 || k.All.Redriven == 0 || k.All.Dismissed == 0 {
		t.Errorf("the totals are %+v", k)
	}
}

// A count of 1,000 letters and one of 20,000 take as many messages, and about as many bytes.
func TestCountDead_CostsTheSameForAnyNumber(t *testing.T) {
	t.Parallel()
	w := newDeadWorld(t, bus.Config{Partitions: 1})
	cost := func(space, stream string) (messages, bytes uint64) {
		return w.traffic(func() {
			if _, err := w.b.CountDead(w.ctx, space, stream); err != nil {
				t.Fatal(err)
			}
		})
	}
	w.bury(1000)
	w.keep()
	few, fewBytes := cost("", "")
	w.bury(19000)
	w.note(model.Redriven, 0, 500)
	w.keep()
	for _, of := range [][2]string{{"", ""}, {"", "t3"}, {"s2", ""}} {
		n, size := cost(of[0], of[1])
		if n != few || n > 8 {
			t.Errorf("to count 20,000 letters of %q takes %d messages, and 1,000 take %d", of, n, few)
		}
		if size > fewBytes+200 || size > 8<<10 {
			t.Errorf("to count 20,000 letters of %q takes %d bytes, and 1,000 take %d", of, size, fewBytes)
		}
	}
	w.compare("in the end")
	// A few hundred letters that are not in the totals are read.
	w.bury(200)
	if n, _ := cost("", ""); n > few+210 {
		t.Errorf("to count 200 more takes %d messages", n)
	}
	w.compare("with some that are not in the totals")
	n, _ := w.traffic(w.keep)
	if n > 8 || w.totals().All.Letters != 20000 {
		t.Errorf("totals that lack little are stored again, by %d messages: %+v", n, w.totals())
	}
}

// If there are too many letters for a reader to count, they are listed, in one answer for all.
func TestCountDead_ListsUncountedLetters(t *testing.T) {
	t.Parallel()
	w := newDeadWorld(t, bus.Config{Partitions: 1})
	w.bury(5000)
	n, _ := w.traffic(func() { w.compare("without totals") })
	if n > 200 {
		t.Errorf("it takes %d messages", n)
	}
}

// Totals of another store, or with a wrong number of messages, are discarded and counted again, but not all
// the time.
func TestCountDead_WrongTotalsAreCountedAgain(t *testing.T) {
	t.Parallel()
	w := newDeadWorld(t, bus.Config{Partitions: 1})
	w.bury(600)
	w.keep()
	good := w.totals()
	stream, err := w.JS.Stream(w.ctx, "SETTLE_DEAD")
	if err != nil {
		t.Fatal(err)
	}
	wrong := func(change func(*model.DeadTotals)) *model.DeadTotals {
		x := good.Clone()
		x.All.Letters, x.All.Open = 77, 77
		change(x)
		return x
	}
	for name, kept := range map[string]*model.DeadTotals{
		"another message has the sequence": wrong(func(x *model.DeadTotals) { x.Stored = x.Stored.Add(1) }),
		"the store was longer":             wrong(func(x *model.DeadTotals) { x.Seq += 10 }),
		"the store had more":               wrong(func(x *model.DeadTotals) { x.Messages += 10 }),
		"as many were removed as were added": wrong(func(x *model.DeadTotals) {
			x.Seq -= 10
			m, err := stream.GetMsg(w.ctx, x.Seq)
			if err != nil {
				t.Fatal(err)
			}
			x.Stored = m.Time
		}),
		"the store had fewer": wrong(func(x *model.DeadTotals) { x.Messages -= 10 }),
	} {
		w.put(kept)
		w.compare(name)
		if _ = w.b.KeepDeadTotals(w.ctx); w.totals().All.Letters != 77 {
			t.Errorf("%s: the letters were counted again at once", name)
		}
		w.put(wrong(func(x *model.DeadTotals) {
			*x = *kept
			x.Begun = x.Begun.Add(-time.Hour)
		}))
		w.keep()
		if got := w.totals(); got.All != good.All || !got.Begun.After(good.Begun) {
			t.Errorf("%s: they are %+v, and should be %+v", name, got.All, good.All)
		}
		w.compare(name + ", then")
	}
}

// When letters expire, the remaining ones are counted.
func TestCountDead_OfLettersThatExpireNoTotalsAreKept(t *testing.T) {
	t.Parallel()
	w := newDeadWorld(t, bus.Config{Partitions: 1, DeadLetterMaxAge: time.Hour})
	w.bury(600)
	w.keep()
	if k := w.totals(); k != nil {
		t.Errorf("there are %+v", k)
	}
	w.compare("without totals")
}

// To read the letters of all spaces, the server is asked for the next message rather than for a pattern: for
// each page of a pattern, it scans the subjects of all letters.
func TestReadDead_OfAllSpacesUsesNoPattern(t *testing.T) {
	t.Parallel()
	w := newDeadWorld(t, bus.Config{Partitions: 1})
	w.bury(1200)
	asked, err := w.NC.SubscribeSync("$JS.API.DIRECT.GET.SETTLE_DEAD")
	if err == nil {
		err = w.NC.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	letters, err := w.b.ReadDead(w.ctx, "", 0, 2000)
	if err != nil || len(letters) != 1200 {
		t.Fatalf("%d letters are read, %v", len(letters), err)
	}
	for range 3 {
		m, err := asked.NextMsgWithContext(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		var q map[string]any
		if err := json.Unmarshal(m.Data, &q); err != nil || q["next_by_subj"] != nil || q["batch"] == nil {
			t.Errorf("the request is %s", m.Data)
		}
	}
}
