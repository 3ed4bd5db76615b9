package space

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
)

func withoutEvents(c *Config) { c.WithoutEvents = true }

// careless turns off the poison guard: in these tests runtimes take a space from each other without any
// pause, and must not conclude that their predecessor died.
func careless(c *Config) { c.LostAttempts = -1 }

func TestAttachingDoesNotDeposeTheOwner(t *testing.T) {
	w := newWorld(t)
	owner := w.owner("w1", counter(t).Program)
	app := w.attached("app", counter(t).Program)
	w.send(home, "add", "e1", 1)
	owner.run() // its first append is refused, because the join was first
	if !owner.core.Owned() || owner.core.Deposed() || owner.core.Attached() {
		t.Error("the owner no longer owns the space")
	}
	if app.core.Owned() || !app.core.Attached() {
		t.Error("the attached runtime believes that it is the owner")
	}
	if got := w.replica(home).Owner; got != "w1" {
		t.Errorf("the log says that %s owns the space", got)
	}
	app.integrate()
	app.run()
	wantValue(t, app, "count", "1")
	if got := w.receipts(home); len(got) != 1 {
		t.Errorf("receipts %v", got)
	}
}

// Owners change, and other runtimes join: an attached runtime keeps making transactions under its own epoch.
func TestAnAttachedRuntimeIsNeverDeposed(t *testing.T) {
	w := newWorld(t)
	w.owner("w1", counter(t).Program)
	app := w.attached("app", counter(t).Program)
	epoch := app.core.ledger.Epoch()
	w.owner("w2", counter(t).Program)
	w.attached("other", counter(t).Program)
	app.direct("app", func(tx *Tx) error { tx.Set("x", 1); return nil })
	app.settle()
	if app.decide() {
		t.Fatal("accepted on top of commits that it had not seen")
	}
	if !app.core.Attached() || app.core.Deposed() || app.core.ledger.Epoch() != epoch {
		t.Errorf("attached: %v, deposed: %v, epoch %d, was %d", app.core.Attached(), app.core.Deposed(), app.core.ledger.Epoch(), epoch)
	}
	wantValue(t, app, "x", "absent")
	app.direct("app", func(tx *Tx) error { tx.Set("x", 2); return nil })
	app.settle()
	if !app.decide() {
		t.Fatal("refused, although no other commit was first")
	}
	last := w.logs[home][len(w.logs[home])-1]
	if c := w.commit(last); c.Epoch != epoch || c.Runtime != "app" || c.Txs[0].N != 2 {
		t.Errorf("the commit is of epoch %d, runtime %s, transaction %d", c.Epoch, c.Runtime, c.Txs[0].N)
	}
}

// A join that loses against a takeover is requested again, unchanged.
func TestAJoinThatIsRefusedIsStillAJoin(t *testing.T) {
	w := newWorld(t)
	app := w.host("app", counter(t).Program)
	app.core.Attach()
	app.settle()
	w.owner("w1", counter(t).Program)
	if app.decide() || app.core.Deposed() || app.core.Attached() {
		t.Fatal("the join was not refused, or deposed the runtime")
	}
	app.core.Attach()
	app.settle()
	if c := app.inFlight.Commit; !c.Join || c.Takeover || c.Epoch != 0 || len(c.Txs) > 0 {
		t.Errorf("the commit is %+v", c)
	}
	if !app.decide() || !app.core.Attached() {
		t.Error("not attached")
	}
}

func TestARuntimeWithoutEventsLeavesThemToTheOwner(t *testing.T) {
	w := newWorld(t)
	owner := w.owner("w1", relay(t).Program)
	app := w.attached("app", relay(t).Program, withoutEvents)
	w.send(home, "start", "e1", nil)
	app.run()
	app.direct("app", func(tx *Tx) error { tx.Send(home, "start", nil); return nil })
	app.run()
	if !app.core.Idle() || app.last.Wake != 0 || app.last.More {
		t.Errorf("idle: %v, Ready is %+v", app.core.Idle(), app.last)
	}
	if got := w.receipts(home); len(got) > 0 {
		t.Fatalf("the attached runtime has handled %v", got)
	}
	last := w.commit(w.logs[home][len(w.logs[home])-1])
	if last.Cursor.Floor != 0 {
		t.Errorf("its commit moves the lane cursor to %d", last.Cursor.Floor)
	}
	owner.integrate()
	owner.run()
	if got := w.receipts(home); len(got) < 4 || owner.core.Stats().Handled != uint64(len(got)) {
		t.Errorf("the owner handles %v", got)
	}
}

// Two runtimes handle the same events: each event once, in order, whichever commits.
func TestI11_AnOwnerAndAnAttachedRuntimeRaceForEvents(t *testing.T) {
	w := newWorld(t)
	owner := w.owner("w1", counter(t).Program)
	app := w.attached("app", counter(t).Program)
	owner.integrate()
	for i := range 6 {
		w.send(home, "add", fmt.Sprint("e", i), 1)
		for _, h := range []*host{owner, app} {
			h.deliver()
			h.settle()
		}
		first, second := owner, app
		if i%2 == 1 {
			first, second = app, owner
		}
		if !first.decide() || second.decide() {
			t.Fatalf("event %d was accepted by both runtimes or by neither", i)
		}
		second.run()
	}
	wantValue(t, owner, "count", "6")
	wantValue(t, app, "count", "6")
	var want []string
	for i := range 6 {
		want = append(want, fmt.Sprintf("e%d handled", i))
	}
	if got := w.receipts(home); !slices.Equal(got, want) {
		t.Errorf("receipts %v, want %v", got, want)
	}
}

// direct makes a transaction of the application.
func (h *host) direct(by string, f func(*Tx) error) {
	h.t.Helper()
	if _, err := h.core.Transact(by, f); err != nil {
		h.t.Fatalf("%v", err)
	}
}

// Whatever a few runtimes do to a space at the same time, owning it in turns or attached to it: each event
// has one receipt, in the order of the lane, and so has each follow-up of a committed handling; no two
// transactions have the same id, and no two sends to another space the same position; a write of an
// application is in the log if it was not undone; and all runtimes end in the same state.
func TestI10_I11_AnyNumberOfRuntimesMakeOneLog(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt)
		p := func() *Program { return racers(rt) }
		hosts := []*host{
			w.owner("w1", p(), careless), w.attached("a1", p()), w.attached("a2", p(), withoutEvents), w.host("w2", p(), careless),
		}
		made := map[*host]int{}
		for i := range 60 {
			h := hosts[rapid.IntRange(0, 3).Draw(rt, "who")]
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0, 1:
				w.send(home, "add", fmt.Sprint("e", i), 1)
			case 2:
				if _, err := h.core.Transact("app", func(tx *Tx) error {
					tx.Set("writes", num(tx.Get("writes"))+1)
					tx.Send(home, "add", 1)
					return nil
				}); err == nil {
					made[h]++
				}
			case 3, 4, 5:
				if !h.cfg.WithoutEvents {
					h.deliver()
				}
				made[h] -= len(h.settle().Undone)
			case 6, 7:
				h.decide()
			case 8:
				if h.core.Settled() {
					h.integrate()
				}
			case 9:
				if h.cfg.Runtime[0] == 'w' {
					h.core.TakeOver()
				}
			}
		}
		w.settleDown(hosts, made)
		w.checkRace(rt, hosts, made)
	})
}

// racers counts events, each of which sends itself on twice, and derives a document from the count.
func racers(t *rapid.T) *Program {
	p := NewProgram("racers")
	err := p.Handle("add", func(tx *Tx, ev *model.Event) (model.Value, error) {
		tx.Set("count", num(tx.Get("count"))+1)
		if n := num(ev.Payload); n < 3 {
			tx.Send(home, "add", n+1)
			tx.Send("shop", "add", n)
		}
		return tx.Get("twice"), nil
	})
	if err == nil {
		err = p.Add(NodeSpec{ID: "twice", Kind: Computation, Output: "twice", Run: func(tx *Tx) (model.Value, error) {
			return model.Int(2 * num(tx.Get("count"))), nil
		}})
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
	return p
}

// settleDown makes all hosts integrate and finish, with w1 as the owner.
func (w *world) settleDown(hosts []*host, made map[*host]int) {
	for round := range 400 {
		before := len(w.logs[home])
		if h := hosts[0]; !h.core.Owned() {
			h.core.TakeOver()
		}
		for _, h := range hosts {
			h.now += 40e6
			if h.core.Settled() {
				h.integrate()
			}
			if !h.cfg.WithoutEvents {
				h.deliver()
			}
			made[h] -= len(h.settle().Undone)
			h.decide()
		}
		if len(w.logs[home]) == before && round > 60 && hosts[0].core.Durable() {
			return
		}
	}
	w.t.Fatalf("the hosts do not become idle")
}

func (w *world) checkRace(t *rapid.T, hosts []*host, made map[*host]int) {
	ids := map[model.TxID]bool{}
	receipts, sends := map[string]int{}, 0
	var lane []uint64
	floor, position := uint64(0), uint64(0)
	for _, e := range w.logs[home] {
		c := w.commit(e)
		if c.Cursor.Floor < floor {
			t.Fatalf("commit %d moves the cursor back from %d to %d", e.Seq, floor, c.Cursor.Floor)
		}
		floor = c.Cursor.Floor
		for _, tx := range c.Txs {
			id := model.TxID{Space: home, Epoch: c.Epoch, N: tx.N}
			if ids[id] {
				t.Fatalf("two transactions have the id %s", id)
			}
			ids[id] = true
			for _, s := range tx.Sends {
				if s.To == home {
					sends++
				} else if position++; s.Position != position {
					t.Fatalf("%s is at position %d, want %d", s.ID, s.Position, position)
				}
			}
			if rc := tx.Receipt; rc != nil {
				receipts[rc.Event]++
				if rc.Lane > 0 {
					lane = append(lane, rc.Lane)
				}
			}
		}
	}
	if !slices.IsSorted(lane) || len(lane) != len(w.lanes[home]) || len(receipts) != len(lane)+sends {
		t.Fatalf("%d of %d lane events were handled, in the order %v, and %d of %d sends", len(lane), len(w.lanes[home]), lane, len(receipts)-len(lane), sends)
	}
	for id, n := range receipts {
		if n != 1 {
			t.Fatalf("event %s has %d receipts", id, n)
		}
	}
	writes := 0
	for _, h := range hosts {
		writes += made[h]
		h.integrate()
		for _, doc := range w.replica(home).DocIDs() {
			if got, want := h.value(doc), w.replica(home).Doc(doc).Value.String(); got != want {
				t.Fatalf("%s shows %s for %s, the log says %s", h.cfg.Runtime, got, doc, want)
			}
		}
	}
	if got := num(w.replica(home).Doc("writes").Value); int(got) != writes {
		t.Fatalf("%d writes are in the log, %d were not undone", got, writes)
	}
	if got := num(w.replica(home).Doc("count").Value); int(got) != len(receipts) {
		t.Fatalf("the count is %d after %d receipts", got, len(receipts))
	}
}
