package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/replica"
)

// Any number of ledgers share one space: owners that depose each other, and attached ones. They crash, their
// appends are refused, their answers come late. What is in the log is compared with an oracle that keeps a list
// of transactions, and knows nothing else: of each event, one receipt; a document is what the handlers in the log
// come to, one after the other; what a handler has sent is handled if and only if that is in the log; what waits
// for a time is not handled before it.

const home = "home"

// town is the log and the lane, and what goes on around them.
type town struct {
	lane    []model.Event
	log     []model.LogEntry
	wall    int64
	high    int64 // the latest that wall has been: it is set back now and then
	started int
	tasks   []*runtime
	deadly  map[string]int // how often the handler of an event ends its process yet
	oracle  oracle
}

// runtime is one process that serves the space.
type runtime struct {
	town     *town
	name     string
	l        *Ledger
	now      time.Duration
	offered  uint64
	underWay *Append
	answer   func(t *rapid.T)
	dead     bool
	attached bool
}

func (w *town) start(t *rapid.T, attached bool) *runtime {
	w.started++
	rep := replica.New(home)
	for i := range w.log {
		c, err := model.DecodeCommit(w.log[i].Data)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rep.Apply(w.log[i].Seq, c); err != nil {
			t.Fatal(err)
		}
	}
	r := &runtime{town: w, name: fmt.Sprint("r", w.started), attached: attached}
	cfg := &Config{
		Runtime: r.name, PauseMin: 10 * time.Millisecond, PauseMax: 80 * time.Millisecond, Limits: Limits{
			MaxCommitBytes: FrameBytes + 2000, MaxGroup: 4, LaneLimit: 6, MaxLater: 5, EventRetries: 3, LostAttempts: 2,
			RetryMin: 10 * time.Millisecond, RetryMax: 80 * time.Millisecond, ConflictWindow: time.Second,
		},
	}
	r.l = New(cfg, Host{Attempt: r.handle}, rep)
	r.enter()
	w.tasks = append(w.tasks, r)
	return r
}

func (r *runtime) enter() {
	if r.attached {
		r.l.Attach()
	} else {
		r.l.TakeOver()
	}
}

// handle is the application: a handler for each stream.
func (r *runtime) handle(ev *model.Event) *Attempt {
	a := &Attempt{Draft: Draft{Event: ev, Trace: ev.Trace}}
	count, _ := r.l.Value("count").AsInt()
	add := func(n int64) {
		a.Writes = append(a.Writes, model.Write{Doc: "count", Value: model.Int(count + n)})
	}
	send := func(stream string, at int64, timer string) {
		a.Sends = append(a.Sends, model.Send{To: home, Stream: stream, Payload: model.Int(1), NotBefore: at, Timer: timer})
	}
	switch stream, _, _ := strings.Cut(ev.Stream, "-"); stream {
	case "add":
		add(1)
	case "send":
		add(10)
		send("add", 0, "")
		send("add", r.town.wall+40, "")
	case "timer":
		send("add", r.town.wall+30, "t")
	case "cancel":
		a.Cancels = []string{"t"}
	case "away":
		a.Sends = []model.Send{{To: "elsewhere", Stream: "x", Payload: model.Int(count)}}
	case "fail":
		return failed(a, errors.New("no"), false)
	case "flaky":
		if len(ev.ID)%2 == 0 || r.now%3 == 0 {
			return failed(a, errors.New("not now"), true)
		}
		add(100)
	case "large":
		a.Writes = []model.Write{{Doc: "large", Value: model.String(strings.Repeat("x", 3000))}}
	case "half":
		a.Writes = []model.Write{{Doc: "half", Value: model.String(strings.Repeat("x", 1500))}}
	case "deadly":
		if r.town.deadly[ev.ID] > 0 {
			r.town.deadly[ev.ID]--
			panic(ended{})
		}
		add(1000)
	}
	a.Receipt = receipts.Handled(ev, model.Int(count))
	return a
}

func failed(a *Attempt, err error, mayPass bool) *Attempt {
	a.Receipt, a.Err, a.MayPass = receipts.Failed(a.Event, err), err, mayPass
	return a
}

// ended is what a handler panics with that ends its process.
type ended struct{}

// step is one round of a runtime: what the loop of a worker does.
func (r *runtime) step(t *rapid.T) {
	defer func() {
		if e := recover(); e != nil {
			if e != (ended{}) {
				panic(e)
			}
			r.crash()
		}
	}()
	if r.answer != nil && rapid.IntRange(0, 2).Draw(t, "answered") > 0 {
		answer := r.answer
		r.answer = nil
		answer(t)
	}
	r.now += time.Duration(rapid.IntRange(0, 20).Draw(t, "ms")) * time.Millisecond
	r.settle(t)
}

// settle makes one pass, and sends what is to be appended.
func (r *runtime) settle(t *rapid.T) {
	r.l.Clock(time.UnixMilli(r.town.wall))
	r.l.Tick(r.now)
	r.deliver()
	if r.l.Begins() {
		r.l.BeginPass()
		r.l.TakeTurn()
		for more := true; more && !r.l.Full(); {
			more = r.l.Next() == Handled
		}
	}
	a := r.l.Append()
	if a == nil {
		return
	}
	if r.underWay != nil {
		t.Fatalf("%s appends while an append is under way", r.name)
	}
	r.underWay = a
	seq := r.town.append(t, r.name, a)
	r.answer = func(t *rapid.T) { r.answered(t, seq) }
}

// deliver offers what is in the lane and was not offered yet, or left in the stream for want of room.
func (r *runtime) deliver() {
	from := max(r.offered, r.l.Lane().ReadAfter())
	if after, ok := r.l.Lane().Refill(); ok {
		from = after
	}
	for i := range r.town.lane {
		if ev := r.town.lane[i]; ev.Lane > from {
			r.offered = max(r.offered, ev.Lane)
			if !r.l.Lane().Offer(ev) {
				return
			}
		}
	}
}

func (r *runtime) answered(t *rapid.T, seq uint64) {
	r.underWay = nil
	if seq != 0 {
		if _, err := r.l.Confirm(seq); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, n := range r.l.Refuse().Direct {
		r.town.oracle.undone[model.TxID{Space: home, Epoch: r.l.Epoch(), N: n}] = true
	}
	r.catchUp(t)
	r.l.Resume()
	if !r.l.Entered() && r.l.Phase() != Deposed {
		r.enter()
	}
}

// transact makes a transaction of the application: it adds to the count, or takes an event back.
func (r *runtime) transact(t *rapid.T) {
	if !r.l.Begins() {
		return
	}
	count, _ := r.l.Value("count").AsInt()
	d := Draft{By: "app", Writes: []model.Write{{Doc: "count", Value: model.Int(count + 10000)}}}
	if rapid.Bool().Draw(t, "takes back") {
		d.Writes = r.marks(t)
	}
	n, err := r.l.Record(&d)
	if err != nil {
		return
	}
	r.l.Direct(n)
	r.l.apply(d.Writes)
}

// marks is the write by which an event is taken back: one of the lane, or one that waits for its time.
func (r *runtime) marks(t *rapid.T) []model.Write {
	var stream, id string
	var slot int64
	if len(r.town.lane) > 0 {
		ev := rapid.SampledFrom(r.town.lane).Draw(t, "of the lane")
		stream, id = ev.Stream, ev.ID
	}
	r.l.Replica().Later.Each(func(w *model.Waiting) {
		if rapid.Bool().Draw(t, "one that waits") {
			stream, id, slot = w.Stream, w.ID, int64(w.Slot)
		}
	})
	if _, done := r.town.oracle.handled[id]; id == "" || done {
		return nil
	}
	mark := model.Object(model.F("why", "it is taken back"), model.F("slot", slot))
	return []model.Write{{Doc: CancelDoc, Path: model.Path{CancelKey(stream, id)}, Value: mark}}
}

func (r *runtime) catchUp(t *rapid.T) {
	if err := r.l.Integrate(r.town.log...); err != nil {
		t.Fatal(err)
	}
	if r.l.Phase() == Deposed {
		r.crash()
	}
}

func (r *runtime) crash() { r.dead = true }

// append is the log: a compare-and-set on the head.
func (w *town) append(t *rapid.T, by string, a *Append) uint64 {
	head := w.head()
	if a.Expect != head {
		return 0
	}
	seq := head + uint64(1+len(w.log)%3) // other spaces of the partition have sequences too
	w.log = append(w.log, model.LogEntry{Space: home, Seq: seq, Data: a.Data, Prev: head})
	c, err := model.DecodeCommit(a.Data)
	if err != nil {
		t.Fatal(err)
	}
	w.oracle.commit(t, w, seq, c)
	return seq
}

func (w *town) head() uint64 {
	if len(w.log) == 0 {
		return 0
	}
	return w.log[len(w.log)-1].Seq
}

func (w *town) publish(stream string, notBefore int64) {
	n := len(w.lane) + 1
	w.lane = append(w.lane, model.Event{Space: home, Stream: stream, ID: fmt.Sprint("e", n), Lane: uint64(2 * n), Payload: model.Int(int64(n)), NotBefore: notBefore})
}

// oracle keeps the transactions of the log.
type oracle struct {
	epoch   uint64
	joined  map[uint64]bool
	handled map[string]model.Outcome
	// count is what the documents come to.
	count int64
	// sent are the events that transactions in the log have sent to the own space, with the time before
	// which they are not to be handled, and cancelled those that were taken back.
	sent      map[string]int64
	cancelled map[string]bool
	away      uint64
	// marked are the events that are taken back by a mark in the log, undone the transactions of
	// applications that are known to be.
	marked   map[string]bool
	undone   map[model.TxID]bool
	attempts map[string]int
}

func (o *oracle) commit(t *rapid.T, w *town, seq uint64, c *model.Commit) {
	switch {
	case c.Takeover:
		o.epoch = seq
		return
	case c.Join:
		o.joined[seq] = true
		return
	case c.Epoch != o.epoch && !o.joined[c.Epoch]:
		t.Fatalf("a commit at %d of epoch %d; the owner's is %d", seq, c.Epoch, o.epoch)
	}
	if c.Trying != nil && !c.Trying.Back {
		o.attempts[c.Trying.Event] = max(o.attempts[c.Trying.Event], c.Trying.Tries)
	}
	for i := range c.Txs {
		if id := (model.TxID{Space: home, Epoch: c.Epoch, N: c.Txs[i].N}); o.undone[id] {
			t.Fatalf("%v is in the log, and was said to be undone", id)
		}
		o.take(t, w, &c.Txs[i])
	}
	for _, ev := range w.lane {
		if _, done := o.handled[ev.ID]; !done && ev.Lane <= c.Cursor.Floor && !slices.Contains(c.Cursor.Held, ev.Lane) && o.sent[ev.ID] == 0 {
			t.Fatalf("the cursor %+v has passed over %s", c.Cursor, ev.ID)
		}
	}
}

func (o *oracle) take(t *rapid.T, w *town, tx *model.Tx) {
	for _, m := range tx.Sends {
		if m.To != home {
			if o.away++; m.Position != o.away {
				t.Fatalf("%s has position %d, want %d", m.ID, m.Position, o.away)
			}
			continue
		}
		o.sent[m.ID] = max(1, m.NotBefore)
	}
	for _, c := range tx.Cancels {
		if _, done := o.handled[c.ID]; done || o.sent[c.ID] == 0 {
			t.Fatalf("%s is cancelled, which does not wait", c.ID)
		}
		o.cancelled[c.ID] = true
	}
	if l := tx.Later; l != nil {
		if o.sent[l.ID] != 0 || l.NotBefore <= w.wall-1000 {
			t.Fatalf("%s begins to wait", l.ID)
		}
		o.sent[l.ID] = l.NotBefore
	}
	for _, m := range tx.Writes {
		if m.Doc == CancelDoc {
			o.marked[m.Path[0]] = !m.Delete
		}
	}
	rc := tx.Receipt
	if rc == nil {
		if tx.By == "app" && len(tx.Writes) > 0 && tx.Writes[0].Doc == "count" {
			o.count += 10000
			if n, _ := tx.Writes[0].Value.AsInt(); n != o.count {
				t.Fatalf("the application leaves count at %d, want %d", n, o.count)
			}
		}
		return
	}
	stream, _ := receipts.Stream(tx.By)
	if o.marked[CancelKey(stream, rc.Event)] {
		t.Fatalf("%s is %s, and leaves the mark of its being taken back", rc.Event, rc.Outcome)
	}
	if was, again := o.handled[rc.Event]; again {
		t.Fatalf("%s is %s, and was %s", rc.Event, rc.Outcome, was)
	}
	external := slices.ContainsFunc(w.lane, func(ev model.Event) bool { return ev.ID == rc.Event })
	at, sent := o.sent[rc.Event]
	switch {
	case !external && !sent:
		t.Fatalf("%s is handled, and no transaction has sent it", rc.Event)
	case o.cancelled[rc.Event]:
		t.Fatalf("%s is handled, and was cancelled", rc.Event)
	case at > w.high && rc.Outcome != model.Cancelled:
		t.Fatalf("%s is handled at %d, before %d", rc.Event, w.high, at)
	}
	o.handled[rc.Event] = rc.Outcome
	o.effect(t, tx)
}

// effect compares what a handling has written with what a handler would over the documents in the log.
func (o *oracle) effect(t *rapid.T, tx *model.Tx) {
	adds := map[string]int64{"add": 1, "send": 10, "flaky": 100, "deadly": 1000}
	stream, _ := receipts.Stream(tx.By)
	if tx.Receipt.Outcome == model.Handled {
		if seen, _ := tx.Receipt.Result.AsInt(); seen != o.count {
			t.Fatalf("%s has seen %d, and the log says %d", tx.Receipt.Event, seen, o.count)
		}
		o.count += adds[stream]
	} else if rc := tx.Receipt; len(tx.Writes)+len(tx.Sends) > 0 && rc.Outcome != model.Cancelled {
		t.Fatalf("%s is %s, and has written or sent", tx.Receipt.Event, tx.Receipt.Outcome)
	}
	for _, w := range tx.Writes {
		if n, _ := w.Value.AsInt(); w.Doc == "count" && n != o.count {
			t.Fatalf("%s leaves count at %d, want %d", tx.Receipt.Event, n, o.count)
		}
	}
}

func newTown() *town {
	return &town{wall: 1_000_000, high: 1_000_000, deadly: map[string]int{}, oracle: oracle{
		joined: map[uint64]bool{}, handled: map[string]model.Outcome{}, sent: map[string]int64{}, cancelled: map[string]bool{}, marked: map[string]bool{}, undone: map[model.TxID]bool{}, attempts: map[string]int{},
	}}
}

func (w *town) alive() (list []*runtime) {
	for _, r := range w.tasks {
		if !r.dead {
			list = append(list, r)
		}
	}
	return list
}

var streams = []string{"add", "add", "add", "send", "timer", "cancel", "away", "fail", "flaky", "large", "half", "deadly", "late"}

func (w *town) act(t *rapid.T) {
	switch n := rapid.IntRange(0, 19).Draw(t, "act"); {
	case n < 6:
		stream, at := rapid.SampledFrom(streams).Draw(t, "stream"), int64(0)
		if stream == "late" {
			stream, at = "add", w.wall+int64(rapid.IntRange(-20, 60).Draw(t, "in"))
		}
		w.publish(stream, at)
		if stream == "deadly" {
			w.deadly[w.lane[len(w.lane)-1].ID] = rapid.IntRange(0, 4).Draw(t, "deaths")
		}
	case n == 6:
		w.wall += int64(rapid.IntRange(-20, 50).Draw(t, "wall"))
		w.high = max(w.high, w.wall)
	case n == 7 && len(w.alive()) < 4:
		w.start(t, rapid.Bool().Draw(t, "attached"))
	case n == 8 && len(w.alive()) > 0:
		rapid.SampledFrom(w.alive()).Draw(t, "crashes").crash()
	case n == 9 && len(w.alive()) > 0:
		if r := rapid.SampledFrom(w.alive()).Draw(t, "hears"); r.l.Settled() {
			r.catchUp(t)
		}
	case n == 10 && len(w.alive()) > 0:
		rapid.SampledFrom(w.alive()).Draw(t, "transacts").transact(t)
	case len(w.alive()) > 0:
		rapid.SampledFrom(w.alive()).Draw(t, "steps").step(t)
	default:
		w.start(t, false)
	}
}

// finish has one owner come to the end of everything.
func (w *town) finish(t *rapid.T) {
	for _, r := range w.tasks {
		r.crash()
	}
	w.wall += 1000
	w.high = max(w.high, w.wall)
	r := w.start(t, false)
	for rounds := 0; ; rounds++ {
		if rounds > 2000 {
			t.Fatalf("it does not come to an end: %s, head %+v, poison %+v", r.l.Phase(), r.l.head, r.l.poison)
		}
		if r.dead {
			r = w.start(t, false)
		}
		r.now += 20 * time.Millisecond
		w.wall++
		w.high = max(w.high, w.wall)
		func() {
			defer func() {
				if e := recover(); e != nil {
					if e != (ended{}) {
						panic(e)
					}
					r.crash()
				}
			}()
			if answer := r.answer; answer != nil {
				r.answer = nil
				answer(t)
			}
			r.settle(t)
		}()
		if !r.dead && r.l.Settled() && r.l.Lane().Done() && r.l.Replica().Later.Len() == 0 && r.l.Entered() {
			break
		}
	}
	for _, ev := range w.lane {
		if _, done := w.oracle.handled[ev.ID]; !done {
			t.Fatalf("%s on %s has no receipt", ev.ID, ev.Stream)
		}
	}
	for id := range w.oracle.sent { // any order: the first that is wrong ends it
		if _, done := w.oracle.handled[id]; done == w.oracle.cancelled[id] {
			t.Fatalf("%s: handled is %v, cancelled %v", id, done, w.oracle.cancelled[id])
		}
	}
	if n, _ := r.l.Value("count").AsInt(); n != w.oracle.count {
		t.Fatalf("count is %d, want %d", n, w.oracle.count)
	}
}

func TestI10_I11_AnyNumberOfLedgersMakeOneLogThatIsAListOfTransactions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTown()
		for range rapid.IntRange(1, 80).Draw(t, "acts") {
			w.act(t)
		}
		w.finish(t)
	})
}
