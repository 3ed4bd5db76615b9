package sim

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
)

// wire connects one process to the server.
type wire struct {
	w *world
	p *process

	mu sync.Mutex
	// trips are the trips of the instant at.
	trips map[membus.Op]membus.Trip
	at    time.Duration
}

// Request decides the fate of one attempt at a request. Equal requests in one instant (see
// membus.Op.Nth) share a fate.
func (n *wire) Request(op membus.Op) membus.Trip {
	n.mu.Lock()
	defer n.mu.Unlock()
	op.N = 0
	if now := n.w.story.now(); n.at != now || n.trips == nil {
		n.at = now
		clear(n.trips)
		if n.trips == nil {
			n.trips = map[membus.Op]membus.Trip{}
		}
	}
	trip, known := n.trips[op]
	if !known {
		trip = n.send(op)
		n.trips[op] = trip
	}
	return trip
}

// send decides the fate of one attempt at a request. All draws are made even if a fault is off, so that
// turning it off does not change the others.
func (n *wire) send(op membus.Op) membus.Trip {
	o := &n.w.plan.options
	c := keyed(n.w.plan.seed, "trip", n.p.name, op.Label, op.Space, op.Key, op.Nth, op.Try)
	trip := membus.Trip{There: c.about(o.wire), Back: c.about(o.wire), Patience: c.between(o.patience, o.patience*5/4)}
	healed, full, doomed := n.state(op)
	met := func(fault string) bool { return c.permille(o.wild) && !healed && o.has(fault) }
	lost, deaf, copied, late, stale := met("lost-request"), met("lost-answer"), met("copy"), met("late"), met("stale")
	tail, second, behind, slow := c.between(o.patience/2, 5*o.patience), c.between(1, 6*o.patience), 1+c.below(6), c.below(2) == 0
	switch {
	case late && slow:
		trip.Back = tail
	case late:
		trip.There = tail
	}
	if copied {
		trip.Copy = second
	}
	if stale && (op.Label != "head" || behind == 1) { // a leader answers from the past more rarely
		trip.Behind = behind
	}
	if lost || doomed || full && (op.Label == "append" || op.Label == "save" || op.Label == "save-position") {
		trip.There, trip.Copy = membus.Lost, 0
	}
	n.w.book(&trip)
	if deaf {
		trip.Back = membus.Lost
	}
	return trip
}

// book keeps two requests from arriving at the server, or at its clients, at the same instant: the
// second one is delayed by a nanosecond.
func (w *world) book(t *membus.Trip) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.story.now()
	free := func(at time.Duration) time.Duration {
		for w.booked[at] {
			at++
		}
		w.booked[at] = true
		return at
	}
	if t.There != membus.Lost {
		there := free(now + t.There)
		t.There = there - now
		t.Back = free(there+t.Back) - there
	}
	if t.Copy > 0 {
		t.Copy = free(now+t.Copy) - now
	}
}

func (n *wire) Delivery(d membus.Delivery) time.Duration {
	o := &n.w.plan.options
	c := keyed(n.w.plan.seed, "delivery", n.p.name, d.Label, d.Space, d.Key, d.Nth, d.Seq)
	takes := c.about(o.wire)
	lost, late := c.permille(o.wild), c.permille(o.wild)
	if healed, _, _ := n.state(d.Op); healed {
		return takes
	}
	if kept := d.Label != "follow-leases" && d.Label != "follow-rolls"; lost && !kept && o.has("lost-request") {
		return membus.Lost
	}
	if late && o.has("late") {
		takes = c.between(0, 3*o.patience)
	}
	if n.consumerMeets("dropped", d) {
		return membus.Lost
	}
	return takes
}

func (n *wire) Waking(op membus.Op) time.Duration {
	return keyed(n.w.plan.seed, "waking", n.p.name, op.Label, op.Space, op.Key, op.Nth, op.Try).between(1, time.Millisecond)
}

// Step adds to the story, feeds the checks, and kills the process if a crash is armed for this step.
func (n *wire) Step(s membus.Step) {
	if n.record(s) {
		n.w.count("crashes at a step")
		// A moment later, so that everything that the process does at this instant is done, in any
		// order.
		time.AfterFunc(457, func() { n.w.kill(n.p, "crashes") })
	}
}

// state reports whether all faults have ended, the store accepts nothing, or the process must crash
// before it can send this.
func (n *wire) state(op membus.Op) (healed, full, doomed bool) {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	a := n.p.armed
	return n.w.healed, n.w.storeFull, a != nil && a.label == op.Label && membus.Moment(a.moment) == membus.Leaves
}

// record records a step, and reports whether the process must crash at it.
func (n *wire) record(s membus.Step) (crash bool) {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	n.w.story.tell(n.p.name, int(s.Moment), s.Label, s.Space, s.Key, s.Nth, s.Try, s.Seq, outcome(s.Err), uint64(s.Trip.There))
	if s.Append != nil {
		n.w.commits += keyed(1, s.Space, int(s.Moment), s.Append.Expect, bytesIn(s.Append.Data)).s
	}
	n.w.requests++
	n.minutes(s)
	n.w.flying(n.p, s)
	n.w.saving(n.p, s)
	n.w.deployAt(n.p, s)
	if s.Moment == membus.Arrives {
		n.w.arrived(n.p, s)
	}
	a := n.p.armed
	if a == nil || a.label != s.Label || a.moment != int(s.Moment) || n.p.doomed {
		return false
	}
	n.p.doomed = true
	return true
}

// bytesIn adds up the bytes of a commit. Transactions that were made at one instant have no order, and
// so the sum does not depend on it.
func bytesIn(data []byte) (sum uint64) {
	for _, b := range data {
		sum += uint64(b)
	}
	return sum
}

func outcome(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, model.ErrRefused):
		return "refused"
	case errors.Is(err, model.ErrLaneFull):
		return "full"
	case errors.Is(err, model.ErrOutdated):
		return "outdated"
	case errors.Is(err, model.ErrTooLarge):
		return "too large"
	}
	return err.Error()
}

// minutes describes a step for people.
func (n *wire) minutes(s membus.Step) {
	if !n.w.story.verbose || !*allFlag && (s.Label == "announce" || s.Label == "ping" || s.Label == "observe" || s.Label == "follow-members") {
		return
	}
	what := strings.TrimSpace(s.Label + " " + s.Space + " " + s.Key)
	if s.Try > 1 {
		what += fmt.Sprintf(" (try %d)", s.Try)
	}
	switch s.Moment {
	case membus.Leaves:
		n.w.story.note(n.p.name, "-> %s%s", what, tripText(s.Trip))
	case membus.Arrives:
		n.w.story.note(n.p.name, "   %s reaches the server%s", what, arrival(s))
	case membus.Answered:
		n.w.story.note(n.p.name, "<- %s is answered", what)
	case membus.Delivered:
		n.w.story.note(n.p.name, "<- %s brings %d", what, s.Seq)
	}
}

func tripText(t membus.Trip) string {
	var b strings.Builder
	switch {
	case t.There == membus.Lost:
		b.WriteString("; it is lost")
	case t.There > t.Patience:
		fmt.Fprintf(&b, "; it takes %v", t.There.Round(time.Millisecond))
	}
	if t.Back == membus.Lost {
		b.WriteString("; its answer is lost")
	} else if t.Back > t.Patience {
		fmt.Fprintf(&b, "; its answer takes %v", t.Back.Round(time.Millisecond))
	}
	if t.Copy > 0 {
		fmt.Fprintf(&b, "; a copy takes %v", t.Copy.Round(time.Millisecond))
	}
	if t.Behind > 0 {
		fmt.Fprintf(&b, "; a replica that is %d behind answers", t.Behind)
	}
	return b.String()
}

func arrival(s membus.Step) string {
	end := fmt.Sprintf(" -> %d", s.Seq)
	if s.Err != nil {
		end = " -> " + outcome(s.Err)
	}
	switch {
	case s.Append != nil:
		id, _ := splitID(s.Append.ID)
		c, err := model.DecodeCommit(s.Append.Data)
		if err != nil {
			return ": " + id + end
		}
		return fmt.Sprintf(": %s behind %d, %s%s", id, s.Append.Expect, commitText(c), end)
	case s.Event != nil:
		return fmt.Sprintf(": %s/%s %s position %d%s", s.Event.Stream, s.Event.ID, s.Event.Payload, s.Event.Position, end)
	case s.Doc != nil:
		return fmt.Sprintf(": %q at %d%s", s.Doc.Doc, s.Doc.Seq, end)
	}
	return ""
}

// splitID removes the nonce from an append's id.
func splitID(id string) (commit, nonce string) {
	i := strings.LastIndexByte(id, '/')
	return id[:max(i, 0)], id[i+1:]
}

func commitText(c *model.Commit) string {
	if c.Takeover {
		return "takeover"
	}
	var parts []string
	for i := range c.Txs {
		tx := &c.Txs[i]
		text := fmt.Sprintf("%d: %s", tx.N, tx.By)
		if rc := tx.Receipt; rc != nil {
			text += fmt.Sprintf(" %s %s", rc.Event, rc.Outcome)
		}
		for _, s := range tx.Sends {
			text += fmt.Sprintf(" sends %s to %s/%s#%d", s.ID, s.To, s.Stream, s.Position)
		}
		parts = append(parts, text)
	}
	return "[" + strings.Join(parts, "; ") + fmt.Sprintf("] cursor %d %v", c.Cursor.Floor, c.Cursor.Held)
}
