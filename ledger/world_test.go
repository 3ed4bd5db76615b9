package ledger

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/replica"
)

const home = "home"

// failer is any kind of test.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// world is the log and the lane of one space, and the processes that serve it. Each commit is compared with
// an oracle that only keeps a list of transactions.
type world struct {
	limits   Limits
	lane     []model.Event
	log      []model.LogEntry
	wall     int64
	high     int64 // the highest value of wall so far, which is sometimes set back
	started  int
	runtimes []*runtime
	deadly   map[string]int      // how many more times the handler of an event ends its process
	flaky    map[string]int      // how many more times the handler of an event fails
	present  bool                // whether the document exists that some handlers wait for
	formulas map[string]*formula // random handlers, by stream
	oracle   oracle
}

func newWorld() *world {
	return &world{
		limits: Limits{
			MaxCommitBytes: FrameBytes + 2000, MaxGroup: 4, LaneLimit: 6, MaxLater: 5, EventRetries: 3, LostAttempts: 2,
			RetryMin: 10 * time.Millisecond, RetryMax: 80 * time.Millisecond, ConflictWindow: time.Second,
		},
		wall: 1_000_000, high: 1_000_000, deadly: map[string]int{}, flaky: map[string]int{}, oracle: newOracle(),
	}
}

// runtime is one process that serves the space.
type runtime struct {
	world    *world
	name     string
	l        *Ledger
	now      time.Duration
	offered  uint64
	inFlight *Append
	answer   func(t failer)
	dead     bool
	attached bool
	noEvents bool // it leaves the events to others
	// lacks is set while the head is known to need the document of the world.
	lacks bool
	trace []string
}

// patience is how long an event waits for the document of the world.
const patience = 200 * time.Millisecond

// start starts a process, which loads the space from the log.
func (w *world) start(t failer, attached bool) *runtime {
	w.started++
	r := &runtime{world: w, name: fmt.Sprint("r", w.started), attached: attached}
	r.load(t)
	r.enter()
	w.runtimes = append(w.runtimes, r)
	return r
}

func (r *runtime) load(t failer) {
	rep := replica.New(home)
	for i := range r.world.log {
		c, err := model.DecodeCommit(r.world.log[i].Data)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rep.Apply(r.world.log[i].Seq, c); err != nil {
			t.Fatal(err)
		}
	}
	var since time.Duration
	r.l = New(&Config{Runtime: r.name, WithoutEvents: r.noEvents, PauseMin: 10 * time.Millisecond, PauseMax: 80 * time.Millisecond, Limits: r.world.limits}, Host{
		Attempt: r.handle,
		Recorded: func(a *Attempt, tx uint64) {
			r.tell("%s is %s in transaction %d", a.Event.ID, ending(a.Receipt), tx)
			r.l.apply(a, tx)
		},
		Postponed: func(a *Attempt, why Postponement, until time.Duration) {
			switch why {
			case Parked:
				r.tell("%s waits for a document", a.Event.ID)
				if !r.lacks {
					r.lacks, since = true, r.now
				}
			case PutOff:
				r.tell("%s is tried again in %v", a.Event.ID, until-r.now)
			case NoRoom:
				r.tell("%s has no room", a.Event.ID)
			}
		},
		Failed: func(a *Attempt, tries int, again bool) {
			r.tell("attempt %d at %s fails: %v; again: %v", tries, a.Event.ID, a.Err, again)
		},
		Unconverged: func(ev *model.Event, n int) { r.tell("%s has met %d conflicts", ev.ID, n) },
		Later:       func(w *model.Waiting, tx uint64) { r.tell("%s waits in slot %d, in transaction %d", w.ID, w.Slot, tx) },
		Lacks:       func() bool { return r.lacks && !r.world.present },
		Overdue: func() error {
			if r.lacks && !r.world.present && r.now-since >= patience {
				return errors.New("the document does not come")
			}
			return nil
		},
		Release: func() { r.lacks = false },
	}, rep)
}

func ending(rc *model.Receipt) string {
	if rc.Error != "" {
		return fmt.Sprintf("%s (%s)", rc.Outcome, rc.Error)
	}
	return string(rc.Outcome)
}

func (r *runtime) tell(format string, args ...any) {
	r.trace = append(r.trace, fmt.Sprintf(format, args...))
}

func (r *runtime) enter() {
	if r.attached {
		r.l.Attach()
	} else {
		r.l.TakeOver()
	}
}

// handle is the application, with a handler for each stream (see testdata/README.md).
func (r *runtime) handle(ev *model.Event) *Attempt {
	a := &Attempt{Draft: Draft{Event: ev, Trace: ev.Trace}}
	if ev.Invalid != "" {
		a.Receipt = receipts.Refused(ev, ev.Invalid)
		return a
	}
	count, _ := r.l.Value("count").AsInt()
	add := func(n int64) {
		a.Writes = append(a.Writes, model.Write{Doc: "count", Value: model.Int(count + n)})
	}
	var refused error
	send := func(stream string, at int64, timer string) {
		s := model.Send{To: home, Stream: stream, Payload: model.Int(1), NotBefore: at, Timer: timer}
		if at != 0 && refused == nil {
			refused = r.l.CheckWait(&a.Draft, &s, false)
		}
		a.Sends = append(a.Sends, s)
	}
	result := model.Int(count)
	stream, _, _ := strings.Cut(ev.Stream, "-")
	switch f := r.world.formulas[stream]; {
	case f != nil:
		if f.waits && !r.world.present {
			a.Waits = true
			return a
		}
		if f.fails || f.flaky && r.now%3 != 0 {
			return failed(a, errors.New("no"), f.flaky)
		}
		result = f.apply(&a.Draft, r.l.Value, r.world.wall, send)
	case stream == "add":
		add(1)
	case stream == "send":
		add(10)
		send("add", 0, "")
		send("add", r.world.wall+40, "")
	case stream == "timer":
		send("add", r.world.wall+30, "t")
	case stream == "cancel":
		a.Cancels = []string{"t"}
	case stream == "away":
		a.Sends = []model.Send{{To: "elsewhere", Stream: "x", Payload: model.Int(count)}}
	case stream == "bulk":
		a.Writes = []model.Write{{Doc: "half", Value: model.String(strings.Repeat("x", 1500))}}
		a.Sends = []model.Send{{To: "elsewhere", Stream: "x", Payload: model.Int(count)}}
	case stream == "fail":
		return failed(a, errors.New("no"), false)
	case stream == "flaky":
		n, counted := r.world.flaky[ev.ID]
		if r.world.flaky[ev.ID]--; n > 0 || !counted && (len(ev.ID)%2 == 0 || r.now%3 == 0) {
			return failed(a, errors.New("not now"), true)
		}
		add(100)
	case stream == "large":
		a.Writes = []model.Write{{Doc: "large", Value: model.String(strings.Repeat("x", 3000))}}
	case stream == "half":
		a.Writes = []model.Write{{Doc: "half", Value: model.String(strings.Repeat("x", 1500))}}
	case stream == "wait":
		if !r.world.present {
			a.Waits = true
			return a
		}
		add(10_000)
	case stream == "deadly":
		if r.world.deadly[ev.ID] > 0 {
			r.world.deadly[ev.ID]--
			r.tell("the handler of %s ends its process", ev.ID)
			panic(ended{})
		}
		add(1000)
	}
	if refused != nil {
		return failed(a, refused, false)
	}
	a.Receipt = receipts.Handled(ev, result)
	return a
}

func failed(a *Attempt, err error, mayPass bool) *Attempt {
	a.Writes, a.Sends, a.Cancels = nil, nil, nil
	a.Receipt, a.Err, a.MayPass = receipts.Failed(a.Event, err), err, mayPass
	return a
}

// ended is the panic value of a handler that ends its process.
type ended struct{}

// dies calls f, and reports whether a handler has ended the process.
func (r *runtime) dies(f func()) (died bool) {
	defer func() {
		if e := recover(); e != nil {
			if e != (ended{}) {
				panic(e)
			}
			r.dead, died = true, true
		}
	}()
	f()
	return false
}

// settle makes one pass, and sends the resulting append.
func (r *runtime) settle(t failer) {
	if r.pass(t) != nil {
		r.store(t)
	}
}

// pass does what the loop of a worker does: it handles the events that it can, and returns what is to be
// appended.
func (r *runtime) pass(t failer) *Append {
	r.l.Clock(time.UnixMilli(r.world.wall))
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
		return nil
	}
	if r.inFlight != nil {
		t.Fatalf("%s appends while an append is in flight", r.name)
	}
	r.inFlight = a
	return a
}

// store makes the log answer the append in flight. The answer is then on its way.
func (r *runtime) store(t failer) (seq uint64) {
	seq = r.world.append(t, r.inFlight)
	r.answer = func(t failer) { r.answered(t, seq) }
	return seq
}

// deliver offers the events in the lane that were not offered yet, or left in the stream for lack of room.
func (r *runtime) deliver() {
	from := max(r.offered, r.l.Lane().ReadAfter())
	if after, ok := r.l.Lane().Refill(); ok {
		from = after
	}
	for i := range r.world.lane {
		if ev := r.world.lane[i]; ev.Lane > from {
			r.offered = max(r.offered, ev.Lane)
			if !r.l.Lane().Offer(ev) {
				return
			}
		}
	}
}

func (r *runtime) answered(t failer, seq uint64) {
	r.inFlight, r.answer = nil, nil
	if seq != 0 {
		entered, err := r.l.Confirm(seq)
		if err != nil {
			t.Fatal(err)
		}
		if r.tell("confirmed"); entered {
			r.tell("it has entered")
		}
		return
	}
	epoch := r.l.Epoch()
	r.tell("refused")
	for _, n := range r.l.Refuse().Direct {
		r.tell("transaction %d of the application is undone", n)
		r.world.oracle.undone[model.TxID{Space: home, Epoch: epoch, N: n}] = true
	}
	r.catchUp(t)
	for _, u := range r.l.Resume() {
		r.tell("the handling of %s is undone: %s", u.Event.ID, [...]string{Conflict: "conflict", Receipt: "it has a receipt", Origin: "its origin is undone"}[u.Cause])
	}
}

func (r *runtime) catchUp(t failer) {
	if err := r.l.Integrate(r.world.log...); err != nil {
		t.Fatal(err)
	}
}

// append is the log: a compare-and-set on the head.
func (w *world) append(t failer, a *Append) uint64 {
	head := w.head()
	if a.Expect != head {
		return 0
	}
	seq := head + uint64(1+len(w.log)%3) // other spaces of the partition have sequences, too
	w.log = append(w.log, model.LogEntry{Space: home, Seq: seq, Data: a.Data, Prev: head})
	c, err := model.DecodeCommit(a.Data)
	if err != nil {
		t.Fatal(err)
	}
	w.oracle.commit(t, w, seq, c)
	return seq
}

func (w *world) head() uint64 {
	if len(w.log) == 0 {
		return 0
	}
	return w.log[len(w.log)-1].Seq
}

func (w *world) publish(stream string, notBefore int64) {
	n := len(w.lane) + 1
	w.lane = append(w.lane, model.Event{Space: home, Stream: stream, ID: fmt.Sprint("e", n), Lane: uint64(2 * n), Payload: model.Int(int64(n)), NotBefore: notBefore})
}

// oracle keeps the transactions of the log.
type oracle struct {
	epoch   uint64
	joined  map[uint64]bool
	handled map[string]model.Outcome
	// count and docs are the values of the documents.
	count int64
	docs  map[string]model.Value
	// sent are the events that transactions in the log have sent to their own space, each with the time
	// before which it must not be handled; cancelled are those that a transaction has cancelled; waiting are
	// those that wait for a time; timers has the last event under each name.
	sent      map[string]int64
	cancelled map[string]bool
	waiting   map[string]bool
	timers    map[string]string
	away      uint64
	// marked are the events with a cancellation mark in the log, undone the transactions of applications that
	// are known to be undone.
	marked map[string]bool
	undone map[model.TxID]bool
}

func newOracle() oracle {
	return oracle{
		joined: map[uint64]bool{}, handled: map[string]model.Outcome{}, docs: map[string]model.Value{}, sent: map[string]int64{},
		cancelled: map[string]bool{}, waiting: map[string]bool{}, timers: map[string]string{}, marked: map[string]bool{}, undone: map[model.TxID]bool{},
	}
}

func (o *oracle) commit(t failer, w *world, seq uint64, c *model.Commit) {
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
	if c.Trying != nil && (c.Trying.Tries > w.limits.LostAttempts || c.Trying.Tries < 1 && !c.Trying.Back) {
		t.Fatalf("the log has a record of %d attempts at %s", c.Trying.Tries, c.Trying.Event)
	}
	for i := range c.Txs {
		if id := (model.TxID{Space: home, Epoch: c.Epoch, N: c.Txs[i].N}); o.undone[id] {
			t.Fatalf("%v is in the log, but was reported as undone", id)
		}
		o.take(t, w, &c.Txs[i])
	}
	for _, ev := range w.lane {
		if _, done := o.handled[ev.ID]; !done && ev.Lane <= c.Cursor.Floor && !slices.Contains(c.Cursor.Held, ev.Lane) && o.sent[ev.ID] == 0 {
			t.Fatalf("the cursor %+v has passed over %s", c.Cursor, ev.ID)
		}
	}
}

func (o *oracle) take(t failer, w *world, tx *model.Tx) {
	if rc := tx.Receipt; rc != nil {
		o.end(t, w, tx)
	} else if tx.By == "app" && len(tx.Writes) > 0 && tx.Writes[0].Doc == "count" {
		o.count += 10000
		if n, _ := tx.Writes[0].Value.AsInt(); n != o.count {
			t.Fatalf("the application leaves count at %d, want %d", n, o.count)
		}
	}
	for _, m := range tx.Writes {
		switch v, err := m.Apply(o.docs[m.Doc]); {
		case err != nil:
			t.Fatal(err)
		case m.Doc == CancelDoc:
			o.marked[m.Path[0]] = !m.Delete
		default:
			o.docs[m.Doc] = v
		}
	}
	for _, c := range tx.Cancels {
		if !o.waiting[c.ID] {
			t.Fatalf("%s is cancelled, but does not wait", c.ID)
		}
		o.gone(c.ID)
		o.cancelled[c.ID] = true
	}
	if l := tx.Later; l != nil {
		if o.sent[l.ID] != 0 || l.NotBefore <= w.wall-1000 {
			t.Fatalf("%s begins to wait", l.ID)
		}
		o.sent[l.ID] = l.NotBefore
		o.waiting[l.ID] = true
	}
	for _, m := range tx.Sends {
		if m.To != home {
			if o.away++; m.Position != o.away {
				t.Fatalf("%s has position %d, want %d", m.ID, m.Position, o.away)
			}
			continue
		}
		o.sent[m.ID] = max(1, m.NotBefore)
		if m.NotBefore > 0 {
			o.waiting[m.ID] = true
		}
		if m.Timer != "" {
			o.timers[m.Timer] = m.ID
		}
	}
	if len(o.waiting) > w.limits.MaxLater {
		t.Fatalf("%d events wait for their time, but only %d may", len(o.waiting), w.limits.MaxLater)
	}
}

// gone records that an event no longer waits for its time.
func (o *oracle) gone(event string) {
	delete(o.waiting, event)
	maps.DeleteFunc(o.timers, func(_, id string) bool { return id == event })
}

// end compares the end of an event with what is known of the event.
func (o *oracle) end(t failer, w *world, tx *model.Tx) {
	rc := tx.Receipt
	stream, _ := receipts.Stream(tx.By)
	key := CancelKey(stream, rc.Event)
	if was, again := o.handled[rc.Event]; again {
		t.Fatalf("%s is %s, and was %s", rc.Event, rc.Outcome, was)
	}
	external := slices.ContainsFunc(w.lane, func(ev model.Event) bool { return ev.ID == rc.Event })
	at, sent := o.sent[rc.Event]
	switch {
	case !external && !sent:
		t.Fatalf("%s is handled, but no transaction has sent it", rc.Event)
	case o.cancelled[rc.Event]:
		t.Fatalf("%s is handled, but was cancelled", rc.Event)
	case at > w.high && rc.Outcome != model.Cancelled:
		t.Fatalf("%s is handled at %d, before %d", rc.Event, w.high, at)
	case o.marked[key] != (rc.Outcome == model.Cancelled):
		t.Fatalf("%s is %s; the mark of its cancellation: %v", rc.Event, rc.Outcome, o.marked[key])
	case o.marked[key] && !slices.ContainsFunc(tx.Writes, func(m model.Write) bool { return m.Doc == CancelDoc && m.Delete && m.Path[0] == key }):
		t.Fatalf("%s is %s, and leaves the mark of its cancellation", rc.Event, rc.Outcome)
	}
	o.gone(rc.Event)
	o.handled[rc.Event] = rc.Outcome
	o.effect(t, w, stream, tx)
}

// effect compares the writes of a handling with those that a handler would make over the documents in the
// log.
func (o *oracle) effect(t failer, w *world, stream string, tx *model.Tx) {
	rc := tx.Receipt
	if rc.Outcome != model.Handled {
		if len(tx.Writes)+len(tx.Sends)+len(tx.Cancels) > 0 && rc.Outcome != model.Cancelled {
			t.Fatalf("%s is %s, but has written or sent", rc.Event, rc.Outcome)
		}
		return
	}
	if f := w.formulas[stream]; f != nil {
		f.check(t, tx, o.docs, o.timers)
		return
	}
	if seen, _ := rc.Result.AsInt(); seen != o.count {
		t.Fatalf("%s has seen %d, but the log says %d", rc.Event, seen, o.count)
	}
	o.count += map[string]int64{"add": 1, "send": 10, "flaky": 100, "wait": 10_000, "deadly": 1000}[stream]
	for _, m := range tx.Writes {
		if n, _ := m.Value.AsInt(); m.Doc == "count" && n != o.count {
			t.Fatalf("%s leaves count at %d, want %d", rc.Event, n, o.count)
		}
	}
}
